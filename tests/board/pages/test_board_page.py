"""The main page of a version, as HTML, before any browser draws it."""

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

from bench.board.board import Board, build_board
from bench.board.pages import board as pages
from bench.board.publish.described import with_descriptions
from bench.board.repeat import NOT_REPEATABLE
from bench.records import Run, RunsFolder

METHODS = {"simcse": 0.8, "promcse": 0.45, "promptbert": 0.44}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Three methods, three seeds, sts."""
    folder = tmp_path_factory.mktemp("board") / "runs"
    made_runs(folder, METHODS, seeds=(1, 2, 3), suites=("sts", "geometry"))
    runs = [
        Run(record=record, folder=folder / record.run_id)
        for record in RunsFolder(folder).records()[0]
    ]
    board = build_board(
        runs, version="v1", title="Some sentences", note="No evidence.", baseline="simcse"
    )
    return replace(board, left_out=("simcse-x: failed",))


def data_of(html: str) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="board-data">(.*?)</script>', html, re.DOTALL
    )
    assert found
    return json.loads(found[1])


def test_every_number_links_to_a_run_and_is_the_tables(made: Board) -> None:
    html = pages.render_board(made)
    sts = next(one for one in made.tables if one.table.suite == "sts")
    for row in sts.table.rows:
        for cell in row.cells:
            assert cell is not None
            start = f'<a href="runs/{re.escape(row.runs[0])}/index.html">'
            mean = f"{cell.mean:.{cell.decimals}f}"
            assert re.search(rf"{start}(<[bu]>)?{mean}(</[bu]>)?</a>", html)


def test_foreign_text_stays_text(made: Board) -> None:
    hostile = replace(
        made,
        title=HOSTILE,
        note=HOSTILE,
        answer=HOSTILE,
        left_out=(HOSTILE,),
        runs=tuple(
            run._replace(record=structs.replace(run.record, method=HOSTILE, variant=HOSTILE))
            for run in made.runs
        ),
    )
    html = pages.render_board(hostile)
    HTMLParser(strict=True).parse(html)
    assert "<script>window" not in html and "<img" not in html and "\u202e" not in html
    assert html.count("<script") == 2, "one of ours, and the data"
    found = data_of(html)
    assert {row["command"] for row in found["rows"].values()} == {NOT_REPEATABLE}
    data = re.search(r'id="board-data">(.*?)</script>', html, re.DOTALL)
    assert data is not None and "<" not in data[1]


def test_the_time_of_tuning_is_a_column_of_its_own_and_a_commit_is_no_version(
    tmp_path: Path,
) -> None:
    runs = [
        Run(
            record=made_run(
                tmp_path,
                method,
                provenance={
                    "bench_version": "0+source",
                    "git": {"commit": "c" * 40},
                    "execution": {"search": search},
                },
            ),
            folder=tmp_path,
        )
        for method, search in (
            ("simcse", {}),
            ("promcse", {"name": "s", "trials": 6, "seconds": 240.0}),
        )
    ]
    html = pages.render_board(build_board(runs, version="v1", title="T"))
    assert 'data-sort="tuning"' in html and ">4m00s/6<" in html
    assert "commit cccccccccccc" in html and "0+source" not in html


OWN_METHOD = '''
from bench.methods.simcse import SimCSE

class Mine(SimCSE):
    """A loss of ours."""

    name = "my-loss"
    summary = "contrastive, with a loss of ours"
    paper = "Ours, 2026"
'''


def test_methods_of_plugin_files_are_among_the_methods(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "mine.py"
    file.parent.mkdir()
    file.write_text(OWN_METHOD)
    recorded = {"plugin": {"package": "work/mine.py", "sha256": "0" * 64}}
    records = [
        made_run(tmp_path / "runs", "simcse", 1),
        made_run(tmp_path / "runs", "my-loss", 1, provenance=recorded),
        made_run(tmp_path / "runs", "of-nobody", 1, provenance={"plugin": {"package": None}}),
        made_run(tmp_path / "runs", "object", None, provenance={"plugin": {"package": "bench"}}),
    ]
    found = [Run(one, tmp_path / "runs" / one.run_id) for one in records]
    plain = with_descriptions(build_board(found, version="v1", title="Made"))
    rows = {row[0].main: [cell.main for cell in row[1:]] for row in pages.methods_grid(plain).rows}
    assert rows["my-loss"] == ["a method of mine.py", ""] and rows["of-nobody"] == ["", ""]
    assert set(rows) == {"SimCSE", "my-loss", "of-nobody"} and rows["SimCSE"][1]
    assert ">my-loss</a>" in pages.render_board(plain).split('id="methods"')[1]
    asked = with_descriptions(plain, [file])
    rows = {row[0].main: [cell.main for cell in row[1:]] for row in pages.methods_grid(asked).rows}
    assert rows["my-loss"] == ["contrastive, with a loss of ours", "Ours, 2026"]
    other = tmp_path / "other.py"
    other.write_text(OWN_METHOD)
    assert "my-loss" not in with_descriptions(plain, [other]).described, "it is another file"
