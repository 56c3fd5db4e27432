"""Our scores of a paper's table next to the printed ones: as tables, and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bench.base.files import write_or_fail
from bench.base.text import seed_ranges
from bench.board.pages.reproduced import paper_figure, render_reproduced
from bench.cli.options import print_columns, print_json, say
from bench.compare.consistency import verdict_text
from bench.compare.printed import Beside, Reproduced, judge_rows
from bench.papers import SCORES, PaperPart, ReferenceResult
from bench.records import RunsFolder
from bench.run.reproduce import finished_runs_of
from bench.run.table_run import TableRun


def print_printed_rows(order: Sequence[TableRun]) -> None:
    """Print each printed row, its value, and its run."""
    rows = []
    for run in order:
        for row in run.rows:
            value = (row.average or row.cells[0]).printed
            rows.append((row.first.label, value, row.first.runs, run.name))
    print_columns(rows, headings=("published row", "value", "of", "run"), indent=2)
    for note in dict.fromkeys(note for run in order for note in run.notes):
        say(f"note: {note}", indent=2, hang=2)


def print_skipped(table_runs: Sequence[TableRun]) -> None:
    """Print the rows that are not run, and why."""
    print_columns(_skipped_rows(table_runs), headings=("not run", "why"), indent=2, blank=True)


def _skipped_rows(table_runs: Sequence[TableRun]) -> list[tuple[str, str]]:
    """Return (labels of rows, why they were not run), once for each reason."""
    labels: dict[str, list[str]] = {}
    for run in table_runs:
        if run.reason:
            labels.setdefault(run.reason, []).extend(run.labels or (run.name,))
    return [(", ".join(dict.fromkeys(names)), why) for why, names in labels.items()]


def print_comparison(table_runs: Sequence[TableRun], store: RunsFolder, as_json: bool) -> None:
    """Print every printed cell next to ours, with the verdict on it."""
    for title, cells in _compared_cells(table_runs, store).items():
        if as_json:
            for cell in cells:
                sentence = verdict_text(cell, cell.printed)
                print_json([{**asdict(cell), "row": title, "sentence": sentence}])
            continue
        say(title, hang=2)
        print_columns(
            [_cell_columns(cell) for cell in cells],
            headings=("task", "printed", "ours", "as many new runs as the paper had, 95 %"),
            indent=2,
        )
        for note in dict.fromkeys(note for cell in cells for note in cell.notes):
            say(f"note: {note}", indent=2, hang=6)
        click.echo()
    if not as_json:
        print_skipped(table_runs)
        say("each interval is a 95 % interval on its own: of 20 cells, one differs by chance")
        say(f"records: {store.path}; next: bench compare --with-paper --runs {store.path}")


def _compared_cells(
    table_runs: Sequence[TableRun], store: RunsFolder
) -> dict[str, list[Reproduced]]:
    """Return title of a printed row and its run -> the results of its cells."""
    titles = []
    compared = []
    for run in table_runs:
        if run.why_not:
            continue
        records = [record for record, _ in finished_runs_of(run, store)]
        for row in run.rows:
            titles.append(_title(run, row.first))
            compared.append(Beside(row.cells, records, run.differs_from(row.first)))
    by_title: dict[str, list[Reproduced]] = {}
    for title, cells in zip(titles, judge_rows(compared), strict=True):
        by_title.setdefault(title, []).extend(cells)
    return by_title


def _title(run: TableRun, cell: ReferenceResult) -> str:
    """Write "PromCSE (promcse table 1, one run): promcse, unsupervised, bert-base; seeds 42-44"."""
    facts = [f"{cell.paper} table {cell.table}"]
    if cell.runs:
        facts.append(cell.runs)
    if not cell.own_result:
        facts.append(f"copied from {cell.source}")
    title = f"{cell.label} ({', '.join(facts)}): {run.name}"
    seeds = seed_ranges(planned.seed for planned in run.planned if planned.seed is not None)
    if seeds:
        title += f"; seeds {seeds}"
    return title


def _cell_columns(cell: Reproduced) -> tuple[str, str, str, str]:
    printed = cell.printed
    ours = "-" if cell.mean is None else f"{cell.mean:.{cell.decimals}f}"
    value = printed.printed
    if printed.std is not None:
        value += f" ±{printed.std:g}"
    return printed.task, value, ours, verdict_text(cell, printed)


def write_comparison_page(
    file: Path, part: PaperPart, table_runs: Sequence[TableRun], store: RunsFolder
) -> None:
    """Write the page of a figure that is drawn from our runs, or of a table's cells next to ours.

    It also lists the rows that were not run. Raises BenchError if it cannot be written.
    """
    figure = None
    if part.how != SCORES:
        runs = {run.name: finished_runs_of(run, store) for run in table_runs}
        figure = paper_figure(part, {name: ours for name, ours in runs.items() if ours})
    compared = _compared_cells(table_runs, store)
    page = render_reproduced(
        f"{part.name}, run again",
        figure,
        {title: [_cell_columns(cell) for cell in cells] for title, cells in compared.items()},
        _skipped_rows(table_runs),
    )
    write_or_fail(file, page.encode(), hint="--html FILE")
