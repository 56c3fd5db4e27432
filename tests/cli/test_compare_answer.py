"""``bench compare`` alone says what the published page says first; the commands that it prints work; it fits a screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import bench
from made_runs import made_run, made_runs

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.compare.statements import verdict
from bench.runs import RunsFolder


def page_of(runs: Path) -> Board:
    records, _ = RunsFolder(runs).records()
    return board(
        [PublishedRun(record=one, folder=runs / one.run_id) for one in records],
        version="v1",
        title="made",
    )


def joined(text: str) -> str:
    return " ".join(text.split())


def drawn(text: str) -> dict[str, tuple[bool, str, str]]:
    """method -> (marked, average, sign) of the lines of the first table, at a width at which nothing stands in blocks."""
    name = r"^([^\s◆¹²³⁴]+)(?: [^\s◆]\S*)?( ◆)?[¹²³⁴·]* +\d+ .*?"
    difference = r"(?:baseline|[+-]?\d+\.\d\d \[[^\]]*\])(?: ([▲▼-]))?$"
    line = name + r"(\d+\.\d\d) +\d+\.\d\d +" + difference
    found = re.findall(line, text.split("\nother tables")[0], re.M)
    return {method: (bool(mark), mean, sign) for method, mark, mean, sign in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        {"simcse": 0.5, "promcse": 0.3},
        {"simcse": 0.3, "promcse": 0.5},
        {"simcse": 0.4, "promcse": 0.401},
    ],
)
def test_the_sentence_and_every_verdict_are_those_of_the_page(
    tmp_path: Path, noise: dict[str, float]
) -> None:
    """On data in which the other method wins, and in which none does."""
    made_runs(tmp_path, noise, suites=("sts", "cxc"))
    made_run(tmp_path, "cls", None, noise=1.6)
    page = page_of(tmp_path)
    done = bench("compare", "--runs", tmp_path, COLUMNS="200")
    assert done.exit_code == 0, done.stderr
    assert joined(done.stdout).startswith(joined(page.answer))
    signs = {"better": "▲", "worse": "▼"}
    wanted = {
        row.method: (
            row.may_be_best,
            f"{row.cells[-1].mean:.2f}",
            signs.get(verdict(row) or "", ""),
        )
        for row in page.tables[0].table.rows
        if row.cells[-1] is not None
    }
    assert drawn(done.stdout) == wanted
    top = [method for method, (marked, *_) in wanted.items() if marked]
    assert all(method in page.answer.split("Against")[0] for method in top)
