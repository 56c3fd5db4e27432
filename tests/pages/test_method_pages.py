"""The pages of methods: their numbers on every table, their runs, their recipes with sources, and what papers printed."""

from __future__ import annotations

import html as entities
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from made_runs import HOSTILE, hostile_run, made_run, made_runs

from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.runs import RunRecord
from bench.show.pages import method_page

PACKAGE = {"plugin": {"package": "sentence-bench", "version": "0.1.0"}}


def a_board(records: list[RunRecord], folder: Path, statistics: str = "no") -> Board:
    runs = [PublishedRun(record=one, folder=folder / one.run_id) for one in records]
    return board(runs, version="v1", title="Test", statistics=statistics)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("runs")
    records = made_runs(
        folder, {"simcse": 0.8, "promcse": 0.45}, seeds=(1, 2), suites=("sts",), provenance=PACKAGE
    )
    records += [
        made_run(
            folder, "promcse", 1, noise=0.4, setting="supervised", variant="eh", provenance=PACKAGE
        )
    ]
    records += made_runs(
        folder, {"promcse": 0.3}, seeds=(1,), backbone="bert-base-uncased", provenance=PACKAGE
    )
    return a_board(records, folder, statistics="yes")


def text_of(html: str) -> str:
    return " ".join(entities.unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_each_row_of_the_method_stands_with_its_numbers_and_leads_to_its_table(found) -> None:
    page = method_page.page(found, "promcse")
    expected = [
        (table, row)
        for table in found.tables
        for row in table.table.rows
        if row.method == "promcse"
    ]
    assert len(expected) == 3
    rows = [row for table in page.tables for row in table.rows]
    assert [(row.setting, row.backbone, row.name) for row in rows] == [
        (r.setting, r.backbone, r.variant) for _, r in expected
    ]
    for row, (table, of) in zip(rows, expected, strict=True):
        assert row.table == f"../index.html#{table.anchor}"
        assert [one.text for one in row.cells] == [f"{cell.mean:.2f}" for cell in of.cells]
        assert [unquote(link) for _, link in row.runs] == [
            f"../runs/{run}/index.html" for run in of.runs
        ]


def test_markup_in_a_methods_name_and_records_stays_text(tmp_path: Path) -> None:
    found = a_board([hostile_run(tmp_path)], tmp_path)
    html = method_page.render(found, HOSTILE)
    assert (
        html.count("<script") == 1
        and "<img" not in html
        and "\u202e" not in html
        and "window.hit=1" in text_of(html)
    )
    assert all(
        re.match(r"(?:\.\./|#|data:,$)", one) for one in re.findall(r'(?:href|src)="([^"]*)"', html)
    )
