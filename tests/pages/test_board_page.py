"""The main page of a version: what stands in it, before any browser draws it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from html5lib import HTMLParser
from made_runs import HOSTILE, made_runs
from msgspec import structs

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.runs import RunsFolder
from bench.show.pages import board as pages

METHODS = {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Three methods, three seeds, sts."""
    folder = tmp_path_factory.mktemp("board") / "runs"
    made_runs(folder, METHODS, seeds=(1, 2, 3), suites=("sts", "geometry"))
    runs = [
        PublishedRun(record=record, folder=folder / record.run_id)
        for record in RunsFolder(folder).records()[0]
    ]
    return board(
        runs,
        version="v1",
        title="Some sentences",
        note="No evidence.",
        left_out=("simcse-x: failed",),
        baseline="simcse",
    )


def data_of(html: str) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="board-data">(.*?)</script>', html, re.DOTALL
    )
    assert found
    return json.loads(found[1])


def test_the_page_is_valid_and_the_same_twice(made: Board) -> None:
    html = pages.render(made)
    HTMLParser(strict=True).parse(html)
    assert html == pages.render(made)


def test_every_number_links_to_a_run_and_is_the_tables(made: Board) -> None:
    html = pages.render(made)
    sts = next(one for one in made.tables if one.table.suite == "sts")
    for row in sts.table.rows:
        for cell in row.cells:
            assert cell is not None
            assert re.search(
                rf'<a href="runs/{re.escape(row.runs[0])}/index.html">(<[bu]>)?{cell.mean:.{cell.decimals}f}(</[bu]>)?</a>',
                html,
            )


def test_foreign_text_stays_text(made: Board) -> None:
    hostile = replace(
        made,
        title=HOSTILE,
        note=HOSTILE,
        answer=HOSTILE,
        left_out=(HOSTILE,),
        runs=tuple(
            replace(run, record=structs.replace(run.record, method=HOSTILE, variant=HOSTILE))
            for run in made.runs
        ),
    )
    html = pages.render(hostile)
    HTMLParser(strict=True).parse(html)
    assert "<script>window" not in html and "<img" not in html and "\u202e" not in html
    assert html.count("<script") == 4, "three of ours, and the data"
    commands = data_of(html)["texts"]
    assert any("<script>window" in one for one in commands) and not any(
        "\u202e" in one for one in commands
    )
    assert "<" not in json.dumps(data_of(html)).replace(json.dumps(commands), "")
