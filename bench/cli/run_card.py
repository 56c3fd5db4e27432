"""Everything about one run: what ``bench runs RUN`` prints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from bench.base.text import value_text
from bench.cli.columns import print_columns, print_facts, print_grid, say
from bench.cli.options import json_text
from bench.compare.formatting import visible
from bench.runs.store import RunsFolder, read_record
from bench.show.tables import report

if TYPE_CHECKING:
    from bench.run.jobs import Job
    from bench.runs import RunRecord
    from bench.show.grid import Grid

NO_RECORD = "ended before its record was written; its command goes on from the last state"
RUNNING = "running"  # as a list says it; a record is never of a run that is not at its end
MAIN = ("batch_size", "learning_rate", "epochs", "max_steps", "max_seq_length", "temperature")
"""Recipe values of the first screen, beside those that the command set."""
COSTS = ("trainable parameters", "trainable parts", "train time", "peak memory", "device")
"""Those of the first screen."""


def show(reference: str, runs: Path | None, *, everything: bool, as_json: bool) -> None:
    """A screenful of one run, or every table of it. ``runs`` is the folder, where one was given."""
    store = RunsFolder(runs)
    file = store.record_file(reference)
    record = as_it_stands(read_record(file), RunsFolder(file.parent.parent))
    if as_json:
        click.echo(json_text(record.to_json(), indent=1))
        return
    print_head(record)
    if everything:
        for table in tables(record, file.parent):
            print_section(table)
    else:
        print_summary(record, file.parent, f" --runs {shlex.quote(str(runs))}" if runs else "")


def as_it_stands(
    record: RunRecord, store: RunsFolder, queue: Mapping[str, tuple[str, Job]] | None = None
) -> RunRecord:
    """The record of a run that may be queued or worked on now, which is not written into it."""
    if queue and record.run_id in queue:
        engine, job = queue[record.run_id]
        return replace(record, status=job.state, error=job.describe(engine))
    if record.status != "finished" and store.worked_on_by(record.run_id):
        return replace(record, status=RUNNING, error=None)
    return record


def print_head(record: RunRecord) -> None:
    """Which run it is and how it ended."""
    created = record.provenance.created[:16].replace("T", " ")
    say(f"{record.run_id}  {record.status}, {created}")
    say(report.what(record))
    if record.error:
        label = "not scored" if record.status == "finished" else "error"
        say(f"{label}: {record.error}")


def print_summary(record: RunRecord, folder: Path, runs: str) -> None:
    """At most a screen of 40 lines for a run of all suites. ``runs``: the option that names the runs folder, where it was given."""
    click.echo()
    print_columns([(name, value, ", ".join(tasks)) for name, value, tasks in report.suites(record)])
    values = [
        f"{key} {value_text(recipe_value.value)}"
        for key, recipe_value in record.recipe.items()
        if recipe_value.value is not None and (key in MAIN or recipe_value.source.startswith("--"))
    ]
    costs = [f"{name} {value}" for name, value in report.cost(record) if name in COSTS]
    click.echo()
    print_facts(
        [
            ("model", report.model(record)),
            ("recipe", ", ".join(values)),
            *report.training(record, folder),
            ("cost", ", ".join(costs)),
            ("folder", str(folder)),
        ]
    )
    click.echo()
    if record.provenance.command:
        click.echo(visible(record.provenance.command, limit=None))
    say(f"everything: bench runs {record.run_id}{runs} --all")


def tables(record: RunRecord, folder: Path) -> Iterator[Grid]:
    """All numbers of each task, the recipe with its sources, overlap of the corpus with the test data, cost, provenance and files."""
    made = [
        *report.score_grids(record),
        report.recipe(record),
        report.overlap_grid(record.provenance.corpus.overlap),
        report.facts_grid("training", report.training(record, folder)),
        report.facts_grid("cost", report.cost(record)),
        report.facts_grid("provenance", report.provenance(record)),
    ]
    return (table for table in made if table.rows)


def print_section(table: Grid) -> None:
    click.echo()
    print_grid(table)
