"""A board as JSON, CSV, Markdown and a badge: the same numbers in each, and nothing in a name gets
out of its place.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from made_runs import HOSTILE, hostile_run, hostile_scores, made_run, made_runs
from markdown_it import MarkdownIt

import bench.board.publish
import bench.compare.forms
from bench.board.board import Board, build_board
from bench.board.pages.printed import printed_papers
from bench.board.publish.readme import version_readme
from bench.board.publish.version_files import board_json
from bench.papers import ReferenceResult, results, tables
from bench.papers.remarks import remarks
from bench.records import Run

SCHEMA = Path(bench.board.publish.__file__).with_name("schema") / "board-5.schema.json"
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
    published = [Run(record=one, folder=runs / one.run_id) for one in records]
    made = build_board(published, version="v1", title="A board", note="Made by a test.")
    return replace(made, left_out=("x: failed",))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Board:
    runs = tmp_path_factory.mktemp("hostile")
    records = [
        hostile_run(runs, seed=1),
        hostile_run(runs, seed=2),
        hostile_scores(runs),
        made_run(runs, "=cmd()", 1),
    ]
    published = [Run(one, runs / one.run_id) for one in records]
    senders = {one.run_id: HOSTILE for one in records}
    made = build_board(published, senders=senders, version="v1", title=HOSTILE, note=HOSTILE)
    return replace(made, left_out=(HOSTILE,))


def test_the_json_fits_its_schema(shown: Board, hostile: Board) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for one in (shown, hostile):
        jsonschema.Draft202012Validator(schema).validate(json.loads(board_json(one)))
    wrong = json.loads(board_json(shown))
    wrong["tables"][0]["table"]["rows"][0]["cells"]["STS12"]["mean"] = "70"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(wrong)


def test_every_printed_number_is_on_the_page_with_every_remark_of_the_audit(
    shown: Board,
) -> None:
    made = [one for listed in printed_papers(shown).values() for one in listed]
    assert [one.table for one in made] == [table for _, table in tables()]
    for one, (paper, table) in zip(made, tables(), strict=True):
        texts = []
        for row in one.grid.rows:
            for column, cell in zip(one.grid.columns, row, strict=True):
                if column.right:
                    texts.append(cell.text.split(" ±")[0])
        numbers = printed_results(paper, table)
        assert sorted(filter(None, texts)) == sorted(number.printed for number in numbers)
        about = {remark for number in numbers for remark in remarks(number)}
        whys = {remark.text for remark in about}
        assert all(any(note.endswith(f": {why}") for note in one.grid.notes) for why in whys)
        assert len(one.grid.notes) >= len(whys)


def printed_results(paper: str, table: str) -> tuple[ReferenceResult, ...]:
    return results(paper=paper, table=table)


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
    page = rendered(version_readme(hostile))
    assert page.tags <= PLAIN
    assert not [one for one in page.links if re.match(r"[a-z]+:|/|//", one)]
    assert any("window.hit" in cell for row in page.rows for cell in row)  # it is shown, as text
    widths: dict[int, int] = {}
    for row in page.rows:
        widths[len(row)] = widths.get(len(row), 0) + 1
    assert all(count > 1 for count in widths.values())  # no cell border came out of a name
