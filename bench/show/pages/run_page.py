"""The page of one run: what it scored, how it was trained, what it cost, where it comes from, and how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench.board.board import Board, PublishedRun, TableRow
from bench.board.content import FROM_SOURCE
from bench.board.names import link, run_file
from bench.board.repeat import SET, repeat, without_folders
from bench.compare import statements
from bench.compare.formatting import score
from bench.compare.statistics.table import INCONCLUSIVE, Cell
from bench.runs.packed import NAME, has_predictions
from bench.runs.record import RunRecord
from bench.runs.run import Run
from bench.show.grid import Cell as GridCell
from bench.show.grid import Column, Grid, grid
from bench.show.pages.cosines import cosines
from bench.show.pages.curves import curves
from bench.show.pages.engine import naming, run_link, value_text
from bench.show.pages.engine import render as rendered
from bench.show.tables import report
from bench.show.tables.scores import spread_text

if TYPE_CHECKING:
    from bench.compare.statistics.table import Table

UP = 2  # folders between a run's page and its version


def render(board: Board, run: PublishedRun) -> str:
    """The page ``runs/<run-id>/index.html`` as HTML, a function of the board, the run's curve and its predictions. Raises BenchError
    where it cannot be made."""
    with naming(f"the page of run {run.record.run_id}"):
        return rendered("run.html", board=board, up=UP, one=about(board, run, UP))


def about(board: Board, run: PublishedRun, up: int = 0) -> dict[str, Any]:
    """All about a run, as ``parts.html`` draws it on a page that lies ``up`` folders deep."""
    record, places = run.record, board.by_run.get(run.record.run_id, ())
    again = repeat([record])
    typed = without_folders(record.provenance.command or "")
    sections = [
        report.facts_grid("training", report.training(record, None)),
        report.facts_grid("cost", report.cost(record)),
        report.overlap_grid(record.provenance.corpus.overlap),
        report.facts_grid("provenance", report.provenance(record)),
    ]
    return {
        "record": record,
        "by": run.submitted_by,
        "described": board.described.get(record.method),
        "remarks": remarks(board, record.method),
        "heads": list(heads(record, places)),
        "seeds": list(seeds(board, record, places, up)),
        "again": again,
        "typed": typed if typed != again.command else "",
        "files": [] if board.one_file else list(files(board, run)),
        "scores": [
            *score_grids(record, places),
            *((part.title, untitled(part)) for part in report.shift_grids(record)),
        ],
        "curves": curves(record, run.folder),
        "cosines": cosines(Run(record, run.folder)),
        "recipe": recipe_grid(record),
        "sections": [(part.title, untitled(part)) for part in sections if part.rows],
    }


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[^.\s][^.\s][.!?])\s+", text.strip()) if part]


def remarks(board: Board, method: str) -> list[str]:
    """The sentences of the version's note that name a method: they stand at its rows and on its pages."""
    name = re.compile(rf"(?<![\w-]){re.escape(method)}(?![\w-])")
    return [sentence for sentence in sentences(board.note or "") if name.search(sentence)]


def form_text(table: Table) -> str:
    """ "senteval-all/1, tokenised" """
    return f"{table.protocol}, {table.text}" if table.text else table.protocol


def heads(record: RunRecord, places: Sequence[TableRow]) -> Iterator[dict[str, str]]:
    """Of each table that it is in: its number in the column that ranks, the mean of its row, and the row's verdict."""
    for place in places:
        table, cell = place.of.table, place.row.cells[-1]
        head = (
            record.score(table.suite, table.head, table.protocol, table.text)
            if table.head
            else None
        )
        if head is not None and cell is not None:
            yield {
                "name": table.suite,
                "task": f"{head.task}, {form_text(table)}",
                "value": score(head.value, cell.decimals),
                "around": _around(cell),
                "verdict": _verdict(place),
                "anchor": place.of.anchor,
            }


def _around(cell: Cell) -> str:
    if cell.spread is None:
        return ""
    if len(cell.values) > 1:
        return f"{over_seeds(cell)} over {len(cell.values)} seeds"
    low, high = score(cell.spread.low, cell.decimals), score(cell.spread.high, cell.decimals)
    return f"{low} to {high} ({100 * cell.spread.level:g} %)"


def _verdict(place: TableRow) -> str:
    """ "worse than simcse", "inconclusive against simcse, may be the best"; "" where the row was not compared."""
    verdict, best = statements.verdict(place.row), "may be the best" * place.row.may_be_best
    word = "against" if verdict == INCONCLUSIVE else "than"
    compared = f"{verdict} {word} {place.of.table.baseline}" if verdict else ""
    return ", ".join(filter(None, (compared, best)))


