"""The command that makes published runs again: with the plan beside the record, or none."""

from __future__ import annotations

from pathlib import Path

from factories import record

from bench.board.repeat import NOT_REPEATABLE, plan_text, repeat
from bench.records.run import Run


def test_a_row_is_made_again_with_the_plan_of_its_first_run(tmp_path: Path) -> None:
    records = [record("simcse", seed) for seed in (1, 2, 3)]
    runs = [Run(one, tmp_path / one.run_id) for one in records]
    assert repeat(runs) == NOT_REPEATABLE and plan_text(runs[0]) == ""
    runs[0].folder.mkdir()
    (runs[0].folder / "plan.toml").write_text("[[run]]\n")
    plan = f"bench run --plan runs/{runs[0].record.run_id}/plan.toml"
    assert repeat(runs[:1]) == plan
    assert repeat(runs) == f"{plan} --seeds 1-3"
    assert plan_text(runs[0]) == "[[run]]\n"


def test_a_link_or_a_file_too_large_is_no_plan(tmp_path: Path) -> None:
    run = Run(record("simcse", 1), tmp_path / "run")
    run.folder.mkdir()
    (tmp_path / "elsewhere").write_text("secret")
    (run.folder / "plan.toml").symlink_to("../elsewhere")
    assert repeat([run]) == NOT_REPEATABLE and plan_text(run) == ""
    (run.folder / "plan.toml").unlink()
    (run.folder / "plan.toml").write_bytes(b" " * (1 << 21))
    assert plan_text(run) == ""
