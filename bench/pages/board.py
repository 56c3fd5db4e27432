"""The main page of a version: one sentence that answers, the tables, figures, what papers printed, how it was made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.pages.cell_data import board_data
from bench.pages.engine import render as rendered
from bench.pages.printed import PrintedPaper, printed_papers
from bench.pages.says import says
from bench.pages.score_tables import SETTINGS, ScoreTable, score_tables
from bench.tables.lines import SIGNS
from bench.tables.words import visible

if TYPE_CHECKING:
    from bench.figures import Figure
    from bench.publish.board import Board, Fact

WORDS = {"b": "better", "w": "worse", "e": "equivalent", "u": "unknown", "x": "better, exploratory", "y": "worse, exploratory"}
"""Class of a sign in the style sheet -> what it says to who does not see it."""
SEEN = 3
"""Figures in the row under the tables; the others unfold."""
MOST_DATA = 60
"""Rows of a figure's data on the page; all of them are in its CSV file."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One of the things that may be shown."""

    value: str = field(metadata=says("as it stands in the address of a view"))
    words: str = field(metadata=says("as the reader sees it"))
    anchor: str = field(metadata=says("id of the first table that it shows: where the link leads without a script"))
    rows: int | None = field(metadata=says("how many rows that table has; None where it is no matter of rows"))


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A choice of what is shown."""

    key: str = field(metadata=says("as it stands in the address of a view"))
    label: str = field(metadata=says("as the reader sees it"))
    options: tuple[Option, ...] = field(metadata=says("in the order of the tables"))
    scripted: bool = field(metadata=says("it does nothing without a script, and is not shown then"))


@dataclass(frozen=True, kw_only=True)
class PageFigure:
    """A drawing with its data."""

    figure: Figure = field(metadata=says("the drawing itself"))
    rows: tuple[tuple[str, ...], ...] = field(metadata=says("the first rows of its data, as printed"))
    numbers: tuple[bool, ...] = field(metadata=says("of each column, whether it holds numbers"))
    more: int = field(metadata=says("rows that are in the CSV file only"))


@dataclass(frozen=True, kw_only=True)
class Topic:
    """Sentences about one thing in how the version was made."""

    name: str = field(metadata=says("what they are about"))
    facts: tuple[Fact, ...] = field(metadata=says("text, and the command for it where there is one"))


@dataclass(frozen=True, kw_only=True)
class BoardPage:
    """Everything that the main page shows."""

    title: str = field(metadata=says("of the leaderboard"))
    version: str = field(metadata=says("such as v1"))
    alone: bool = field(metadata=says("a preview where nothing is published: there is no page of all versions"))
    lasting: bool = field(metadata=says("it is a version, which never changes, and no preview"))
    date: str = field(metadata=says("of the newest own run"))
    answer: str = field(metadata=says("one computed sentence"))
    note: str | None = field(metadata=says("what the publisher has to say"))
    counts: str = field(metadata=says("how many runs, methods and seeds"))
    switches: tuple[Switch, ...] = field(metadata=says("choices that there are; one with a single option is none"))
    tables: tuple[ScoreTable, ...] = field(metadata=says("one per setting, backbone, suite, protocol and text form"))
    figures: tuple[PageFigure, ...] = field(metadata=says("the three that everyone sees"))
    more_figures: tuple[PageFigure, ...] = field(metadata=says("those that a reader asks for"))
    printed: tuple[PrintedPaper, ...] = field(metadata=says("the papers' tables"))
    made: tuple[Topic, ...] = field(metadata=says("how it was made, and how to go on from it"))
    changes: tuple[str, ...] = field(metadata=says("what is new since the version before; empty for the first"))
    cell_by_cell: bool = field(metadata=says("there is a page of every cell that changed"))
    before: str = field(metadata=says("the version before; empty for the first"))
    left_out: tuple[str, ...] = field(metadata=says("runs that are not in the tables, one line each"))
    data: str = field(metadata=says("what the panel of a number shows, as JSON for a script element"))


def render(board: Board, figures: Sequence[Figure] = ()) -> str:
    """The page as HTML; it links to board.css, panel.js and board.js in ``assets/``, which lie among the templates."""
    from markupsafe import Markup

    from bench.publish.grades import WORDS as GRADE_WORDS

    page = board_page(board, figures)
    return rendered(
        "board.html",
        page=page,
        signs=SIGNS,
        words=WORDS,
        grades=GRADE_WORDS,
        data=Markup(page.data),
        drawn=lambda svg: Markup(svg),
    )  # noqa: S704 - escaped where they are made


def board_page(board: Board, figures: Sequence[Figure] = ()) -> BoardPage:
    """The page's content: a pure function of the board."""
    tables = score_tables(board)
    topics: dict[str, list[Fact]] = {}
    for fact in board.made:
        topics.setdefault(fact.topic, []).append(fact)
    return BoardPage(
        title=board.title, version=board.version, alone=board.alone, lasting=re.fullmatch("v[0-9]+", board.version) is not None, date=board.date, answer=board.answer, note=board.note, counts=_counts(board),
        switches=tuple(switch for switch in _switches(board, tables) if len(switch.options) > 1), tables=tables,
        figures=tuple(_figure(figure) for figure in figures[:SEEN]), more_figures=tuple(_figure(figure) for figure in figures[SEEN:]), printed=printed_papers(board),
        made=tuple(Topic(name=name, facts=tuple(facts)) for name, facts in topics.items()),
        changes=board.changes.lines if board.changes else (), cell_by_cell=board.changes is not None and bool(board.changes.verdicts or board.changes.scores), before=board.changes.before if board.changes else "",
        left_out=board.left_out, data=board_data(board),
    )  # fmt: skip


