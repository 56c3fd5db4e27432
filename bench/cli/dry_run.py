"""``bench run --dry-run``: the runs of a plan, what they take, and missing data to fetch."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.text import list_names, plural, seed_ranges, with_variant
from bench.cli.options import print_columns, print_json, say
from bench.cli.paper_plan import (
    hyperparameter_grid,
    open_questions,
    paper_object,
    printed_text,
    rows_left_out,
    stand_in_note,
    with_printed_rows,
)
from bench.cli.plan_facts import (
    backbone_name,
    device_text,
    fetch_facts,
    notes_of,
    plan_sentence,
    row_facts,
    scores_text,
)
from bench.cli.plan_rows import PlanRow, name_of, plan_rows
from bench.compare.formatting import short_count
from bench.data.sets import Pending
from bench.method.recipe import Value
from bench.method.recipes import merge_recipe
from bench.papers import PaperPart, papers
from bench.records.record import SET, is_given_by_user
from bench.run.needs import PreparedRuns, pending_grid
from bench.run.planned import PlannedRun, learns
from bench.run.session import Session

FEW = "20steps"
"""The budget of the command that measures the time of a step."""

FLAGS_OF_PLANS = ("--dry-run", "--all", "--json")
"""Options that only a plan has."""

LENGTHS = ("epochs=", "budget=")
"""The beginnings of values of --set that a budget contradicts."""

RIGHT_ALIGNED = ("steps", "trained", "GiB", "paper")
"""Columns that are aligned right."""


WRAPPED = {"method": 14, "values": 16, "backbone": 17, "fits with": 7, "paper": 10}
"""Columns that are folded on a narrow terminal, with the least width of each."""

IN_SENTENCE = ("setting", "backbone")
"""Columns that the first sentence of a plan replaces if all rows share them."""

DROPPED = {"trained": 2, "seeds": 1}
"""Columns that are left out on a narrower one, the highest number first."""


def print_plan(
    prepared: PreparedRuns,
    session: Session,
    *,
    as_json: bool,
    everything: bool = False,
    part: PaperPart | None = None,
) -> None:
    """Print the plan and its fetches; write nothing.

    ``everything``: default values too. ``part``: the printed table that the plan runs again.
    """
    config = session.config
    rows = plan_rows(prepared.runs, session.store, config.device, config.chunk)
    if part is not None:
        rows = with_printed_rows(part, rows)
    if as_json:
        print_json(_plan_objects(rows, prepared.to_fetch, config.device, part))
        return
    if part is not None:
        say(f"{part.name}: {part.shows}", style="bold")
        say(papers()[part.paper].citation, hang=2)
        click.echo()
    say(plan_sentence(prepared.runs, rows), style="bold")
    if len(rows) == 1:
        facts = row_facts(rows[0], config.device, prepared.to_fetch)
        notes = [("note", note) for note in notes_of(rows[0])]
    else:
        print_grid(_runs_grid(rows, part), blank=True)
        device = device_text(config.device, rows[0].first.precision)
        facts = [("score", scores_text(rows)), ("device", device)]
        notes = []
    facts += fetch_facts(prepared.to_fetch, offline=config.offline)
    if part is not None:
        notes += [("note", text) for text in _paper_notes(part, rows)]
    print_columns([*facts, *notes], indent=2, blank=True)
    if part is not None:
        hyperparameters = hyperparameter_grid(rows)
        if hyperparameters.rows:
            print_grid(hyperparameters, blank=True)
    recipe = _recipe_grid(rows, everything)
    if recipe.rows and (part is None or everything):
        print_grid(recipe, blank=True)
    if part is not None:
        print_columns(rows_left_out(part), headings=("not run", "why"), indent=2, blank=True)
    if prepared.to_fetch and everything:
        print_grid(pending_grid(prepared.to_fetch), blank=True)
    sets = [item.name for item in prepared.to_fetch if item.kind != "backbone"]
    if config.data is not None and sets:
        command = f"bench data fetch {' '.join(sets)} --data {shlex.quote(config.data)}"
        say(f"To fetch into {config.data} first: {command}", hang=2, blank=True)
    more = "" if everything else "Every value, licence and source: --all.   "
    say(f"{more}To start: the same without --dry-run.", blank=True)
    measuring = measuring_command(["bench", *sys.argv[1:]], rows)
    if measuring is not None:
        say(f"To measure the time of a step first: {measuring}", hang=2)


def _paper_notes(part: PaperPart, rows: Sequence[PlanRow]) -> list[str]:
    """Return the open points of a printed table, and the backbone that replaces its own."""
    stands_in = stand_in_note(rows)
    return [*([stands_in] if stands_in else []), *open_questions(part, rows)]


def measuring_command(words: Sequence[str], rows: Sequence[PlanRow]) -> str | None:
    """Return the command of a plan, with a budget of a few steps in the place of its length.

    It has the --chunk with which all rows fit into memory. None: no row trains in steps, one does
    not fit, or a plan's file sets the epochs.
    """
    chunks = [row.chunk for row in rows if row.chunk is not None]
    if not any(row.in_steps for row in rows) or 0 in chunks:
        return None
    if "--plan" in words and any(_sets_epochs(row) for row in rows):
        return None
    kept = [word for word in words if word not in FLAGS_OF_PLANS]
    kept = _without(kept, "--set", LENGTHS)
    kept = [*_without(kept, "--budget"), "--budget", FEW]
    if chunks:
        kept = [*_without(kept, "--chunk"), "--chunk", str(min(chunks))]
    return shlex.join(kept)


def _sets_epochs(row: PlanRow) -> bool:
    """Say if the epochs of a row were typed as a value of --set, which a budget contradicts."""
    epochs = row.first.recipe.values_with_source().get("epochs")
    return epochs is not None and epochs.source == SET


def _without(words: Sequence[str], option: str, beginnings: tuple[str, ...] = ("",)) -> list[str]:
    """Return a command's words without an option, where its value has one of these beginnings."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name != option:
            kept.append(word)
            continue
        if not equals:
            value = next(rest, "")
        if not value.startswith(beginnings):
            kept += [option, value]
    return kept


