"""The command that makes a row beside those of a board."""

from __future__ import annotations

from pathlib import Path

import pytest
from compared_runs import runs_in
from made_runs import made_runs

from bench.board.board import Board, build_board
from bench.board.pages.new_row import command_for_row


def planned_board(folder: Path, plan: str) -> Board:
    """Return a board whose runs have this plan file."""
    records = made_runs(folder, {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2))
    for record in records:
        (folder / record.run_id / "plan.toml").write_text(plan, encoding="utf-8")
    return build_board(runs_in(folder, records), version="v1", title="Test")


def test_each_text_and_the_name_of_a_backbone_are_typed_as_bench_run_takes_them(
    tmp_path: Path,
) -> None:
    plan = """[[run]]
methods = ["simcse"]
backbones = ["models/tiny"]
names = ["small"]
corpus = ["a b.txt", "c.txt"]
suites = ["sts", "cxc"]
budget = "100steps"
"""
    command = command_for_row(planned_board(tmp_path, plan))
    start = "bench run FILE.py --seeds 1-5 --suite sts,cxc --backbone small=models/tiny "
    assert command.startswith(f"{start}--corpus 'a b.txt' --corpus c.txt --budget 100steps ")


@pytest.mark.parametrize("plan", ["run = 5", "[[run]]\nsuites = 5", "[[run", "run = [[]]"])
def test_a_plan_that_is_none_gives_no_command(tmp_path: Path, plan: str) -> None:
    assert command_for_row(planned_board(tmp_path, plan)) == ""
