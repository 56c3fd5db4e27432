"""The main page of a version: one sentence that answers, the tables, figures, what papers printed, how it was made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bench.base.text import duration
from bench.board.board import (
    PREVIEW,
    PREVIEW_NOTE,
    YOURS,
    Board,
    BoardTable,
    MethodDescription,
    PublishedRun,
)
from bench.board.content import board_tables
from bench.board.judged_tables import answer
from bench.board.names import link, run_file
from bench.board.repeat import repeat
from bench.compare import statements
from bench.compare.formatting import SEVERAL, setting_words, variant_words, visible
from bench.compare.statistics.table import LOWER_IS_BETTER, Cell, Cost, Row, Table
from bench.runs.packed import has_predictions
from bench.runs.run import Run
from bench.show.grid import TINT, Column, Grid, grid
from bench.show.grid import Cell as GridCell
from bench.show.pages.engine import method_link, naming, run_link, value_text
from bench.show.pages.engine import render as rendered
from bench.show.pages.printed import printed_papers
from bench.show.pages.run_page import (
    about,
    form_text,
    predictions_link,
    remarks,
    sentences,
)
from bench.show.tables.scores import encode_condition, score_grid, short

if TYPE_CHECKING:
    from bench.show.figures.drawing import Figure

SEEN = 3
"""Figures in the row under the tables; the others unfold."""
MOST_DATA = 60
"""Rows of a figure's data on the page; all of them are in its CSV file."""
MOST_ROWS = 100
"""Rows of a table over all suites; a page of a thousand runs has the others in its tables."""


def render(board: Board, figures: Sequence[Figure] = ()) -> str:
    """The page as HTML; it links to board.css and board.js in ``assets/``. Raises BenchError where it cannot be made."""
    with naming("the main page"):
        first, rest = first_sentences(board.note or "")
        values = score_table_values(board, up=0)
        return rendered(
            "board.html",
            **values,
            values=values,
            one_file=board.one_file,
            lasting=re.fullmatch("v[0-9]+", board.version) is not None,
            preview=PREVIEW_NOTE,
            note=first,
            more_note=rest,
            switches=switches(board.tables),
            overviews=overviews(board),
            figures=figures,
            seen=SEEN,
            data_grid=data_grid,
            settings=lambda table: score_grid(table).below,
            methods=methods_grid(board, values["described"]),
            papers=printed_papers(board),
            changes=changes_grid(board),
            yours=[fact for fact in board.made if fact.topic == YOURS],
            made=[fact for fact in board.made if fact.topic != YOURS],
            about=partial(about, board),
            data=Markup(panel_data(board)),  # noqa: S704 - escaped where it is made
        )


def comparison(
    runs: Sequence[Run], tables: Sequence[Table], title: str = "Comparison", note: str | None = None
) -> str:
    """The main page of any runs and their tables as one file, with all about each run; no network. The same runs make the same bytes."""
    by_id = {run.record.run_id: run for run in runs}
    shown = dict.fromkeys(run for table in tables for row in table.rows for run in row.runs)
    board = Board(
        version=PREVIEW,
        date=max((by_id[run].record.provenance.created for run in shown), default="")[:10],
        title=title,
        note=note,
        answer=answer(tables),
        runs=tuple(
            PublishedRun(record=by_id[run].record, folder=by_id[run].folder) for run in shown
        ),
        left_out=(),
        tables=board_tables(
            [(table, "") for table in tables], {run: by_id[run].record for run in shown}
        ),
        references=(),
        methods=tuple(sorted({by_id[run].record.method for run in shown})),
        one_file=True,
    )
    return render(board)


def first_sentences(text: str) -> tuple[str, str]:
    """The first two sentences of a text, and the rest."""
    parts = sentences(text)
    return " ".join(parts[:2]), " ".join(parts[2:])


# --- what the macro of a table of scores takes, on the main page and on a method's ---


def score_table_values(board: Board, up: int) -> dict[str, Any]:
    records = {run.record.run_id: run.record for run in board.runs}
    described = board.described
    sources = {f"{table.paper}:{table.table}": table.anchor for table in board.references}
    return {
        "board": board,
        "up": up,
        "remarks": partial(remarks, board),
        "described": described,
        "printed_at": sources,
        "row_link": lambda row: method_link(board, row.method) or run_link(board, row.runs[0]),
        "variant": variant_words,
        "cost_texts": cost_texts,
        "legend": legend,
        "other_suite": other_suite,
        "trains": lambda row: trains(row, records[row.runs[0]].cost.total_parameters),
        "describe": None,
        "several": SEVERAL,
        "form": form_text,
    }