def _runs_grid(rows: Sequence[PlanRow], part: PaperPart | None) -> Grid:
    """Lay out a numbered line for each of several rows, and the notes on them."""
    numbers: dict[str, list[str]] = {}
    lines = []
    for number, row in enumerate(rows, 1):
        for note in notes_of(row):
            numbers.setdefault(note, []).append(str(number))
        lines.append(_run_cells(str(number), row, rows, part))
    notes = []
    for note, noted in numbers.items():
        noun = "run" if len(noted) == 1 else "runs"
        is_of_all = len(noted) == len(rows)
        notes.append(note if is_of_all else f"{noun} {list_names(noted, len(noted))}: {note}")
    # the sentence above says what all rows share
    shared = [name for name in IN_SENTENCE if len({line[name] for line in lines}) == 1]
    columns = [
        GridColumn(
            name,
            right=name in RIGHT_ALIGNED,
            wrap=WRAPPED.get(name, 0),
            drop=DROPPED.get(name, 0),
        )
        for name in lines[0]
        if name not in shared
    ]
    cells = [[line[column.name] for column in columns] for line in lines]
    return grid(columns, cells, notes=notes, whole="a wider terminal, or --json")


def _run_cells(
    number: str, row: PlanRow, rows: Sequence[PlanRow], part: PaperPart | None
) -> dict[str, GridCell | str]:
    """Return the cells of a row by the names of their columns."""
    run = row.first
    cells: dict[str, GridCell | str] = {"": number}
    cells["method"] = with_variant(run.method, run.variant)
    cells["setting"] = run.setting
    cells["values"] = " ".join(_differences(row, rows))
    cells["backbone"] = backbone_name(run)
    cells["seeds"] = seed_ranges(run.seed for run in row.runs) or "any"
    cells["steps"] = "" if row.steps is None else f"{row.steps:,}"
    cells["trained"] = "" if row.held is None else short_count(row.held.parameters)
    cells["GiB"] = "" if row.memory_bytes is None else f"{row.memory_bytes / 2**30:.1f}"
    cells["fits with"] = "" if row.chunk is None else f"--chunk {row.chunk or 'none'}"
    cells["state"] = _state(row)
    if part is not None:
        cells["paper"] = printed_text(row)
    else:
        cells["paper"] = f"{run.expect['value']:.2f}" if run.expect else ""
    return cells


def _state(row: PlanRow) -> str:
    """Write "2 of 3 finished, 1 to score"; "" if nothing is done yet."""
    finished = len(row.runs) - len(row.pending) - len(row.unscored)
    parts = []
    if finished:
        parts.append(f"{finished} of {len(row.runs)} finished")
    if row.unscored:
        parts.append(f"{len(row.unscored)} to score")
    return ", ".join(parts)


def _differences(row: PlanRow, rows: Sequence[PlanRow]) -> list[str]:
    """Return recipe values, "temperature=0.1", that not all rows of this name have."""
    namesakes = [other for other in rows if name_of(other.first) == name_of(row.first)]
    differences = []
    for key, value in row.first.recipe.items():
        values = {json.dumps(other.first.recipe.get(key)) for other in namesakes}
        if len(values) > 1:
            differences.append(f"{key}={json.dumps(value)}")
    return differences