def _counts(board: Board) -> str:
    """ "18 runs of 6 methods" """
    runs, methods = len(board.runs), len({run.record.method for run in board.runs})
    return f"{runs:,} run{'s' * (runs != 1)} of {methods:,} method{'s' * (methods != 1)}"


def _switches(board: Board, tables: Sequence[ScoreTable]) -> tuple[Switch, ...]:
    baselines = dict.fromkeys(
        name for one in board.tables for name in (*([one.table.baseline] if one.table.baseline else []), *one.baselines)
    )
    first = tables[0].anchor if tables else ""
    papers = [Option(value="all", words="with papers", anchor=first, rows=None), Option(value="ours", words="ours", anchor=first, rows=None),
              Option(value="papers", words="only papers", anchor="printed", rows=None)]  # fmt: skip
    return (
        *(Switch(key=key, label=key, options=_options(key, tables), scripted=False) for key in ("setting", "backbone", "suite")),
        Switch(key="text", label="text", options=_options("text", _of_several_forms(tables)), scripted=False),
        Switch(key="baseline", label="baseline", scripted=True,
               options=tuple(Option(value=visible(name), words=name, anchor=first, rows=None) for name in baselines)),
        Switch(key="show", label="show", options=tuple(papers) if board.references else (), scripted=True),
    )  # fmt: skip


def _of_several_forms(tables: Sequence[ScoreTable]) -> list[ScoreTable]:
    """Those that differ from another one in the text form alone."""
    places = [(table.setting, table.backbone, table.suite, table.protocol) for table in tables]
    return [table for table, place in zip(tables, places, strict=True) if places.count(place) > 1]


def _options(key: str, tables: Sequence[ScoreTable]) -> tuple[Option, ...]:
    """The values of one field of the tables, each with the first table that has it."""
    found: dict[str, ScoreTable] = {}
    for table in tables:
        found.setdefault(getattr(table, key), table)
    options = [Option(value=visible(value), words=SETTINGS.get(value, value) if key == "setting" else value, anchor=table.anchor, rows=len(table.rows))
               for value, table in found.items()]  # fmt: skip
    if len(options) > 1:
        rows = sum(len(table.rows) for table in tables)
        options.append(Option(value="all", words="all", anchor=tables[0].anchor, rows=rows))
    return tuple(options)


def _figure(figure: Figure) -> PageFigure:
    rows = tuple(tuple(_printed(cell) for cell in row) for row in figure.data[:MOST_DATA])
    numbers = tuple(all(not isinstance(row[i], str) or not row[i] for row in figure.data) for i in range(len(figure.header)))
    return PageFigure(figure=figure, rows=rows, numbers=numbers, more=len(figure.data) - len(rows))


def _printed(cell: str | float) -> str:
    if isinstance(cell, str):
        return cell
    text = (
        f"{cell:,.0f}"
        if float(cell).is_integer() and abs(cell) >= 100
        else f"{cell:,.4g}"
        if abs(cell) < 1000
        else f"{cell:,.0f}"
    )
    return text.replace("-", "\N{MINUS SIGN}")