def cost_texts(row: Row | None, table: Table) -> dict[str, tuple[str, float]]:
    """Heading -> what a row took as printed, and to sort by (-1: not recorded); of no row the headings alone."""
    costs = [one.cost for one in table.rows if one.cost is not None]
    cost = (row.cost if row else None) or Cost()
    seconds, tuning = cost.train_seconds, cost.tuning_seconds
    if row and row.setting == "none" and not seconds:
        seconds = 0.0
    speed, trials = cost.encode_sentences_per_second, cost.tuning_trials or "?"
    texts = {
        "params": (short(cost.trainable_parameters), cost.trainable_parameters),
        "train": ("none" if seconds == 0 else duration(seconds) if seconds else "", seconds),
        "tuning": ("" if tuning is None else f"{duration(tuning)}/{trials}", tuning),
        "encode": (f"{short(speed)}/s" if speed else "", speed),
    }
    shown = {
        "tuning": any(one.tuning_seconds is not None for one in costs),
        "encode": bool(encode_condition(table)),
    }
    return {
        name: (text, -1.0 if amount is None else amount)
        for name, (text, amount) in texts.items()
        if shown.get(name, bool(costs))
    }


COSTS = "params: trained parameters; train: time of training one run, mean over seeds"
TUNING = (
    "tuning: time of all trials of the search for its values, once for all seeds, and their number"
)


def legend(shown: BoardTable) -> list[str]:
    """What the signs and columns of a table mean, and what its numbers are of, a sentence each."""
    table, costs = shown.table, cost_texts(None, shown.table)
    texts = [
        *statements.legend(table, "▲", "▼", "shaded"),
        "bold: highest; underlined: second" * (len(table.rows) > 1),
        COSTS * bool(costs),
        TUNING * ("tuning" in costs),
        shown.selection.rstrip("."),
        shown.cost_note.rstrip(".") * bool(costs),
    ]
    return [text for text in texts if text]


def other_suite(shown: BoardTable, name: str, i: int) -> Cell | None:
    """The cell of row ``i`` in the column of another suite."""
    return next((other.cells[i] for other in shown.beside if other.name == name), None)


def trains(row: Row, total: int | None) -> str:
    """Whether a row trains nothing, a part or the whole encoder; "" where that was not recorded."""
    count = row.cost.trainable_parameters if row.cost else None
    if row.setting == "none" or count == 0:
        return "nothing"
    if count is None or total is None:
        return ""
    return "the whole encoder" if count >= total else "a part"


# --- choices of tables, and tables over all suites ---


def switches(tables: Sequence[BoardTable]) -> dict[str, dict[str, tuple[str, str]]]:
    """Key -> value -> (as the reader sees it, id of the first table that has it), of keys with several values."""
    values_of: dict[str, dict[str, tuple[str, str]]] = {}
    for shown in tables:
        table = shown.table
        values = {
            "setting": (table.setting or "", setting_words(table.setting)),
            "backbone": (table.backbone or SEVERAL, table.backbone or SEVERAL),
            "suite": (table.suite, table.suite),
            "text": (table.text or "", table.text or "any"),
        }
        for key, (value, text) in values.items():
            values_of.setdefault(key, {}).setdefault(visible(value), (text, shown.anchor))
    return {key: options for key, options in values_of.items() if len(options) > 1}


def overviews(board: Board) -> list[tuple[BoardTable, Grid]]:
    """Of each setting and backbone with several suites: its first table, and the average of each row in each suite."""
    places: dict[tuple[str | None, str | None], dict[str, BoardTable]] = {}
    for shown in board.tables:
        if shown.table.head and shown.table.backbone:
            suites = places.setdefault((shown.table.setting, shown.table.backbone), {})
            suites.setdefault(shown.table.suite, shown)
    return [
        (next(iter(suites.values())), _overview(board, suites))
        for suites in places.values()
        if len(suites) > 1
    ]


def _overview(board: Board, suites: Mapping[str, BoardTable]) -> Grid:
    rows: dict[tuple[str, ...], dict[str, GridCell]] = {}
    for suite, shown in suites.items():
        for row in shown.table.rows:
            name = GridCell(text=row.label, link=method_link(board, row.method))
            if (cell := row.cells[-1]) is not None:
                cells = rows.setdefault((row.name, variant_words(row, shown.table)), {"": name})
                cells[suite] = GridCell(
                    number=cell.mean, decimals=cell.decimals, sign=TINT * row.may_be_best
                )
    columns: list[Column | str] = ["method", "", *(Column(suite, right=True) for suite in suites)]
    return grid(
        columns,
        [
            (cells[""], variant, *(cells.get(suite, "") for suite in suites))
            for (_, variant), cells in list(rows.items())[:MOST_ROWS]
        ],
        notes=[
            "Averages of each suite; shaded: may be the best. There is no total: suites have no common scale."
        ],
    )


# --- small tables ---


def data_grid(figure: Figure) -> Grid:
    """The first rows of a figure's data."""
    columns = [
        Column(name, right=all(not isinstance(row[i], str) or not row[i] for row in figure.data))
        for i, name in enumerate(figure.header)
    ]
    rows = [[one if isinstance(one, str) else _number(one) for one in row] for row in figure.data]
    notes = [f"The first {MOST_DATA} of {len(rows):,} rows; all are in the file."]
    return grid(columns, rows[:MOST_DATA], notes=notes if len(rows) > MOST_DATA else [])


