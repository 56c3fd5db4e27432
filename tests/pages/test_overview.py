"""One row per method over all suites: what stands in it follows from the suites' own tables, and nothing is added up."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import made_runs

from bench.board.board import Board, PublishedRun
from bench.board.content import board, overviews
from bench.compare.formatting import score
from bench.publish.readme import markdown_page
from bench.runs import RunsFolder
from bench.show.pages import board as pages
from bench.show.pages.overview import HEIGHT, ROOM, page_overviews


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


def test_a_dot_a_task_and_its_words(made: Board) -> None:
    (model,), (shown,) = overviews(made.tables), page_overviews(made)
    html = pages.render(made)
    for i, row in enumerate(shown.rows):
        steps = [step for standing in model.standings[i] if standing for step in standing.steps]
        if not steps:
            assert row.profile is None and row.method == "simcse"
            continue
        assert row.profile is not None
        heights = [float(y) for y in re.findall(r"M\d+ ([\d.]+)h0", row.profile.dots)]
        for height, step in zip(heights, steps, strict=True):
            assert (height < shown.zero) == (step.difference > 0)
            assert ROOM <= height <= HEIGHT - ROOM
        above = sum(step.difference > 0 for step in steps)
        assert row.profile.words.startswith(
            f"{len(steps)} task{'s' * (len(steps) > 1)}, {above} above the baseline; "
        )
        lowest = min(steps, key=lambda s: s.difference)
        assert f"({lowest.task}) to " in row.profile.words and row.profile.words in html
    for row, standings in zip(shown.rows, model.standings, strict=True):
        for cell, standing in zip(row.cells, standings, strict=True):
            assert (cell is None) == (standing is None)
            if cell is not None and standing is not None:
                last = standing.row.cells[-1]
                assert last is not None and cell.mean == score(last.mean, last.decimals)
                assert cell.top == standing.row.may_be_best


def test_no_overview_where_there_is_one_suite_and_nothing_unchecked_in_it(made: Board) -> None:
    one_suite = replace(
        made,
        tables=tuple(replace(one, beside=()) for one in made.tables if one.table.suite == "sts"),
    )
    assert (
        overviews(one_suite.tables) == ()
        and "All suites" not in markdown_page(one_suite)
        and 'class="overview"' not in pages.render(one_suite)
    )
    sent = replace(made, tables=tuple(replace(one, checked=False) for one in made.tables))
    assert overviews(sent.tables) == ()


def test_in_markdown(made: Board) -> None:
    said = markdown_page(made).split("## All suites")[1].split("\n## ")[0]
    (model,) = overviews(made.tables)
    lines = [one for one in said.splitlines() if one.startswith("| ")][2:]
    assert len(lines) == len(model.names)
    for (method, _), row, text in zip(model.names, model.standings, lines, strict=True):
        assert text.startswith(f"| {method}") and all(
            standing is None or ("◆" in text) >= standing.row.may_be_best for standing in row
        )
