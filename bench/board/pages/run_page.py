"""The page of one run: its scores, training, cost and origin, and the command that repeats it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bench.base.foreign_text import printable_lines
from bench.base.grid import MAY_BE_BEST, Grid, GridCell, GridColumn, grid, indented
from bench.base.reading import is_plain_file
from bench.base.text import plural
from bench.board.addresses import link, run_file
from bench.board.board import Board
from bench.board.making import FROM_SOURCE
from bench.board.pages.citations import citation_of_run
from bench.board.pages.engine import render_template
from bench.board.pages.links import run_link
from bench.board.repeat import plan_text
from bench.compare.docstrings import spans
from bench.compare.formatting import score
from bench.compare.forms import run_report
from bench.compare.forms.scores import spread_text
from bench.compare.statistics.rows import by_protocol
from bench.compare.statistics.table import INCONCLUSIVE, Cell, Row, Table
from bench.compare.words.finding import verdict_of
from bench.compare.words.names import baseline_name, suite_name, table_name
from bench.records.names import CURVE, PLAN, RECORD
from bench.records.packed import NAME, has_predictions
from bench.records.record import RunRecord
from bench.records.run import Run

UP = 2
"""Folders between a run's page and its version."""


def render_run(board: Board, run: Run) -> str:
    """Write ``runs/<run-id>/index.html``, a function of the board."""
    facts = run_facts(board, run, UP)
    return render_template("run.html", board=board, up=UP, one=facts, spans=spans)


def run_facts(board: Board, run: Run, up: int = 0) -> dict[str, Any]:
    """Return everything about a run, as ``parts.html`` draws it on a page ``up`` folders deep."""
    record = run.record
    # the version of code that was never released says nothing: its commit does
    origin = [fact for fact in run_report.provenance_facts(record) if FROM_SOURCE not in fact]
    sections = [
        run_report.facts_grid("training", run_report.training_facts(record)),
        run_report.facts_grid("cost", run_report.cost_facts(record)),
        run_report.overlap_grid(record.provenance.corpus.overlap),
        run_report.facts_grid("provenance", origin),
    ]
    return {
        "record": record,
        "by": board.senders.get(record.run_id),
        "described": board.described.get(record.method),
        "heads": list(row_heads(board, record)),
        "again": board.command_again([run]),
        "plan": "\n".join(printable_lines(plan_text(run))),
        "files": downloads(board, run, up),
        "citation": citation_of_run(board, record.run_id),
        "scores": [*score_grids_with_rows(board, record), *seed_grids(board, record, up)],
        "recipe": run_report.recipe_with_sources(record),
        "sections": [section for section in sections if section.rows],
    }


def sentences(text: str) -> list[str]:
    """Split a text after each full stop, question mark or exclamation mark."""
    return [part for part in re.split(r"(?<=[^.\s][^.\s][.!?])\s+", text.strip()) if part]


def row_heads(board: Board, record: RunRecord) -> Iterator[dict[str, str]]:
    """Yield for each table that a run is in: its number in the column that ranks; the mean and the
    interval of its row; and the row's verdict."""
    for shown, row in board.rows_of(record.run_id):
        table, cell = shown.table, row.cells[-1]
        head = record.score(table.suite, table.head or "", table.protocol)
        if head is None or cell is None:
            continue
        yield {
            "name": suite_name(table.suite),
            "task": f"{head.task}, {table.protocol}",
            "value": score(head.value, cell.decimals),
            "around": around(cell),
            "verdict": _verdict(table, row),
            "anchor": shown.anchor,
        }


def around(cell: Cell) -> str:
    """Return the interval of a row's mean, with the mean if the row has other runs, too: "its row,
    3 seeds: 64.39, 95 % interval 62.96 to 65.81".
    """
    spread = cell.spread
    if spread is None:
        return ""
    ends = " to ".join(score(end, cell.decimals) for end in (spread.low, spread.high))
    interval = f"{100 * spread.level:g} % interval {ends}"
    if len(cell.values) == 1:
        return interval
    seeds = plural(len(cell.values), "seed")
    return f"its row, {seeds}: {score(cell.mean, cell.decimals)}, {interval}"


