"""The main page of a version: one sentence that answers, the tables, figures, what papers printed, how it was made."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench.board.board import PREVIEW_NOTE, YOURS
from bench.board.changes import ChangedRow
from bench.board.names import link, search_file
from bench.board.repeat import repeat
from bench.compare.formatting import setting_words, visible
from bench.compare.statements import compared
from bench.compare.statistics.table import AVERAGE, LOWER_IS_BETTER
from bench.runs.packed import NAME, has_predictions
from bench.show.figures.drawing import number
from bench.show.pages.engine import minus, value_words
from bench.show.pages.engine import render as rendered
from bench.show.pages.overview import PageOverview, page_overviews
from bench.show.pages.printed import PrintedPaper, printed_papers
from bench.show.pages.run_page import source
from bench.show.pages.score_tables import (
    WORDS,
    ScoreTable,
    form_words,
    group_words,
    letter,
    score_tables,
)
from bench.show.tables.lines import SIGNS

if TYPE_CHECKING:
    from bench.board.board import Board, BoardTable, Fact, PublishedRun
    from bench.compare.statistics.table import Cell, Row, Table
    from bench.show.figures import Figure


SEEN = 3
"""Figures in the row under the tables; the others unfold."""
MOST_DATA = 60
"""Rows of a figure's data on the page; all of them are in its CSV file."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One of the things that may be shown."""

    value: str  # as it stands in the address of a view
    words: str  # as the reader sees it
    anchor: str  # id of the first table that it shows: where the link leads without a script
    rows: int | None  # how many rows that table has; None where it is no matter of rows


@dataclass(frozen=True, kw_only=True)
class Switch:
    """A choice of what is shown."""

    key: str  # as it stands in the address of a view
    label: str  # as the reader sees it
    options: tuple[Option, ...]  # in the order of the tables
    scripted: bool  # it does nothing without a script, and is not shown then
    own: bool = False  # one of the choices behind a word


@dataclass(frozen=True, kw_only=True)
class PageFigure:
    """A drawing with its data."""

    figure: Figure  # the drawing itself
    rows: tuple[tuple[str, ...], ...]  # the first rows of its data, as printed
    numbers: tuple[bool, ...]  # of each column, whether it holds numbers
    more: int  # rows that are in the CSV file only


@dataclass(frozen=True, kw_only=True)
class BoardPage:
    """Everything that the main page shows."""

    title: str  # of the leaderboard
    version: str  # such as v1
    alone: bool  # a preview where nothing is published: there is no page of all versions
    lasting: bool  # it is a version, which never changes, and no preview
    date: str  # of the newest own run
    answer: str  # one computed sentence
    note: str | None  # what the publisher has to say, its first two sentences
    rest: str  # the others; may be empty
    counts: str  # how many runs, methods and seeds
    switches: tuple[Switch, ...]  # choices that there are; one with a single option is none
    tables: tuple[ScoreTable, ...]  # one per setting, backbone, suite, protocol and text form
    figures: tuple[PageFigure, ...]  # the three that everyone sees
    more_figures: tuple[PageFigure, ...]  # those that a reader asks for
    printed: tuple[PrintedPaper, ...]  # the papers' tables
    overviews: tuple[
        PageOverview, ...
    ]  # one row per method over all suites, for each setting and backbone of several suites
    yours: tuple[
        Fact, ...
    ]  # how a reader's own run gets into the tables; empty where there is no table
    plan: bool  # the version holds one
    searches: tuple[tuple[str, str], ...]  # (name, address of its page)
    reproduced: bool  # some printed number has runs here
    made: tuple[
        tuple[str, tuple[Fact, ...]], ...
    ]  # (topic, facts): how it was made, and how to go on from it
    changes: tuple[ChangedRow, ...]  # rows that changed since the version before
    before: str  # the version before; empty for the first
    left_out: tuple[str, ...]  # runs that are not in the tables, one line each
    data: str  # what the panel of a number shows, as JSON for a script element


def render(board: Board, figures: Sequence[Figure] = ()) -> str:
    """The page as HTML; it links to board.css, panel.js and board.js in ``assets/``, which lie among the templates."""
    from markupsafe import Markup

    page = board_page(board, figures)
    return rendered(
        "board.html",
        page=page,
        preview=PREVIEW_NOTE,
        own_run=YOURS,
        signs=SIGNS,
        words=WORDS,
        data=Markup(page.data),
    )  # noqa: S704 - escaped where they are made


