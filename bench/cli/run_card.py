"""Everything about one run: what ``bench runs RUN`` prints."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.base.text import list_names
from bench.cli.columns import print_columns, print_command, print_facts, print_grid, say, title
from bench.cli.options import json_text

if TYPE_CHECKING:
    from bench.run.jobs import Job
    from bench.runs import RunRecord, RunsFolder
    from bench.show.grid import Grid

NO_RECORD = "ended before its record was written; its command goes on from the last state"
RUNNING = "running"  # as a list says it; a record is never of a run that is not at its end
PARTS = {
    "scores": "all numbers of each task and of its sub-datasets",
    "recipe": "every recipe value with its source",
    "overlap": "sentences of the evaluation sets that stand in the corpus",
    "provenance": "cost in full, code, machine, hashes of the data",
}
"""What there is to know of a run beyond the first screen: an option each."""
MAIN = ("batch_size", "learning_rate", "epochs", "max_steps", "max_seq_length", "temperature")
"""Recipe values of the first screen, beside those that the command set."""
COSTS = ("trainable parameters", "trainable parts", "train time", "peak memory", "device")
"""Those of the first screen."""


def show(reference: str, runs: Path | None, parts: Sequence[str], *, as_json: bool) -> None:
    """A screenful; or the ``parts`` of PARTS that are named. ``runs`` is the folder, where one was given."""
    from bench.runs import RunsFolder
    from bench.runs.store import read_record

    store = RunsFolder(runs)
    if reference in store.without_record():
        raise BenchError(f"{reference} {NO_RECORD}", "run its command again")
    file = store.record_file(reference)
    record = as_it_stands(read_record(file), RunsFolder(file.parent.parent))
    if as_json:
        click.echo(json_text(record.to_json(), indent=1))
        return
    print_head(record)
    if not parts:
        folder = "" if runs is None else f" --runs {shlex.quote(str(runs))}"
        print_summary(record, file.parent, folder)
        return
    known = sections(record, file.parent)
    for part in parts:
        for table in known[part]:
            print_section(table)
    if missing := [part for part in parts if not known[part]]:
        title(f"not recorded: {list_names(missing)}")


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
    from bench.show.tables import report

    created = record.provenance.created[:16].replace("T", " ")
    say(f"{record.run_id}  {record.status}, {created}")
    say(report.what(record))
    if record.error:
        label = "not scored" if record.status == "finished" else "error"
        say(f"{label}: {record.error}")


def print_summary(record: RunRecord, folder: Path, runs: str) -> None:
    """At most a screen of 40 lines for a run of all suites. ``runs``: the option that names the runs folder, where it was given."""
    from bench.show.tables import report

    click.echo()
    print_columns(
        [(f"{name} ", value, ", ".join(tasks)) for name, value, tasks in report.suites(record)]
    )
    values = [
        f"{key} {report.plain_value(recipe_value.value)}"
        for key, recipe_value in record.recipe.items()
        if recipe_value.value is not None and (key in MAIN or recipe_value.source.startswith("--"))
    ]
    rest = len(record.recipe) - len(values)
    facts = [
        ("model", report.model(record)),
        ("recipe", ", ".join([*values, *([f"{rest} more: --recipe"] if rest else [])])),
        *report.training(record, folder),
    ]
    facts.append(
        (
            "cost",
            ", ".join(f"{name} {value}" for name, value in report.cost(record) if name in COSTS),
        )
    )
    if rows := report.overlap_grid(record.provenance.corpus.overlap).rows:
        tasks = sum(bool(row[1:] and row[1].text) for row in rows)
        facts.append(("overlap", f"{tasks} tasks have sentences in the corpus"))
    facts.append(("folder", str(folder)))
    click.echo()
    print_facts(facts)
    click.echo()
    if record.provenance.command:
        print_command(record.provenance.command)
    title(f"more: bench runs {record.run_id}{runs} ...")
    there = sections(record, folder)
    print_columns(
        [
            *((f"--{part}", words) for part, words in PARTS.items() if there[part]),
            ("--all", "everything"),
        ],
        indent=2,
    )


def sections(record: RunRecord, folder: Path) -> dict[str, list[Grid]]:
    """Of each of PARTS the tables that have rows."""
    from bench.show.tables import report

    parts = {
        "scores": report.score_grids(record),
        "recipe": [report.recipe(record)],
        "overlap": [report.overlap_grid(record.provenance.corpus.overlap)],
        "provenance": [
            report.facts_grid("cost", report.cost(record)),
            report.facts_grid("provenance", report.provenance(record)),
        ],
    }
    return {part: [table for table in tables if table.rows] for part, tables in parts.items()}


def print_section(table: Grid) -> None:
    click.echo()
    print_grid(table)
