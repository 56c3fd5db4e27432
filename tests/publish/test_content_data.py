"""A board as JSON, CSV, Markdown and a badge: the same numbers in each, and nothing in a name gets out of its place."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from made_runs import HOSTILE, hostile_run, hostile_scores, made_run, made_runs
from markdown_it import MarkdownIt

import bench.publish
import bench.show.tables
from bench.board.board import Board, PublishedRun
from bench.board.content import board
from bench.board.reference_tables import reference_tables
from bench.publish.files import as_csvs, as_json, markdown_page
from bench.references import results
from bench.references.audit import audit

SCHEMA = Path(bench.publish.__file__).with_name("schema") / "board-3.schema.json"
PLAIN = set(
    [
        "h1",
        "h2",
        "h3",
        "p",
        "a",
        "em",
        "strong",
        "code",
        "ul",
        "li",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "u",
        "sup",
        "details",
        "summary",
        "img",
    ]
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Board:
    runs = tmp_path_factory.mktemp("runs")
    records = [*made_runs(runs, suites=("sts", "geometry")), made_run(runs, "cls", None, noise=3.0)]
    published = [PublishedRun(record=one, folder=runs / one.run_id) for one in records]
    return board(
        published, version="v1", title="A board", note="Made by a test.", left_out=["x: failed"]
    )


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Board:
    runs = tmp_path_factory.mktemp("hostile")
    records = [
        hostile_run(runs, seed=1),
        hostile_run(runs, seed=2),
        hostile_scores(runs),
        made_run(runs, "=cmd()", 1),
    ]
    published = [
        PublishedRun(record=one, folder=runs / one.run_id, submitted_by=HOSTILE) for one in records
    ]
    return board(published, version="v1", title=HOSTILE, note=HOSTILE, left_out=[HOSTILE])


# --- JSON ---


def test_the_json_fits_its_schema(shown: Board, hostile: Board) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for one in (shown, hostile):
        jsonschema.Draft202012Validator(schema).validate(json.loads(as_json(one)))
    wrong = json.loads(as_json(shown))
    wrong["tables"][0]["table"]["rows"][0]["cells"]["STS12"]["mean"] = "70"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(wrong)


# --- CSV ---


def test_no_spreadsheet_takes_a_name_for_a_formula(hostile: Board) -> None:
    for text in as_csvs(hostile).values():
        for line in csv.reader(io.StringIO(text)):
            for cell in line:
                assert cell.isprintable()
                assert not re.match(r"[=+@|%]|-(?![0-9.])", cell), cell


# --- what papers printed ---


def test_every_printed_number_stands_in_its_table_once() -> None:
    told = sorted(
        (one.paper, one.table, row.label, row.backbone)
        + (cell.task, cell.metric, cell.value, cell.std or 0.0)
        for one in reference_tables()
        for row in one.rows
        for cell in row.cells
        if cell is not None
    )
    assert told == sorted(
        (r.paper, r.table, r.label, r.backbone, r.task, r.metric, r.value, r.std or 0.0)
        for r in results()
    )


def test_every_remark_of_the_audit_is_beside_its_cell_or_row() -> None:
    told = {
        (one.paper, one.table, row.label, task, remark.kind, remark.text)
        for one in reference_tables()
        for row in one.rows
        for task, part in (("", row), *((cell.task, cell) for cell in row.cells if cell))
        for remark in part.remarks
    }
    assert told == {
        (r.cell.paper, r.cell.table, r.cell.label, r.task, r.kind, r.why) for r in audit()
    }


# --- Markdown ---


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert all(name in ("href", "style", "src", "alt") for name, _ in attrs), attrs
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if any(tag in self.open for tag in ("td", "th")):
            self.rows[-1][-1] += data


def rendered(text: str) -> Tags:
    tags = Tags()
    tags.feed(MarkdownIt("gfm-like", {"linkify": False}).render(text))
    assert not tags.open
    return tags


def test_hostile_names_are_words_in_markdown(hostile: Board) -> None:
    page = rendered(markdown_page(hostile))
    assert page.tags <= PLAIN
    assert not [one for one in page.links if re.match(r"[a-z]+:|/|//", one)]
    assert any("window.hit" in cell for row in page.rows for cell in row)  # it is shown, as text
    widths: dict[int, int] = {}
    for row in page.rows:
        widths[len(row)] = widths.get(len(row), 0) + 1
    assert all(count > 1 for count in widths.values())  # no cell border came out of a name
