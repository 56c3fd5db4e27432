"""``bench show``: everything about one run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.cli.columns import plain_console, print_columns, print_command, title, visible_indent
from bench.cli.options import json_option, json_text, runs_option

if TYPE_CHECKING:
    from bench.run.jobs import Job
    from bench.runs import RunRecord, RunsFolder
    from bench.show.tables.report import Section

NO_RECORD = "ended before its record was written; its command goes on from the last state"
RUNNING = "running"  # as a list says it; a record is never of a run that is not at its end
PARTS = {
    "scores": "all numbers of each task and of its sub-datasets",
    "recipe": "every recipe value with its source",
    "overlap": "sentences of the evaluation sets that stand in the corpus",
    "provenance": "cost in full, code, machine, hashes of the data, files",
}
"""What there is to know of a run beyond the first screen: an option each."""
MAIN = ("batch_size", "learning_rate", "epochs", "max_steps", "max_seq_length", "temperature")
"""Recipe values of the first screen, beside those that the command set."""
COSTS = ("trainable parameters", "train time", "peak memory", "device")
"""Those of the first screen."""


@click.command()
@click.argument("reference", metavar="RUN")
@click.option("--scores", is_flag=True, help=f"Only {PARTS['scores']}.")
@click.option("--recipe", is_flag=True, help=f"Only {PARTS['recipe']}.")
@click.option("--overlap", is_flag=True, help=f"Only {PARTS['overlap']}.")
@click.option("--provenance", is_flag=True, help=f"Only {PARTS['provenance']}.")
@click.option("--all", "everything", is_flag=True, help="All of these.")
@runs_option
@json_option
def show(reference: str, everything: bool, runs: Path | None, as_json: bool, **parts: bool) -> None:
    """One run: its scores, recipe, training and cost on one screen; everything else by option.

    RUN is an id, its beginning, or a path.   Example: bench show simcse-builtin-s42
    """
    from bench.runs import RunsFolder
    from bench.runs.store import read_record

    store = RunsFolder(runs)
    if reference in store.without_record():
        raise BenchError(f"{reference} {NO_RECORD}", "run its command again")
    file = store.record_file(reference)
    here = RunsFolder(file.parent.parent)
    record = as_it_stands(read_record(file), here)
    if as_json:
        click.echo(json_text(record.to_json(), indent=1))
        return
    wanted = [part for part in PARTS if everything or parts.get(part)]
    print_head(record)
    if not wanted:
        print_summary(
            record, file.parent, "" if runs is None else f" --runs {shlex.quote(str(runs))}"
        )
        return
    there = sections(record, file.parent)
    for part in wanted:
        for section in there[part]:
            print_section(section)
        if not there[part]:
            title(f"no {part} {'are' if part == 'scores' else 'is'} recorded")


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
    from rich.text import Text

    from bench.compare.formatting import visible
    from bench.show.tables import report

    console = plain_console()

    def text(words: str) -> Text:
        return Text(visible(words, console.encoding))

    console.print(
        Text.assemble(
            (record.run_id, "bold"),
            f"  {record.status}, {record.provenance.created[:16].replace('T', ' ')}",
        )
    )
    console.print(text(report.what(record)))
    if record.error:
        console.print(Text.assemble(("error: ", "bold"), text(record.error)))


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
        *report.training(record, folder).rows,
    ]
    facts.append(
        (
            "cost",
            ", ".join(
                f"{name} {value}"
                for name, value in report.cost(record).rows
                if name in COSTS or name.startswith(report.PART)
            ),
        )
    )
    if rows := report.overlap_section(record).rows:
        facts.append(
            ("overlap", f"{sum(bool(row[1]) for row in rows)} tasks have sentences in the corpus")
        )
    facts.append(("folder", str(folder)))
    click.echo()
    print_columns([fact for fact in facts if fact[1]])
    click.echo()
    if record.provenance.command:
        print_command(record.provenance.command)
    title(f"more: bench show {record.run_id}{runs} ...")
    there = sections(record, folder)
    print_columns(
        [
            *((f"--{part}", words) for part, words in PARTS.items() if there[part]),
            ("--all", "everything"),
        ],
        indent=2,
    )


def sections(record: RunRecord, folder: Path) -> dict[str, list[Section]]:
    """Of each of PARTS what there is to say."""
    from bench.show.tables import report

    parts = {
        "scores": [*report.score_sections(record), *report.shift_sections(record)],
        "recipe": [report.recipe(record)],
        "overlap": [report.overlap_section(record)],
        "provenance": [report.cost(record), report.provenance(record), report.files(folder)],
    }
    return {part: [section for section in said if section.rows] for part, said in parts.items()}


def print_section(section: Section) -> None:
    """Its title, and its rows below it."""
    from rich.table import Table
    from rich.text import Text

    from bench.compare.formatting import visible

    console = plain_console()
    console.print(Text.assemble("\n", (visible(section.title, console.encoding), "bold")))
    grid = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        show_header=bool(section.heading),
        header_style="dim",
    )
    for i, heading in enumerate(section.heading or section.rows[0]):
        right = i in section.numbers
        grid.add_column(
            heading if section.heading else "",
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    for row in section.rows:
        grid.add_row(*(Text(visible_indent(cell, console.encoding)) for cell in row))
    console.print(grid)
