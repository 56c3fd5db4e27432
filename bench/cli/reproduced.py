"""What became of a paper's table or figure that was run again: ours beside the print on the terminal, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bench.base.files import write_or_fail
from bench.base.text import seed_ranges
from bench.cli.columns import print_columns, say
from bench.cli.options import json_text
from bench.compare.printed import Beside, Reproduced, judge_rows, verdict_text
from bench.references import SCORES, Part, ReferenceResult
from bench.run.reproduce.runs import finished
from bench.run.reproduce.table import TableRun
from bench.runs import RunsFolder
from bench.show.pages.reproduced import paper_figure, render

CELLS = ("task", "printed", "ours", "as many new runs as the paper had, 95 %")
CHANCE = "each interval is a 95 % one by itself: of 20 cells one differs by chance alone"


def show_rows(order: Sequence[TableRun]) -> None:
    """Each printed row, its printed value, and the run that it means."""
    rows = [
        (row.first.label, (row.average or row.cells[0]).printed, row.first.runs, run.name)
        for run in order
        for row in run.rows
    ]
    if rows:
        print_columns(rows, headings=("printed row", "value", "of", "run"), indent=2)
    for note in dict.fromkeys(note for run in order for note in run.notes):
        say(f"note: {note}", indent=2, hang=2)


def show_skipped(listed: Sequence[TableRun]) -> None:
    """Rows that are not run, and why."""
    if rows := skipped_rows(listed):
        click.echo()
        print_columns(rows, headings=("not run", "why"), indent=2)


def skipped_rows(listed: Sequence[TableRun]) -> list[tuple[str, str]]:
    """(labels of rows, why they were not run), once for each reason."""
    labels: dict[str, dict[str, None]] = {}
    for run in listed:
        if run.reason:
            labels.setdefault(run.reason, {}).update(dict.fromkeys(run.labels or (run.name,)))
    return [(", ".join(names), why) for why, names in labels.items()]


def judged(listed: Sequence[TableRun], store: RunsFolder, text: str) -> dict[str, list[Reproduced]]:
    """Title of a printed row and its run -> what became of its cells."""
    rows = [(run, row) for run in listed if not run.why_not for row in run.rows]
    beside = [
        Beside(row.cells, [r for r, _ in finished(run, store)], run.differs_from(row.first))
        for run, row in rows
    ]
    by_title: dict[str, list[Reproduced]] = {}
    for (run, row), cells in zip(rows, judge_rows(beside, text), strict=True):
        by_title.setdefault(_title(run, row.first), []).extend(cells)
    return by_title


def show_results(listed: Sequence[TableRun], store: RunsFolder, text: str, as_json: bool) -> None:
    """Every printed cell beside ours, and whether as many new runs as the paper had would give it."""
    for title, cells in judged(listed, store, text).items():
        if as_json:
            for cell in cells:
                more = {"row": title, "sentence": verdict_text(cell, cell.printed)}
                click.echo(json_text(asdict(cell) | more))
            continue
        say(title, hang=2)
        print_columns(map(_columns, cells), headings=CELLS, indent=2)
        for note in dict.fromkeys(note for cell in cells for note in cell.notes):
            say(f"note: {note}", indent=2, hang=6)
        click.echo()
    if as_json:
        return
    show_skipped(listed)
    say(CHANCE)
    say(f"records: {store.path}; next: bench compare --with-paper --runs {store.path}")


def _title(run: TableRun, cell: ReferenceResult) -> str:
    """ "PromCSE-BERT-base (promcse table 1, one run): promcse, unsupervised, bert-base-uncased; seeds 42-44"."""
    source = "" if cell.own_result else f"copied from {cell.source}"
    facts = ", ".join(filter(None, (f"{cell.paper} table {cell.table}", cell.runs, source)))
    seeds = seed_ranges([one.seed for one in run.planned if one.seed is not None])
    return f"{cell.label} ({facts}): {run.name}{f'; seeds {seeds}' if seeds else ''}"


def _columns(cell: Reproduced) -> tuple[str, str, str, str]:
    printed = cell.printed
    ours = "-" if cell.mean is None else f"{cell.mean:.{cell.decimals}f}"
    spread = "" if printed.std is None else f" ±{printed.std:g}"
    return printed.task, printed.printed + spread, ours, verdict_text(cell, printed)


def write_page(
    file: Path, part: Part, listed: Sequence[TableRun], store: RunsFolder, text: str
) -> None:
    """The page of a figure that is drawn from our runs, or of a table's cells beside ours; and what was not run."""
    runs = {run.name: ours for run in listed if (ours := finished(run, store))}
    page = render(
        f"{part.name}, run again",
        paper_figure(part, runs) if part.how != SCORES else None,
        {title: map(_columns, cells) for title, cells in judged(listed, store, text).items()},
        skipped_rows(listed),
    )
    write_or_fail(file, page.encode(), hint="--html FILE")