def _number(value: float) -> str:
    whole = abs(value) >= 100 and (float(value).is_integer() or abs(value) >= 1000)
    return f"{value:,.0f}" if whole else f"{value:,.4g}"


def methods_grid(board: Board, described: Mapping[str, MethodDescription]) -> Grid:
    """What each method is, in its own words."""
    rows = [
        (GridCell(text=name, link=method_link(board, name)), one.summary, one.paper)
        for name, one in sorted(described.items())
    ]
    return grid(("method", "what it is", "paper"), rows)


def changes_grid(board: Board) -> Grid | None:
    """The rows that changed since the version before; None where there are none."""
    if board.changes is None or not board.changes.rows:
        return None
    rows = [
        (
            row.method,
            f"{row.setting}, {row.backbone}",
            f"{row.suite} {row.task}",
            GridCell(number=row.before),
            GridCell(number=row.now),
            row.differs,
        )
        for row in board.changes.rows
    ]
    before, now = Column(board.changes.before, right=True), Column("now", right=True)
    return grid(("row", "setting, backbone", "suite", before, now, "what differs"), rows)


# --- what the panel of a number shows, as JSON next to the tables ---


def panel_data(board: Board) -> str:
    """The data as JSON that may stand in a script element: no ``<``, no ``&``."""
    runs = {run.record.run_id: run for run in board.runs}
    rows = {  # of rows that begin with the same run the one of most seeds
        row.runs[0]: row
        for row in sorted(
            (row for shown in board.tables for row in shown.table.rows),
            key=lambda row: len(row.runs),
        )
    }
    content = {
        "runs": {run_id: _run(run, board) for run_id, run in runs.items()},
        "rows": _rows([[runs[run].record for run in row.runs] for row in rows.values()]),
        "tables": {shown.anchor: _table(shown.table) for shown in board.tables},
    }
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def _run(run: PublishedRun, board: Board) -> dict[str, Any]:
    """Its seed, who submitted it, and the addresses of its files."""
    record = run.record
    links = {"page": run_link(board, record.run_id)}
    if not board.one_file:
        links["record"] = link(run_file(record.run_id, "run.json"))
        if has_predictions(run.folder):
            links["predictions"] = predictions_link(board)
        if (run.folder / "curve.jsonl").is_file():
            links["curve"] = link(run_file(record.run_id, "curve.jsonl"))
    return {
        "seed": record.seed,
        "by": run.submitted_by and visible(run.submitted_by),
        "links": links,
    }


def _rows(rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """First run of a row -> the command that makes the row again, what bench cannot fetch, and the recipe values in which rows differ."""
    recipes = [
        {key: value_text(one.value) for key, one in records[0].recipe.items()} for records in rows
    ]
    keys = {key for recipe in recipes for key in recipe}
    differing = [
        key for key in sorted(keys) if len({recipe.get(key, "") for recipe in recipes}) > 1
    ]
    made = {}
    for records, recipe in zip(rows, recipes, strict=True):
        again = repeat(records)
        values = {visible(key): visible(recipe[key]) for key in differing if key in recipe}
        made[records[0].run_id] = {
            "command": visible(again.command, limit=None),
            "needs": visible(again.needs, limit=None),
            "recipe": values,
        }
    return made


def _table(table: Table) -> dict[str, Any]:
    lower = [
        visible(task)
        for task in table.columns
        if table.metric in LOWER_IS_BETTER or task in LOWER_IS_BETTER
    ]
    base = next((row.runs[0] for row in table.rows if row.is_baseline), None)
    return {
        "form": visible(form_text(table)),
        "head": table.head and visible(table.head),
        "lower": lower,
        "baseline": base,
        "rows": [
            {
                "runs": row.runs,
                "cells": {
                    visible(task): _cell(cell)
                    for task, cell in zip(table.columns, row.cells, strict=True)
                    if cell is not None
                },
            }
            for row in table.rows
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    """Values by seed, interval, printed value and the comparison with the baseline, rounded as they are printed."""
    d, spread, printed, against = cell.decimals, cell.spread, cell.printed, cell.against
    made: dict[str, Any] = {
        "d": d,
        "n": cell.n,
        "values": [round(value, d) for value in cell.values],
    }
    if spread is not None:
        covers = f"{100 * spread.level:g} % interval over {spread.covers}"
        made |= {"low": round(spread.low, d), "high": round(spread.high, d), "covers": covers}
    if printed is not None:
        source = visible(printed.source.replace(":", ", table ")) + (
            "" if printed.own else ", copied"
        )
        made["printed"] = {"value": printed.value, "source": source, "std": printed.std}
    if against is not None and against.verdict is not None:
        ends = [
            round(end or 0.0, d) for end in (against.difference, against.ci_low, against.ci_high)
        ]
        level, p = f"{100 * (against.ci_level or 0.0):.3g}", f"{against.p or 0.0:.2g}"
        made["against"] = {"verdict": against.verdict, "ends": ends, "level": level, "p": p}
    return made
