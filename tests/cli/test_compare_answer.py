"""``bench compare`` first states its finding, with the verdicts of the published page, whatever
columns are asked for.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import bench
from made_runs import made_run, made_runs

from bench.board.board import Board, build_board
from bench.compare.words.finding import table_finding, verdict_word
from bench.compare.words.names import row_name
from bench.records import Run, RunsFolder


def board_of(runs: Path) -> Board:
    records, _ = RunsFolder(runs).records()
    published = [Run(record=one, folder=runs / one.run_id) for one in records]
    return build_board(published, version="v1", title="made")


def shown(runs: Path, *words: str) -> str:
    return bench("compare", "--runs", runs, *words, COLUMNS="300").stdout


@pytest.mark.slow
@pytest.mark.parametrize("noise", [(0.5, 0.3), (0.3, 0.5), (0.4, 0.401)])
def test_every_verdict_is_that_of_the_page(tmp_path: Path, noise: tuple[float, float]) -> None:
    """On data in which the one method wins, the other, and none."""
    made_runs(tmp_path, dict(zip(("simcse", "promcse"), noise, strict=True)), suites=("sts", "cxc"))
    made_run(tmp_path, "cls", None, noise=1.6)
    text = shown(tmp_path)
    table = board_of(tmp_path).tables[0].table
    assert " ".join(text.split("\n\n")[0].split()) == table_finding(table).text
    for row in table.rows:
        (line, *_) = re.findall(rf"^{row_name(row, table)} .*\d\.\d\d.*", text, re.M)
        assert row.cells[-1] is not None and f" {row.cells[-1].mean:.2f} " in line
        assert ("◆" in line) == row.may_be_best
        words = {"better", "worse", "inconclusive", "baseline"} & set(line.split())
        assert words == {verdict_word(row, table)}


@pytest.mark.slow
def test_options_add_columns_and_lines_and_change_nothing_else(tmp_path: Path) -> None:
    """The table of most runs comes first, and with each option the same columns in the same
    order."""
    made_runs(tmp_path, {"simcse": 0.4, "promcse": 0.5}, suites=("sts", "cxc"))
    made_run(tmp_path, "cls", None, noise=1.6, suites=("sts",))
    plain = shown(tmp_path)
    finding, table, *_ = plain.split("\n\n")
    title, heads, *lines = table.splitlines()
    assert title == "STS, unsupervised, built-in backbone, senteval-all/1"
    assert heads.split()[:4] == ["method", "n", "Avg.", "±"] and "verdict" in heads
    for words in (["--cost"], ["--with-paper"], ["--all"], ["--cost", "--with-paper", "--all"]):
        first, other, *_ = shown(tmp_path, *words).split("\n\n")
        assert first == finding
        again, other_heads, *others = other.splitlines()
        assert again == title
        columns = [
            name for name in other_heads.split() if name not in ("params", "train", "memory")
        ]
        assert columns == heads.split()
        for line in lines:
            start = line[: line.index("STS12") if "STS12" in line else heads.index("STS12")].split()
            assert any(one.split()[: len(start)] == start for one in others)