def board_page(board: Board, figures: Sequence[Figure] = ()) -> BoardPage:
    """The page's content: a pure function of the board."""
    tables = score_tables(board, _families_of_runs(board))
    printed = printed_papers(board)
    note, rest = first_sentences(board.note or "")
    topics: dict[str, list[Fact]] = {}
    for fact in board.made:
        topics.setdefault(fact.topic, []).append(fact)
    yours = topics.pop(YOURS, [])
    return BoardPage(
        title=board.title,
        version=board.version,
        alone=board.alone,
        lasting=re.fullmatch("v[0-9]+", board.version) is not None,
        date=board.date,
        answer=board.answer,
        note=note or None,
        rest=rest,
        counts=_counts(board),
        switches=tuple(switch for switch in _switches(board, tables) if len(switch.options) > 1),
        tables=tables,
        figures=tuple(_figure(figure) for figure in figures[:SEEN]),
        more_figures=tuple(_figure(figure) for figure in figures[SEEN:]),
        printed=printed,
        overviews=page_overviews(board),
        yours=tuple(yours),
        plan=board.plan is not None,
        searches=tuple(
            (search.name, search_file(search.name, "html")) for search in board.searches
        ),
        reproduced=any(table.reproduced for paper in printed for table in paper.tables),
        made=tuple((topic, tuple(facts)) for topic, facts in topics.items()),
        changes=board.changes.rows if board.changes else (),
        before=board.changes.before if board.changes else "",
        left_out=board.left_out,
        data=board_data(board),
    )


def first_sentences(text: str) -> tuple[str, str]:
    """The first two sentences of a text, and the rest."""
    ends = [end.end() for end in re.finditer(r"[.!?](?=\s+[^a-z\s])", text)]
    at = ends[1] if len(ends) > 1 else len(text)
    return text[:at], text[at:].strip()


def _counts(board: Board) -> str:
    """ "18 runs of 6 methods" """
    runs, methods = len(board.runs), len({run.record.method for run in board.runs})
    return f"{runs:,} run{'s' * (runs != 1)} of {methods:,} method{'s' * (methods != 1)}"


def _switches(board: Board, tables: Sequence[ScoreTable]) -> tuple[Switch, ...]:
    first = tables[0].anchor if tables else ""
    papers = [
        Option(value="all", words="runs and papers", anchor=first, rows=None),
        Option(value="ours", words="runs alone", anchor=first, rows=None),
        Option(value="papers", words="papers alone", anchor="printed", rows=None),
    ]
    return (
        *(
            Switch(key=key, label=key, options=_options(key, tables), scripted=False)
            for key in ("setting", "backbone", "suite")
        ),
        Switch(
            key="text",
            label="text",
            options=_options("text", _of_several_forms(tables)),
            scripted=False,
        ),
        Switch(
            key="metric",
            label="metric",
            own=True,
            scripted=True,
            options=_every(
                {"pearson": "Pearson"} if _has_pearson(board) else {}, first, "Spearman"
            ),
        ),
        Switch(
            key="family",
            label="family",
            own=True,
            scripted=True,
            options=_every(_families(tables), first),
        ),
        Switch(
            key="trains",
            label="trains",
            own=True,
            scripted=True,
            options=_every(_trained(tables), first),
        ),
        Switch(
            key="time",
            label="training time",
            own=True,
            scripted=True,
            options=_every(_times(tables), first),
        ),
        Switch(
            key="show",
            label="show",
            options=tuple(papers) if board.references else (),
            scripted=True,
        ),
    )


_TRAINS = {"none": "nothing", "part": "a part", "all": "the whole encoder"}
_TIMES = {60: "to 1 min", 600: "to 10 min", 3600: "to 1 h", 36000: "to 10 h"}


def _every(values: Mapping[str, str], anchor: str, none: str = "any") -> tuple[Option, ...]:
    """The values of a filter, after the one that filters nothing; nothing where there are none."""
    named = {"": none, **values} if values else {}
    return tuple(
        Option(value=value, words=words, anchor=anchor, rows=None) for value, words in named.items()
    )


