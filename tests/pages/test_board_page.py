"""The main page of a version: what stands in it, before any browser draws it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from html5lib import HTMLParser
from made_runs import HOSTILE, made_run, made_runs
from msgspec import structs

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.runs import RunsFolder
from bench.show.pages import board as pages
from bench.show.pages import score_tables

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


def test_finished_encoders_stand_below_for_scale(tmp_path: Path) -> None:
    """The best untrained row of each other backbone, scored alike; never a trained one, and never ranked."""
    made_runs(tmp_path, {"simcse": 0.8, "promcse": 0.5}, seeds=(1, 2))
    made_run(tmp_path, "cls", None, noise=1.4)
    made_run(tmp_path, "cls", None, noise=0.2, backbone="mini")
    made_run(tmp_path, "first-last-avg", None, noise=0.1, backbone="mini")
    made_run(tmp_path, "cls", None, noise=0.3, backbone="other", text="raw")  # another text form
    made_run(tmp_path, "simcse", 1, noise=0.01, backbone="trained")
    found = board(
        [PublishedRun(record=one, folder=tmp_path) for one in RunsFolder(tmp_path).records()[0]],
        version="v1",
        title="t",
        statistics="no",
    )
    tables = {
        (one.setting, one.backbone, one.text): one for one in score_tables.score_tables(found)
    }
    scale = tables["unsupervised", "builtin", "tokenised"].finished
    assert [(row.method, row.beside) for row in scale] == [("first-last-avg", "mini")]
    (of_its_own,) = [
        row for row in tables["none", "mini", "tokenised"].rows if row.method == "first-last-avg"
    ]
    assert [cell and cell.text for cell in scale[0].cells] == [
        cell and cell.text for cell in of_its_own.cells
    ]
    assert tables["none", "mini", "tokenised"].finished == ()
    html = pages.render(found)
    assert html.count('<tbody class="finished">') == 2  # the trained backbone's table has it, too
