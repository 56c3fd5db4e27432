"""The main page of a version: one sentence that answers, the tables, figures, what papers printed, how it was made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from bench.base.paths import path_name
from bench.base.text import list_names, value_text, visible
from bench.board.board import PREVIEW, PREVIEW_NOTE, Board, headline
from bench.board.repeat import NOT_REPEATABLE, new_row, repeat
from bench.board.tables import BoardTable, board_tables
from bench.compare.formatting import SEVERAL, setting_words, variant_words
from bench.compare.statistics.table import LOWER_IS_BETTER, Row, Table
from bench.records.record import RunRecord
from bench.records.store import Run
from bench.show.figures import Figure
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.engine import method_link, render_template, run_link
from bench.show.pages.printed import printed_papers
from bench.show.pages.run_page import downloads, remarks_on, run_facts, sentences
from bench.show.tables.data import table_data
from bench.show.tables.scores import COSTS, cost_texts, legend, score_grid

SEEN = 3
"""Figures in the row under the tables; the others unfold."""
ONE_FORM = "only one form"
"""What the choice of a text form calls tables of tasks that have no others."""
MOST_DATA = 60
"""Rows of a figure's data on the page; all of them are in its CSV file."""


def render_board(board: Board, figures: Sequence[Figure] = ()) -> str:
    """The page as HTML; it links to board.css and board.js in ``assets/``."""
    note = sentences(board.note or "")
    return render_template(
        "board.html",
        board=board,
        up=0,
        one_file=board.one_file,
        preview=PREVIEW_NOTE if board.version == PREVIEW else "",
        note=" ".join(note[:2]),
        more_note=" ".join(note[2:]),
        add_row=add_row(board),
        switches=switches(board.tables),
        several=SEVERAL,
        head_first=head_first,
        variant=variant_words,
        trains=trains,
        costs=lambda table: [
            name for name in COSTS if any(cost_texts(row)[name][0] for row in table.rows)
        ],
        cost_texts=cost_texts,
        legend=legend,
        score_grid=score_grid,
        lower=LOWER_IS_BETTER,
        remarks=partial(remarks_on, board),
        figures=figures,
        seen=SEEN,
        data_grid=data_grid,
        methods=methods_grid(board),
        papers=printed_papers(board),
        changes=changes_grid(board),
        about=partial(run_facts, board),
        data=as_script(panel_data(board)),
    )


def comparison(
    runs: Sequence[Run], tables: Sequence[Table], title: str = "Comparison", note: str | None = None
) -> str:
    """The main page of any runs and their tables as one file, with all about each run; no network. The same runs make the same bytes."""
    in_rows = {run for table in tables for row in table.rows for run in row.runs}
    shown = [run for run in runs if run.record.run_id in in_rows]
    return render_board(
        Board(
            version=PREVIEW,
            date=max((run.record.provenance.created for run in shown), default="")[:10],
            title=title,
            note=note,
            answer=headline(tables),
            runs=tuple(shown),
            left_out=(),
            tables=board_tables(tables, {run.record.run_id: run.record for run in shown}),
            one_file=True,
        )
    )


def add_row(board: Board) -> str:
    """The command that adds a row of another method to the largest table of trained rows; NOT_REPEATABLE if there is none."""
    table = main_table(board)
    rows = [[board.records[run] for run in row.runs] for row in table.rows]
    return new_row(rows, rows[table.rows.index(row_to_copy(board, table))])


def main_table(board: Board) -> Table:
    """The publisher's table with the most rows, the first of equals; one in which something is trained if there is any."""
    tables = [shown.table for shown in board.tables if not shown.table.sender]
    trained = [table for table in tables if any(is_trained(board, row) for row in table.rows)]
    candidates = trained or tables or [shown.table for shown in board.tables]
    return max(candidates, key=lambda table: len(table.rows))


def row_to_copy(board: Board, table: Table) -> Row:
    """The row whose seeds and training another method is to have: the baseline if it is trained, else the trained row of most seeds."""
    trained = [row for row in table.rows if is_trained(board, row)]
    for row in trained:
        if row.is_baseline:
            return row
    return max(trained or table.rows, key=lambda row: len(row.runs))


def is_trained(board: Board, row: Row) -> bool:
    return board.records[row.runs[0]].training is not None


# --- the tables of scores ---


def head_first(table: Table, cells: Sequence[Any]) -> Sequence[Any]:
    """What belongs to the columns of a table, the column that ranks before the others."""
    return [*cells[-1:], *cells[:-1]] if table.head else cells


def trains(board: Board, row: Row) -> str:
    """Whether a row trains nothing, a part or the whole encoder; "" where that was not recorded."""
    count = row.cost.trainable_parameters if row.cost else None
    if row.setting == "none" or count == 0:
        return "nothing"
    total = board.records[row.runs[0]].cost.total_parameters
    if count is None or total is None:
        return ""
    return "the whole encoder" if count >= total else "a part"