def _recipe_grid(rows: Sequence[PlanRow], everything: bool) -> Grid:
    """Lay out the corpora, recipe values with their sources, and published results, each with the
    numbers of its rows.

    ``everything``: also values that are defaults or have no effect.
    """
    numbers: dict[str, dict[tuple[str, str], list[int]]] = {}
    for number, row in enumerate(rows, 1):
        for key, value, source in _row_values(row, everything, alone=len(rows) == 1):
            numbers.setdefault(key, {}).setdefault((value, source), []).append(number)
    lines = []
    for key, found in numbers.items():
        for (value, source), of_rows in found.items():
            name = seed_ranges(of_rows) if len(rows) > 1 else ""
            lines.append((name, key, value, source))
    title = "Recipe values" if everything else "Recipe values that are not defaults"
    columns = (GridColumn("", wrap=8), "", GridColumn("", wrap=24), GridColumn("", wrap=24))
    return grid(columns, lines, title=title)


def _row_values(row: PlanRow, everything: bool, *, alone: bool) -> Iterator[tuple[str, str, str]]:
    """Yield what a row is trained on and with, and the published result: name, value and source.

    ``alone``: no other row is in the plan, whose facts have the corpus and the result.
    """
    run = row.first
    if run.corpus is not None and not alone:
        counted = f"{len(run.corpus):,} rows" if len(run.corpus) else "rows not counted yet"
        yield "corpus", run.corpus.name, counted
    defaults = merge_recipe(
        run.plugin.cls, None, "", {}, trained=learns(run.plugin.cls, run.setting)
    )
    for key, value in run.recipe.values_with_source().items():
        if everything or _matters(key, value, row, defaults):
            yield key, json.dumps(value.value), _source_text(value, everything)
    if run.expect and not alone:
        yield "published", f"{run.expect['value']:.2f}", run.expect["source"]


def _source_text(value: Value, everything: bool) -> str:
    """Write the sources of a value, or the first one and how many more there are."""
    first, *more = value.source.split("; ")
    if everything or not more:
        return f"{value.source} ({value.note})" if value.note else value.source
    return f"{first}, and {plural(len(more), 'more source')}"


def _matters(key: str, value: Value, row: PlanRow, defaults: Mapping[str, Any]) -> bool:
    """Say if the short list has a value: a user gave it, or it has an effect and is no default."""
    if is_given_by_user(value.source):
        return True
    if value.value is None:
        return False
    if key == "max_steps" and (row.steps or math.inf) < value.value:
        return False
    return key not in defaults or value.value != defaults[key]


def _plan_objects(
    rows: Sequence[PlanRow], pending: Sequence[Pending], device: str, part: PaperPart | None
) -> Iterator[dict[str, Any]]:
    """Yield an object for each run, for JSON. ``pending``: the fetches of the whole command."""
    fields = ("name", "kind", "bytes", "licence", "where")
    to_fetch = [{field: getattr(item, field) for field in fields} for item in pending]
    for row in rows:
        for run in row.runs:
            made = _run_object(run, row, to_fetch, device)
            yield made if part is None else {**made, "paper": paper_object(part, row)}


def _run_object(
    run: PlannedRun, row: PlanRow, to_fetch: Sequence[Mapping[str, Any]], device: str
) -> dict[str, Any]:
    values = run.recipe.values_with_source()
    is_finished = run not in row.pending and run not in row.unscored
    chunk = row.chunk if row.chunk else None
    return {
        "run_id": None if run.provisional else run.run_id,
        "fingerprint": None if run.provisional else run.fingerprint,
        "method": run.method,
        "variant": run.variant,
        "setting": run.setting,
        "backbone": run.backbone.name,
        "seed": run.seed,
        "corpus": None if run.corpus is None else run.corpus.name,
        "notes": list(run.notes),
        "tasks": list(dict.fromkeys(task.name for task in run.tasks)),
        "protocols": list(dict.fromkeys(task.protocol for task in run.tasks)),
        "recipe": {key: asdict(value) for key, value in values.items()},
        "steps": row.steps,
        "trained_parameters": None if row.held is None else row.held.parameters,
        "trained_parts": None if row.held is None else dict(row.held.trained),
        "memory_bytes": row.memory_bytes,
        "to_fetch": to_fetch,
        "device": device,
        "precision": run.precision,
        "finished": is_finished,
        "printed": dict(run.expect) if run.expect else None,
        "chunk": chunk,
    }