def seeds(
    board: Board, record: RunRecord, places: Sequence[TableRow], up: int
) -> Iterator[tuple[str, Grid]]:
    """Title and values of every seed of its rows, a column for each run; none where there is no other seed."""
    for place in places:
        runs, table = place.row.runs, place.of.table
        if len(runs) < 2:
            continue
        names = [f"seed {seed}" for seed in place.row.seeds]
        columns = [
            Column(name + " (this)" * (run == record.run_id), right=True)
            for name, run in zip(names, runs, strict=True)
        ]
        rows: list[list[GridCell | str]] = [
            [task, *(score(value, cell.decimals) for value in cell.values)]
            for task, cell in zip(table.columns, place.row.cells, strict=True)
            if cell is not None and len(cell.values) == len(runs)
        ]
        rows.append(["", *(GridCell(text="run", link=_seed_link(board, run, up)) for run in runs)])
        yield f"{table.suite}, {form_text(table)}", grid(["task", *columns], rows)


def _seed_link(board: Board, run: str, up: int) -> str:
    """To the page of a run, or to its record where another run's page tells of it."""
    alone = board.page_of[run] == run or board.one_file
    return run_link(board, run, up) if alone else link(run_file(run, "run.json"), up)


def files(board: Board, run: PublishedRun) -> Iterator[tuple[str, str, str]]:
    """(name, link, what it holds) of what can be downloaded."""
    yield "run.json", "run.json", "the record"
    if (run.folder / "curve.jsonl").is_file():
        yield "curve.jsonl", "curve.jsonl", "the training curve"
    if has_predictions(run.folder):
        yield NAME, predictions_link(board, UP), "predictions of all runs"


def predictions_link(board: Board, up: int = 0) -> str:
    """To the file of all predictions, which may lie at a URL."""
    address = board.predictions
    return address if re.match(r"https?://", address) else link(address, up)


# --- tables: scores with what the row of all seeds has and what a paper printed; and what a record says ---


def score_grids(record: RunRecord, places: Sequence[TableRow]) -> Iterator[tuple[str, Grid]]:
    """Title and table of each suite, protocol and text form; the sub-datasets of a task stand indented below it."""
    forms = report.by_form(record)
    for (suite, protocol, text), table in zip(forms, report.score_grids(record), strict=True):
        place = place_of(places, suite, protocol, text)
        rows, task = [], ""
        for row in table.rows:
            name, value, *rest = (one.text for one in row)
            part = name.startswith(" ")
            task = task if part else name
            cell = None if part else cell_of(place, name)
            printed = cell.printed if cell is not None else None
            paper = score(printed.value, cell.decimals) if cell and printed else ""
            if name != f"  {task}":  # a sub-dataset that is the whole task would repeat it
                rows.append((name, value, over_seeds(cell), paper, *rest))
        added = (Column(name, right=True) for name in ("mean of seeds", "paper"))
        yield table.title, grid([*table.columns[:2], *added, *table.columns[2:]], rows)


def place_of(
    places: Sequence[TableRow], suite: str, protocol: str, text: str | None
) -> TableRow | None:
    form = (suite, protocol, text)
    tables = ((place, place.of.table) for place in places)
    return next((p for p, t in tables if (t.suite, t.protocol, t.text) == form), None)


def cell_of(place: TableRow | None, task: str) -> Cell | None:
    if place is None or task not in place.of.table.columns:
        return None
    return place.row.cells[place.of.table.columns.index(task)]


def over_seeds(cell: Cell | None) -> str:
    """ "60.85 ±1.58"; "" for one seed."""
    if cell is None or len(cell.values) < 2:
        return ""
    half = spread_text(cell)
    return score(cell.mean, cell.decimals) + (f" ±{half}" if half else "")


def untitled(table: Grid) -> Grid:
    """A table under a heading that has its title; without the version of code that was never released, whose commit stands next
    to it."""
    rows = tuple(row for row in table.rows if all(cell.text != FROM_SOURCE for cell in row))
    return replace(table, title="", rows=rows)


def recipe_grid(record: RunRecord) -> Grid:
    """Every value with its source; those that the command set come first."""
    ordered = sorted(
        record.recipe.items(), key=lambda item: (not item[1].source.startswith(SET), item[0])
    )
    rows = [
        (key, value_text(value.value), "; ".join(filter(None, (value.source, value.note))))
        for key, value in ordered
    ]
    return grid(("value of", "is", "from"), rows)