def _trained(tables: Sequence[ScoreTable]) -> dict[str, str]:
    """What is trained, where rows differ in that."""
    values = {row.trains for table in tables for row in table.rows} - {""}
    return (
        {value: words for value, words in _TRAINS.items() if value in values}
        if len(values) > 1
        else {}
    )


def _families_of_runs(board: Board) -> dict[str, str]:
    """Run id -> family of its method, as its recipe file says; of methods that are not installed nothing is known."""
    records = [run.record for run in board.runs]
    methods = {
        record.run_id: source(record.method, record.provenance.plugin.package) for record in records
    }
    return {run_id: method.file.family for run_id, method in methods.items() if method}


def _families(tables: Sequence[ScoreTable]) -> dict[str, str]:
    """Families of methods, where rows are of several."""
    families = sorted({row.family for table in tables for row in table.rows} - {""})
    return {name: name for name in families} if len(families) > 1 else {}


def _times(tables: Sequence[ScoreTable]) -> dict[str, str]:
    """Times of training that some rows take no more than, and others do."""
    spent = [
        row.costs[table.costs.index("train")][1]
        for table in tables
        for row in table.rows
        if row.costs
    ]
    known = [seconds for seconds in spent if seconds >= 0]
    return {
        str(most): words
        for most, words in _TIMES.items()
        if any(s <= most for s in known) and any(s > most for s in known)
    }


def _has_pearson(board: Board) -> bool:
    by_id = {run.record.run_id: run for run in board.runs}
    return any(
        any(_pearson(row, table.table, by_id)) for table in board.tables for row in table.table.rows
    )


def _pearson(row: Row, table: Table, by_id: Mapping[str, PublishedRun]) -> list[float]:
    """Pearson's correlation of a row on each task, mean over its runs; 0 where a run has none. Of all pairs at once, as the STS sets are scored."""
    means = []
    for task in table.columns:
        scores = [
            by_id[run].record.score(table.suite, task, table.protocol, table.text)
            for run in row.runs
        ]
        details = [score.detail.get("pearson") if score is not None else None for score in scores]
        values = [
            number(detail.get("all") if isinstance(detail, Mapping) else detail)
            for detail in details
        ]
        known = [value for value in values if value is not None]
        means.append(round(fmean(known), 4) if known and len(known) == len(values) else 0)
    return means


def _of_several_forms(tables: Sequence[ScoreTable]) -> list[ScoreTable]:
    """Those that differ from another one in the text form alone."""
    places = [(table.setting, table.backbone, table.suite, table.protocol) for table in tables]
    return [table for table, place in zip(tables, places, strict=True) if places.count(place) > 1]


def _options(key: str, tables: Sequence[ScoreTable]) -> tuple[Option, ...]:
    """The values of one field of the tables, each with the first table that has it."""
    first: dict[str, ScoreTable] = {}
    for table in tables:
        first.setdefault(getattr(table, key), table)
    options = []
    for value, table in first.items():
        words = setting_words(value) if key == "setting" else value
        options.append(
            Option(value=visible(value), words=words, anchor=table.anchor, rows=len(table.rows))
        )
    if len(options) > 1:
        rows = sum(len(table.rows) for table in tables)
        options.append(Option(value="all", words="all", anchor=tables[0].anchor, rows=rows))
    return tuple(options)


def _figure(figure: Figure) -> PageFigure:
    rows = tuple(tuple(_printed(cell) for cell in row) for row in figure.data[:MOST_DATA])
    numbers = tuple(
        all(not isinstance(row[i], str) or not row[i] for row in figure.data)
        for i in range(len(figure.header))
    )
    return PageFigure(figure=figure, rows=rows, numbers=numbers, more=len(figure.data) - len(rows))


def _printed(cell: str | float) -> str:
    if isinstance(cell, str):
        return cell
    whole = abs(cell) >= 1000 or (abs(cell) >= 100 and float(cell).is_integer())
    return minus(f"{cell:,.0f}" if whole else f"{cell:,.4g}")


# --- What the panel of a number shows, as data beside the tables: values by seed, intervals, commands, files ---
# Everything is an index, a number or a short text, because a page of a thousand runs has ten thousand numbers.