def _verdict(table: Table, row: Row) -> str:
    """Return "worse than SimCSE", "inconclusive against SimCSE, may be the best"; "" if there is
    none."""
    words = []
    found = verdict_of(row)
    if found:
        word = "against" if found == INCONCLUSIVE else "than"
        words.append(f"{found} {word} {baseline_name(table)}")
    if row.may_be_best:
        words.append(MAY_BE_BEST)
    return ", ".join(words)


def downloads(board: Board, run: Run, up: int = 0) -> list[tuple[str, str, str]]:
    """Return (name, link, description) of each file that can be downloaded."""
    if board.one_file:
        return []
    linked = [(RECORD, link(run_file(run.record.run_id, RECORD), up), "the record")]
    if (run.folder / CURVE).is_file():
        linked.append((CURVE, link(run_file(run.record.run_id, CURVE), up), "the training curve"))
    if is_plain_file(run.folder / PLAN):
        linked.append((PLAN, link(run_file(run.record.run_id, PLAN), up), "what makes it again"))
    if has_predictions(run.folder):
        linked.append((NAME, link(NAME, up), "predictions of all runs"))
    return linked


def score_grids_with_rows(board: Board, record: RunRecord) -> Iterator[Grid]:
    """Yield a table of each suite and protocol; the sub-datasets of a task are indented below
    it."""
    cells_of = {}
    for shown, row in board.rows_of(record.run_id):
        of_row = shown.table
        cells = dict(zip(of_row.columns, row.cells, strict=True))
        cells_of[of_row.suite, of_row.protocol] = cells
    protocols = by_protocol(record)
    for protocol, table in zip(protocols, run_report.score_grids(record), strict=True):
        cells = cells_of.get(protocol, {})
        rows = []
        task = ""
        for line in table.rows:
            name, value, *rest = (cell.text for cell in line)
            if line.indent:
                if name != task:  # a sub-dataset that is the whole task would repeat it
                    rows.append(indented([name, value, "", "", *rest]))
                continue
            task = name
            cell = cells.get(task)
            paper = score(cell.printed.value, cell.decimals) if cell and cell.printed else ""
            rows.append(indented([name, value, over_seeds(cell), paper, *rest], levels=0))
        yield grid(
            [
                *table.columns[:2],
                *(GridColumn(name, right=True) for name in ("mean of seeds", "paper")),
                *table.columns[2:],
            ],
            rows,
            title=table.title,
        )


def seed_grids(board: Board, record: RunRecord, up: int) -> Iterator[Grid]:
    """Yield the values of every seed of a run's rows, a column for each run; none if there is no
    other seed."""
    for shown, row in board.rows_of(record.run_id):
        if len(row.runs) < 2:
            continue
        columns = []
        for seed, run in zip(row.seeds, row.runs, strict=True):
            name = f"seed {seed} (this)" if run == record.run_id else f"seed {seed}"
            columns.append(GridColumn(name, right=True))
        lines: list[list[GridCell | str]] = [
            [task, *(score(value, cell.decimals) for value in cell.values)]
            for task, cell in zip(shown.table.columns, row.cells, strict=True)
            if cell is not None and len(cell.values) == len(row.runs)
        ]
        lines.append(
            ["", *(GridCell(text="run", link=_seed_link(board, run, up)) for run in row.runs)]
        )
        yield grid(["task", *columns], lines, title=table_name(shown.table))


def _seed_link(board: Board, run: str, up: int) -> str:
    """Link to the page of a run, or to its record if it has no page of its own."""
    if board.page_of[run] == run:
        return run_link(board, run, up)
    return "" if board.one_file else link(run_file(run, "run.json"), up)


def over_seeds(cell: Cell | None) -> str:
    """Return "60.85 ±1.58"; "" for one seed."""
    if cell is None or len(cell.values) < 2:
        return ""
    text = score(cell.mean, cell.decimals)
    half = spread_text(cell)
    if half:
        text += f" ±{half}"
    return text
