"""What became of a paper's table or figure that was run again: ours beside the print on the terminal, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from bench.base.files import write_or_fail
from bench.board.repeat import seed_ranges
from bench.cli.columns import print_columns, say
from bench.cli.options import json_text
from bench.compare.printed import Beside, Reproduced, judge_rows, verdict_text
from bench.references import SCORES, Part, ReferenceResult
from bench.run.reproduce.jobs import Job, records
from bench.runs import RunsFolder
from bench.show.pages.reproduced import paper_figure, render

CELLS = ("task", "printed", "ours", "as many new runs as the paper had, 95 %")
CHANCE = "each interval is a 95 % one by itself: of 20 cells one differs by chance alone"


def show_rows(order: Sequence[Job]) -> None:
    """Each printed row, its printed value, and the run that it means."""
    rows = [
        (row.first.label, (row.average or row.cells[0]).printed, row.first.runs, job.run.name)
        for job in order
        for row in job.run.rows
    ]
    if rows:
        print_columns(rows, headings=("printed row", "value", "of", "run"), indent=2)
    for note in dict.fromkeys(note for job in order for note in job.run.notes):
        say(f"note: {note}", indent=2, hang=2)


def show_left_out(listed: Sequence[Job]) -> None:
    """Rows that are not run, by reason."""
    rows = [(", ".join(labels), why) for why, labels in left_out(listed).items()]
    if rows:
        click.echo()
        print_columns(rows, headings=("not run", "why"), indent=2)


def left_out(listed: Sequence[Job]) -> dict[str, list[str]]:
    """Why rows were not run -> their labels."""
    reasons: dict[str, list[str]] = {}
    for job in listed:
        if why := job.run.why_not or (job.error.message if job.error else ""):
            reasons.setdefault(why, []).extend(job.run.labels or (job.run.name,))
    return {why: list(dict.fromkeys(labels)) for why, labels in reasons.items()}


def judged(listed: Sequence[Job], store: RunsFolder, text: str) -> dict[str, list[Reproduced]]:
    """Title of a printed row and its run -> what became of its cells."""
    rows = [(job, row) for job in listed if job.run.method for row in job.run.rows]
    beside = [
        Beside(row.cells, [r for r, _ in records(job, store)], job.run.differs_from(row.first))
        for job, row in rows
    ]
    by_title: dict[str, list[Reproduced]] = {}
    for (job, row), cells in zip(rows, judge_rows(beside, text), strict=True):
        by_title.setdefault(_title(job, row.first), []).extend(cells)
    return by_title


def show_results(listed: Sequence[Job], store: RunsFolder, text: str, as_json: bool) -> None:
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
    show_left_out(listed)
    runs = [(job, run) for job in listed if job.in_fp16 for run in job.planned]
    if others := {job.run.method: None for job, run in runs if run.precision != "fp16"}:
        say(f"the authors trained in fp16 autocast, these runs did not: {', '.join(others)}")
    say(CHANCE)
    say(f"records: {store.path}; next: bench compare --with-paper --runs {store.path}")


def _title(job: Job, cell: ReferenceResult) -> str:
    """ "PromCSE-BERT-base (promcse table 1, one run): promcse, unsupervised, bert-base-uncased; seeds 42-44"."""
    source = "" if cell.own_result else f"copied from {cell.source}"
    facts = ", ".join(filter(None, (f"{cell.paper} table {cell.table}", cell.runs, source)))
    seeds = seed_ranges([seed for seed in job.seeds if seed is not None])
    return (
        f"{cell.label} ({facts}): {job.run.name}; {f'seeds {seeds}' if seeds else 'nothing random'}"
    )


def _columns(cell: Reproduced) -> tuple[str, str, str, str]:
    printed = cell.printed
    ours = "-" if cell.mean is None else f"{cell.mean:.{cell.decimals}f}"
    spread = "" if printed.std is None else f" ±{printed.std:g}"
    return printed.task, printed.printed + spread, ours, verdict_text(cell, printed)


def write_page(file: Path, part: Part, listed: Sequence[Job], store: RunsFolder, text: str) -> None:
    """The page of a figure that is drawn from our runs, or of a table's cells beside ours; and what was not run."""
    runs = {job.run.name: ours for job in listed if (ours := records(job, store))}
    page = render(
        f"{part.name}, run again",
        paper_figure(part, runs) if part.how != SCORES else None,
        {title: map(_columns, cells) for title, cells in judged(listed, store, text).items()},
        [(", ".join(rows), why) for why, rows in left_out(listed).items()],
    )
    write_or_fail(file, page.encode(), hint="--html FILE")