def board_data(board: Board) -> str:
    """The data as JSON that may stand in a script element: no ``<``, no ``&``."""
    places = {run.record.run_id: i for i, run in enumerate(board.runs)}
    by_id = {run.record.run_id: run for run in board.runs}
    by_anchor = {table.anchor: table for table in board.tables}
    texts: dict[str, int] = {}
    content: dict[str, Any] = {
        "runs": [_run(run, board) for run in board.runs],
        "tables": {
            table.anchor: _table(table, places, by_id, by_anchor, texts, board.finished(table))
            for table in board.tables
        },
    }
    content["texts"] = list(texts)
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def _run(run: PublishedRun, board: Board) -> list[Any]:
    """[folder, seed or null, has a curve, who submitted it or null], then the folder of the page that tells of it, if elsewhere."""
    record, path = run.record, f"runs/{run.record.run_id}"
    curve = int((run.folder / "curve.jsonl").is_file())
    told = board.page_of[record.run_id]
    return [
        link(path),
        record.seed,
        curve,
        run.submitted_by,
        *([link(f"runs/{told}")] if told != record.run_id else []),
    ]


def _table(
    shown: BoardTable,
    places: Mapping[str, int],
    by_id: Mapping[str, PublishedRun],
    by_anchor: Mapping[str, BoardTable],
    texts: dict[str, int],
    finished: Sequence[tuple[BoardTable, int]],
) -> dict[str, Any]:
    table = shown.table
    columns = [
        _column(table, j, [row.cells[j] for row in table.rows], by_id)
        for j in range(len(table.columns))
    ]
    cells = [list(row.cells) for row in table.rows]
    for other in shown.beside:
        own = by_anchor[other.anchor].table
        j = own.columns.index(other.name) if other.name in own.columns else 0
        columns.append(_column(own, j, other.cells, by_id))
        for row, cell in zip(cells, other.cells, strict=True):
            row.append(cell)
    ns = [column["n"] for column in columns]
    covers = list(
        dict.fromkeys(
            _covers(cell) for row in cells for cell in row if cell is not None and cell.spread
        )
    )
    suites = (table.suite, *(other.suite for other in shown.beside))
    metrics: dict[str, Any] = {}
    pearson = [_pearson(row, table, by_id) for row in table.rows]
    if any(map(any, pearson)):
        scale = [_pearson(other.table.rows[i], other.table, by_id) for other, i in finished]
        metrics["pearson"] = {
            "words": group_words(replace(table, metric="pearson")),
            "rows": pearson,
            "finished": scale,
        }
    return {
        "columns": columns,
        "covers": covers,
        "other": metrics,
        "recipe": _recipes(table, by_id, texts),
        "rows": [
            [
                [places[run] for run in row.runs],
                [_cell(cell, n, covers) for cell, n in zip(values, ns, strict=True)],
                _repeat(row, by_id, suites, texts),
            ]
            for row, values in zip(table.rows, cells, strict=True)
        ],
        "baseline": _baseline(shown, by_anchor),
    }


def _repeat(
    row: Row, by_id: Mapping[str, PublishedRun], suites: Sequence[str], texts: dict[str, int]
) -> list[int]:
    """Places among ``texts`` of the command that makes the row again: up to its suites, the rest, and what bench cannot fetch for it."""
    records = [by_id[run].record for run in row.runs]
    command = repeat(
        records,
        [
            suite
            for suite in dict.fromkeys(suites)
            if any(score.suite == suite for score in records[0].scores)
        ],
    )
    what, suite, rest = command.command.rpartition(" --suite ")
    return [
        texts.setdefault(visible(text, limit=None), len(texts))
        for text in (what, suite + rest, command.needs)
    ]


def _recipes(
    table: Table, by_id: Mapping[str, PublishedRun], texts: dict[str, int]
) -> dict[str, list[int]]:
    """Recipe key -> place among ``texts`` of its value in each row, of the keys in which rows differ; "" where a row has no such key."""
    recipes = [by_id[row.runs[0]].record.recipe for row in table.rows]
    numbered = {}
    for key in sorted({key for recipe in recipes for key in recipe}):
        values = [
            visible(value_words(recipe[key].value), limit=None) if key in recipe else ""
            for recipe in recipes
        ]
        if len(set(values)) > 1:
            numbered[visible(key, limit=None)] = [
                texts.setdefault(value, len(texts)) for value in values
            ]
    return numbered


