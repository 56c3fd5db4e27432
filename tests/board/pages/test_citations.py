"""Each row of a board has an address and a citation, and papers have links."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from html5lib import HTMLParser
from made_runs import HOSTILE, made_run, made_runs
from msgspec import structs

from bench.board.board import Board, build_board
from bench.board.pages.board import render_board
from bench.board.pages.citations import row_citations
from bench.board.publish.described import with_descriptions
from bench.papers import papers
from bench.records import Run, RunsFolder

SOURCES = Path(__file__).parents[3] / "methods"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("cited")
    made_runs(folder, {"simcse": 0.8, "promcse": 0.45}, suites=("sts", "geometry"))
    made_run(folder, "promcse", 1, noise=0.5, recipe={"temperature": 0.1})
    made_run(folder, "promcse", 1, noise=0.5, recipe={"temperature": 0.2})
    records, _ = RunsFolder(folder).records()
    runs = [Run(record=one, folder=folder / one.run_id) for one in records]
    return build_board(runs, version="v1", title="A board")


def test_every_row_has_an_address_of_its_own(made: Board) -> None:
    anchors = made.row_anchors
    rows = sum(len(shown.table.rows) for shown in made.tables)
    assert len(set(anchors.values())) == len(anchors) == rows > 4
    html = render_board(made)
    ids = re.findall(r'<tr id="([^"]+)"', html)
    assert sorted(ids) == sorted(anchors.values())
    for anchor in ids:
        assert f'href="#{anchor}"' in html
        assert re.fullmatch(r"[a-z0-9-]+", anchor)
    first = made.tables[0].anchor
    assert f"{first}--simcse" in ids


def test_a_citation_has_the_rows_numbers(made: Board) -> None:
    shown = made.tables[0]
    cited = row_citations(made, shown)
    for row, text in zip(shown.table.rows, cited, strict=True):
        cell = row.cells[-1]
        assert cell is not None and f" {cell.mean:.2f}" in text and row.name in text
        assert text.startswith("@misc{bench-v1-") and text.endswith("\n}")
        assert "url" not in text, "no address is known"
        assert text.count("{") == text.count("}")
        against = cell.against
        if against is not None and against.verdict:
            assert f"{against.difference:+.2f} [" in text and "vs SimCSE" in text
        assert f"year = {{{made.date[:4]}}}" in text
    there = replace(made, address="https://example.org/boards/")
    (first, *_) = row_citations(there, shown)
    anchor = made.row_anchors[shown.anchor, 0]
    assert f"url = {{https://example.org/boards/v1/index.html#{anchor}}}" in first


def test_a_hostile_name_cannot_end_a_field(made: Board) -> None:
    shown = made.tables[0]
    row = replace(shown.table.rows[0], method="a}, note = {x\\input{y}" + HOSTILE)
    (text, *_) = row_citations(
        replace(made, tables=(replace(shown, table=replace(shown.table, rows=(row,))),)),
        replace(shown, table=replace(shown.table, rows=(row,))),
    )
    assert text.count("{") == text.count("}") and "\\input" not in text and "\u202e" not in text
    records = [structs.replace(run.record, method=HOSTILE) for run in made.runs]
    runs = tuple(
        run._replace(record=record) for run, record in zip(made.runs, records, strict=True)
    )
    HTMLParser(strict=True).parse(render_board(replace(made, runs=runs)))


def test_papers_are_linked_at_arxiv(made: Board) -> None:
    described = with_descriptions(made)
    html = render_board(described)
    assert 'href="https://arxiv.org/abs/2203.06875"' in html
    assert 'href="https://arxiv.org/abs/2104.08821"' in html


def test_numbers_at_arxiv_are_those_of_the_methods() -> None:
    """Two tables of the project that nobody may let drift apart."""
    compared = 0
    for paper in papers().values():
        number, texts = paper.arxiv, [paper.citation]
        code = SOURCES / f"{paper.name.replace('-', '_')}.py"
        if code.is_file():
            texts.append(code.read_text(encoding="utf-8"))
        for text in texts:
            for found in re.findall(r'arXiv["\s]*(\d{4}\.\d{4,5})', text):
                assert found == number.partition("v")[0], paper
                compared += 1
    assert compared > 12
