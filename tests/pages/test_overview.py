"""One row per method over all suites: what stands in it follows from the suites' own tables, and nothing is added up."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import made_runs

from bench.board.board import Board, PublishedRun
from bench.board.content import board, overviews
from bench.runs import RunsFolder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("suites") / "runs"
    made_runs(
        folder,
        {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44},
        seeds=(1, 2, 3),
        suites=("sts", "cxc", "geometry"),
    )
    made_runs(folder, {"diffcse": 0.5}, seeds=(1, 2, 3), suites=("cxc",))
    records, _ = RunsFolder(folder).records()
    return board(
        [PublishedRun(record=one, folder=Path(folder) / one.run_id) for one in records],
        version="v1",
        title="T",
        baseline="simcse",
    )


def test_marks_and_differences_are_those_of_the_suites_own_tables(made: Board) -> None:
    (one,) = overviews(made.tables)
    assert [suite.table.suite for suite in one.suites] == ["sts", "cxc"], "a geometry has no rank"
    assert one.suites[1].table.protocol == "cxc-promcse/1", (
        "the one that stands beside the STS sets"
    )
    assert [method for method, _ in one.names].count("diffcse") == 1 and len(one.names) == 4
    for i, (method, _) in enumerate(one.names):
        for j, suite in enumerate(one.suites):
            table = suite.table
            row = next((row for row in table.rows if row.method == method), None)
            standing = one.standings[i][j]
            assert (standing is None) == (row is None)
            if standing is None or row is None:
                continue
            base = next(row for row in table.rows if row.is_baseline)
            assert standing.row == row
            tasks = [task for task in table.columns if task != "Avg."]
            if row is base:
                assert standing.steps == ()
                continue
            assert [step.task for step in standing.steps] == tasks
            for step in standing.steps:
                k = table.columns.index(step.task)
                mine, theirs = row.cells[k], base.cells[k]
                assert mine is not None and theirs is not None and mine.against is not None
                assert step.difference == pytest.approx(mine.mean - theirs.mean)