def _column(
    table: Table, j: int, cells: Sequence[Cell | None], by_id: Mapping[str, PublishedRun]
) -> dict[str, Any]:
    task = table.columns[j]
    scored = [cell for cell in cells if cell is not None]
    first = next((row for row in table.rows if row.cells[j] is not None), None)
    file = _file(table, task, first, by_id) if first is not None and task != AVERAGE else ""
    return {
        "task": visible(task),
        "how": visible(form_words(table)),
        "n": Counter(cell.n for cell in scored).most_common(1)[0][0] if scored else 0,
        "d": scored[0].decimals if scored else 2,
        "file": file,
        "low": int(table.metric in LOWER_IS_BETTER or task in LOWER_IS_BETTER),
    }


def _file(table: Table, task: str, row: Row, by_id: Mapping[str, PublishedRun]) -> str:
    """Where the predictions of a task lie below a run's folder, as a link; "" where none are kept."""
    for run_id in row.runs:
        run = by_id[run_id]
        for score in run.record.scores:
            if (
                score.suite == table.suite
                and score.task == task
                and score.protocol == table.protocol
            ):
                if (
                    table.text
                    and score.text not in (table.text, None)
                    and not (score.text or "").startswith("other-")
                ):
                    continue
                return NAME if has_predictions(run.folder) else ""
    return ""


def _covers(cell: Cell) -> str:
    return (
        f"{100 * cell.spread.level:g} % interval over {cell.spread.covers}" if cell.spread else ""
    )


def _cell(cell: Cell | None, n: int, covers: Sequence[str]) -> Any:
    """[values by seed, low, high, printed or 0, items or 0, what the interval covers]; 0 where nothing was scored.

    Zeros at the end are left out: items are those of the column, the interval covers the first of ``covers``.
    """
    if cell is None:
        return 0
    d, paper = cell.decimals, cell.printed
    low, high = (round(cell.spread.low, d), round(cell.spread.high, d)) if cell.spread else (0, 0)
    printed = (
        [
            paper.value,
            visible(paper.source.replace(":", ", table ")),
            int(paper.own),
            paper.std or 0,
        ]
        if paper
        else 0
    )
    numbers = [
        [round(value, d) for value in cell.values],
        low,
        high,
        printed,
        0 if cell.n == n else cell.n,
        covers.index(_covers(cell)) if cell.spread else 0,
    ]
    while numbers[-1] == 0:
        numbers.pop()
    return numbers


def _baseline(shown: BoardTable, by_anchor: Mapping[str, BoardTable]) -> dict[str, Any] | None:
    """Name and row of the baseline, and each row's verdicts on the table's own column that ranks and on those beside it."""
    table = shown.table
    base = next((i for i, row in enumerate(table.rows) if row.is_baseline), None)
    if base is None:
        return None
    rows = []
    for row in table.rows:
        verdicts: list[Any] = [0] * len(row.cells)
        verdicts[-1] = _against(row, table)
        for other in shown.beside:
            own = by_anchor[other.anchor].table
            found = next((one for one in own.rows if one.runs[:1] == row.runs[:1]), None)
            alike = own.suite == other.suite and own.columns[-1] == other.name
            verdicts.append(_against(found, own) if found is not None and alike else 0)
        rows.append(verdicts)
    return {"name": visible(table.baseline or ""), "row": base, "rows": rows}


def _number(value: float) -> float:
    """Two digits; 1 and 0 as they are short."""
    short = float(f"{value:.2g}")
    return int(short) if short.is_integer() else short


def _against(row: Row, table: Table) -> Any:
    """[class of the verdict, difference, low, high, level in per cent, p]; 0 where nothing was tested."""
    against, cell, sign = compared(row), row.cells[-1], letter(row, table)
    if against is None or cell is None or not sign:
        return 0
    numbers = (against.difference, against.ci_low or 0.0, against.ci_high or 0.0)
    return [
        sign,
        *(round(number, cell.decimals) for number in numbers),
        float(f"{100 * (against.ci_level or 0.0):.3g}"),
        _number(against.p or 0),
    ]