# --- choices of tables ---


def switches(tables: Sequence[BoardTable]) -> dict[str, dict[str, tuple[str, str]]]:
    """Key -> value -> (as the reader sees it, id of the first table that has it), of keys with several values."""
    values_of: dict[str, dict[str, tuple[str, str]]] = {}
    for shown in tables:
        table = shown.table
        values = {
            "setting": (table.setting or "", setting_words(table.setting)),
            "backbone": (table.backbone or SEVERAL, table.backbone or SEVERAL),
            "suite": (table.suite, table.suite),
            "text": (table.text or "", table.text or ONE_FORM),
        }
        for key, (value, text) in values.items():
            values_of.setdefault(key, {}).setdefault(visible(value), (text, shown.anchor))
    return {key: options for key, options in values_of.items() if len(options) > 1}


# --- small tables ---


def methods_grid(board: Board) -> Grid:
    """Every method of the board's rows, with what it is and its paper; of one that is not described here only where its code is from."""
    rows = []
    for method in board.methods:
        name = Cell(text=method, link=method_link(board, method))
        described = board.described.get(method)
        if described is not None:
            rows.append((name, described.cls.summary, described.cls.paper))
            continue
        records = [run.record for run in board.runs if run.record.method == method]
        if not any(record.evaluated_as for record in records):
            rows.append((name, code_origin(records), ""))
    return grid(("method", "what it is", "paper"), rows)


def code_origin(records: Sequence[RunRecord]) -> str:
    """ "a method of mine.py"; "" if no record says where the code is from."""
    packages = {record.provenance.plugin.package for record in records}
    names = sorted({path_name(package) for package in packages if package})
    return f"a method of {list_names(names)}" if names else ""


def data_grid(figure: Figure) -> Grid:
    """The first rows of a figure's data."""
    columns = [
        Column(name, right=all(not isinstance(row[i], str) or not row[i] for row in figure.data))
        for i, name in enumerate(figure.header)
    ]
    rows = [[one if isinstance(one, str) else _number(one) for one in row] for row in figure.data]
    return grid(
        columns,
        rows[:MOST_DATA],
        notes=[f"The first {MOST_DATA} of {len(rows):,} rows; all are in the file."]
        if len(rows) > MOST_DATA
        else [],
    )


def _number(value: float) -> str:
    whole = abs(value) >= 100 and (float(value).is_integer() or abs(value) >= 1000)
    return f"{value:,.0f}" if whole else f"{value:,.4g}"


def changes_grid(board: Board) -> Grid | None:
    """The rows that changed since the version before; None where there are none."""
    if board.changes is None or not board.changes.rows:
        return None
    before, now = Column(board.changes.before, right=True), Column("now", right=True)
    return grid(
        ("row", "setting, backbone", "suite", before, now, "what differs"),
        [
            (
                row.row,
                row.where,
                row.suite,
                Cell(number=row.before),
                Cell(number=row.now),
                row.differs,
            )
            for row in board.changes.rows
        ],
    )


# --- what the panel of a number shows, as JSON next to the tables ---


def panel_data(board: Board) -> dict[str, Any]:
    """The tables as they stand in tables.json; by run its seed, its sender and its files; by the first run of a row how to make it again."""
    rows = {  # of rows that begin with the same run the one of most seeds
        row.runs[0]: row for _, row in sorted(board.rows, key=lambda pair: len(pair[1].runs))
    }
    return {
        "tables": {shown.anchor: table_data(shown.table) for shown in board.tables},
        "runs": {run.record.run_id: _run(board, run) for run in board.runs},
        "rows": {run: _row(board, row) for run, row in rows.items()},
    }


def _run(board: Board, run: Run) -> dict[str, Any]:
    record, sender = run.record, board.senders.get(run.record.run_id)
    return {
        "seed": record.seed,
        "by": sender and visible(sender),
        "links": {
            "page": run_link(board, record.run_id),
            **{name: link for name, link, _ in downloads(board, run)},
        },
    }


def _row(board: Board, row: Row) -> dict[str, Any]:
    """The command that makes a row again, and the recipe values."""
    records = [board.records[run] for run in row.runs]
    command = repeat(records)
    return {
        "command": visible(command, limit=None),
        "repeatable": command != NOT_REPEATABLE,
        "recipe": {
            visible(key): visible(value_text(one.value)) for key, one in records[0].recipe.items()
        },
    }


def as_script(content: Any) -> Markup:
    """JSON that may stand in a script element: no ``<``, no ``&``, no character beyond ASCII."""
    return Markup(  # noqa: S704
        json.dumps(content, separators=(",", ":"), allow_nan=False).translate(
            {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}
        )
    )
