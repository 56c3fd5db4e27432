"""The page of one run: what it scored, how it was trained, what it cost, where it comes from, and how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench.base.text import plural
from bench.board.board import Board
from bench.board.content import FROM_SOURCE
from bench.board.names import link, run_file
from bench.board.repeat import repeat, without_folders
from bench.compare import statements
from bench.compare.formatting import score
from bench.compare.statistics.table import INCONCLUSIVE, Row, Table
from bench.compare.statistics.table import Cell as ScoreCell
from bench.runs.arrays import NAME, has_predictions
from bench.runs.record import RunRecord
from bench.runs.store import Run
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.drawings import cosines, curves
from bench.show.pages.engine import form_text, render_template, run_link
from bench.show.tables import report
from bench.show.tables.scores import spread_text

UP = 2  # folders between a run's page and its version


def render(board: Board, run: Run) -> str:
    """The page ``runs/<run-id>/index.html`` as HTML, a function of the board, the run's curve and its predictions."""
    return render_template("run.html", board=board, up=UP, one=about(board, run, UP))


def about(board: Board, run: Run, up: int = 0) -> dict[str, Any]:
    """All about a run, as ``parts.html`` draws it on a page that lies ``up`` folders deep."""
    record = run.record
    again, typed = repeat([record]), without_folders(record.provenance.command or "")
    sections = [
        report.facts_grid("training", report.training(record)),
        report.facts_grid("cost", report.cost(record)),
        report.overlap_grid(record.provenance.corpus.overlap),
        report.facts_grid("provenance", report.provenance(record)),
    ]
    return {
        "record": record,
        "by": board.senders.get(record.run_id),
        "described": board.described.get(record.method),
        "remarks": remarks(board, record.method),
        "heads": list(heads(board, record)),
        "again": again,
        "typed": typed if typed != again else "",
        "files": files(board, run, up),
        "scores": [*score_grids(board, record), *seed_grids(board, record, up)],
        "curves": curves(run),
        "cosines": cosines(run),
        "recipe": report.recipe(record),
        "sections": [part for part in map(without_source_version, sections) if part.rows],
    }


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[^.\s][^.\s][.!?])\s+", text.strip()) if part]


def remarks(board: Board, method: str) -> list[str]:
    """The sentences of the version's note that name a method: they stand at its rows and on its pages."""
    name = re.compile(rf"(?<![\w-]){re.escape(method)}(?![\w-])")
    return [sentence for sentence in sentences(board.note or "") if name.search(sentence)]


def heads(board: Board, record: RunRecord) -> Iterator[dict[str, str]]:
    """Of each table that it is in: its number in the column that ranks, the interval of its row, and the row's verdict."""
    for shown, row in board.rows_of(record.run_id):
        table, cell = shown.table, row.cells[-1]
        head = record.score(table.suite, table.head or "", table.protocol, table.text)
        if head is None or cell is None:
            continue
        around = ""
        if spread := cell.spread:
            ends = (score(end, cell.decimals) for end in (spread.low, spread.high))
            around = f"{' to '.join(ends)} ({100 * spread.level:g} %) over {plural(len(cell.values), 'seed')}"
        yield {
            "name": table.suite,
            "task": f"{head.task}, {form_text(table)}",
            "value": score(head.value, cell.decimals),
            "around": around,
            "verdict": _verdict(table, row),
            "anchor": shown.anchor,
        }


def _verdict(table: Table, row: Row) -> str:
    """ "worse than simcse", "inconclusive against simcse, may be the best"; "" where the row was not compared."""
    verdict, best = statements.verdict(row), "may be the best" * row.may_be_best
    word = "against" if verdict == INCONCLUSIVE else "than"
    return ", ".join(filter(None, (verdict and f"{verdict} {word} {table.baseline}", best)))


def files(board: Board, run: Run, up: int = 0) -> list[tuple[str, str, str]]:
    """(name, link, what it holds) of what can be downloaded."""
    if board.one_file:
        return []
    names = {"run.json": "the record", "curve.jsonl": "the training curve"}
    linked = [
        (name, link(run_file(run.record.run_id, name), up), what)
        for name, what in names.items()
        if name == "run.json" or (run.folder / name).is_file()
    ]
    if has_predictions(run.folder):
        elsewhere = re.match(r"https?://", board.predictions)
        address = board.predictions if elsewhere else link(board.predictions, up)
        linked.append((NAME, address, "predictions of all runs"))
    return linked


# --- tables: scores with what the row of all seeds has and what a paper printed; and what a record says ---


def score_grids(board: Board, record: RunRecord) -> Iterator[Grid]:
    """A table of each suite, protocol and text form; the sub-datasets of a task stand indented below it."""
    cells_of = {
        (table.suite, table.protocol, table.text): dict(zip(table.columns, row.cells, strict=True))
        for table, row in ((shown.table, row) for shown, row in board.rows_of(record.run_id))
    }
    for form, table in zip(report.by_form(record), report.score_grids(record), strict=True):
        rows, task, cells = [], "", cells_of.get(form, {})
        for line in table.rows:
            name, value, *rest = (one.text for one in line)
            task = task if name.startswith(" ") else name
            cell = cells.get(name)
            paper = score(cell.printed.value, cell.decimals) if cell and cell.printed else ""
            if name != f"  {task}":  # a sub-dataset that is the whole task would repeat it
                rows.append((name, value, over_seeds(cell), paper, *rest))
        added = (Column(name, right=True) for name in ("mean of seeds", "paper"))
        columns = [*table.columns[:2], *added, *table.columns[2:]]
        yield grid(columns, rows, title=table.title)


def seed_grids(board: Board, record: RunRecord, up: int) -> Iterator[Grid]:
    """The values of every seed of its rows, a column for each run; none where there is no other seed."""
    for shown, row in board.rows_of(record.run_id):
        if len(row.runs) < 2:
            continue
        columns = [
            Column(f"seed {seed}" + " (this)" * (run == record.run_id), right=True)
            for seed, run in zip(row.seeds, row.runs, strict=True)
        ]
        lines: list[list[Cell | str]] = [
            [task, *(score(value, cell.decimals) for value in cell.values)]
            for task, cell in zip(shown.table.columns, row.cells, strict=True)
            if cell is not None and len(cell.values) == len(row.runs)
        ]
        lines.append(["", *(Cell(text="run", link=_seed_link(board, run, up)) for run in row.runs)])
        title = f"{shown.table.suite}, {form_text(shown.table)}"
        yield grid(["task", *columns], lines, title=title)


def _seed_link(board: Board, run: str, up: int) -> str:
    """To the page of a run, or to its record where it has no page of its own."""
    if board.page_of[run] == run:
        return run_link(board, run, up)
    return "" if board.one_file else link(run_file(run, "run.json"), up)


def over_seeds(cell: ScoreCell | None) -> str:
    """ "60.85 ±1.58"; "" for one seed."""
    if cell is None or len(cell.values) < 2:
        return ""
    half = spread_text(cell)
    return score(cell.mean, cell.decimals) + (f" ±{half}" if half else "")


def without_source_version(table: Grid) -> Grid:
    """Without the version of code that was never released, whose commit stands next to it."""
    rows = tuple(row for row in table.rows if all(cell.text != FROM_SOURCE for cell in row))
    return replace(table, rows=rows)
