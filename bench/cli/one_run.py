"""``bench runs RUN``: everything about one run."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from msgspec.structs import replace

from bench.base.foreign_text import make_visible
from bench.base.printing import print_grid
from bench.base.text import value_text
from bench.board.repeat import repeat
from bench.cli.options import json_text, print_columns, print_facts, say
from bench.compare.formatting import suite_scores
from bench.compare.forms import run_report
from bench.records.record import RunRecord, read_record
from bench.records.run import Run
from bench.records.store import RunsFolder

RUNNING = "running"
"""The status of a run that a process works on; no record stores it."""

MAIN = ("batch_size", "learning_rate", "epochs", "max_steps", "max_seq_length", "temperature")
"""Recipe values on the first screen, with those that the command set."""

FIRST_COSTS = ("trainable parameters", "trainable parts", "train time", "peak memory", "device")
"""Costs on the first screen."""


def print_run(reference: str, runs: Path | None, *, everything: bool, as_json: bool) -> None:
    """Print a screenful about one run, or all its tables. ``runs``: the folder, if typed."""
    file = RunsFolder(runs).record_file(reference)
    record = with_status_now(read_record(file), RunsFolder(file.parent.parent))
    if as_json:
        click.echo(json_text(record.to_json(), indent=1))
        return
    say(f"{record.run_id}  {record.status}, {creation_time(record)}")
    say(run_report.run_in_words(record))
    if record.error:
        problem = "not scored" if record.status == "finished" else "error"
        say(f"{problem}: {record.error}")
    if everything:
        _print_everything(record, file.parent)
    else:
        _print_summary(record, file.parent)
        words = ["bench", "runs", reference, *([] if runs is None else ["--runs", str(runs)])]
        say(f"everything: {shlex.join([*words, '--all'])}")


def with_status_now(record: RunRecord, store: RunsFolder) -> RunRecord:
    """Return the record with the status that the run has now: perhaps running."""
    if record.status != "finished" and store.worked_on_by(record.run_id):
        return replace(record, status=RUNNING, error=None)
    return record


def creation_time(record: RunRecord) -> str:
    """Return when the record was made, as "2026-01-31 12:00"."""
    return record.provenance.created[:16].replace("T", " ")


def _print_summary(record: RunRecord, folder: Path) -> None:
    """Print at most 40 lines, even for a run of all suites."""
    scores = [(name, value, ", ".join(tasks)) for name, value, tasks in suite_scores(record)]
    if scores:
        print_columns(scores, blank=True)
    values = []
    for key, entry in record.recipe.items():
        is_shown = key in MAIN or entry.source.startswith("--")
        if is_shown and entry.value is not None:
            values.append(f"{key} {value_text(entry.value)}")
    costs = [" ".join(cost) for cost in run_report.cost_facts(record) if cost[0] in FIRST_COSTS]
    click.echo()
    print_facts(
        [
            ("model", run_report.encoder_facts(record)),
            ("recipe", ", ".join(values)),
            *run_report.training_facts(record, folder),
            ("cost", ", ".join(costs)),
            ("folder", str(folder)),
        ]
    )
    click.echo()
    click.echo(make_visible(repeat([Run(record, folder)], str(folder.parent)), limit=None))


def _print_everything(record: RunRecord, folder: Path) -> None:
    """Print all scores, recipe with sources, overlap, cost, provenance and files."""
    tables = [
        *run_report.score_grids(record),
        run_report.recipe_with_sources(record),
        run_report.overlap_grid(record.provenance.corpus.overlap),
        run_report.facts_grid("training", run_report.training_facts(record, folder)),
        run_report.facts_grid("cost", run_report.cost_facts(record)),
        run_report.facts_grid("provenance", run_report.provenance_facts(record)),
    ]
    for table in tables:
        if table.rows:
            print_grid(table, blank=True)
