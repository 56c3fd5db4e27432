"""``bench run --dry-run``: the runs of a plan, with estimates, and missing data to fetch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from bench.base.devices import device_line
from bench.base.text import format_bytes, format_duration, list_names, plural, seed_ranges
from bench.cli.options import print_grid, print_json, say
from bench.data.sets import Pending
from bench.method.recipe import Value
from bench.records import RunsFolder
from bench.records.record import is_given_by_user
from bench.run.cards import card_named, memory_here
from bench.run.done import is_scored
from bench.run.estimates import (
    USABLE,
    Estimate,
    disk_bytes,
    estimate,
    fitting_chunk,
    is_trained,
    speeds_of_earlier_runs,
)
from bench.run.planned import PlannedRun, learns
from bench.run.recipes import merge_recipe
from bench.session.needs import PreparedRuns, pending_grid, pending_size
from bench.session.session import Session
from bench.show.grid import Grid, GridCell, GridColumn, grid

NUMBERS = ("steps", "GiB", "time/run", "printed")
"""Columns that are aligned right."""


@dataclass(frozen=True)
class PlanRow:
    """Runs that differ only in the seed."""

    runs: tuple[PlannedRun, ...]

    guess: Estimate
    """Time and memory of each of the runs."""

    pending: tuple[PlannedRun, ...]
    """The runs that are not trained."""

    unscored: tuple[PlannedRun, ...]
    """The runs that are trained, but lack the score of a task."""

    chunk: int | None
    """The --chunk that makes the runs fit into memory. 0: none does; None: they fit without it."""

    @property
    def first(self) -> PlannedRun:
        """Any run of the row."""
        return self.runs[0]


def print_plan(
    prepared: PreparedRuns, session: Session, *, as_json: bool, everything: bool = False
) -> None:
    """Print the plan and its fetches; write nothing. ``everything``: default values too."""
    config = session.config
    chunk = config.chunk if isinstance(config.chunk, int) else None
    rows = plan_rows(prepared.runs, session.store, config.device, chunk)
    if as_json:
        print_json(_plan_objects(rows, prepared.to_fetch, config.device))
        return
    first = rows[0].first
    click.echo(_device_text(config.device, first.precision))
    scored = list_names(dict.fromkeys(task.name for task in first.tasks), 20)
    say(f"scored on {scored} ({first.text} text)", hang=2)
    print_grid(_runs_grid(rows), blank=True)
    print_grid(_recipe_grid(rows, everything), blank=True)
    if prepared.to_fetch:
        _print_fetches(prepared.to_fetch, session, terms=everything)
    say(_total(rows, prepared.to_fetch), hang=2, blank=True)


def plan_rows(
    planned: Sequence[PlannedRun], store: RunsFolder, device: str, chunk: int | None = None
) -> list[PlanRow]:
    """Group runs by everything except the seed, and estimate time and memory on a device or card.

    ``chunk``: rows of a batch that are held in memory at a time.
    """
    earlier: Mapping[tuple[str, str, str], float] = {}
    if any(run.corpus is not None for run in planned):
        earlier = speeds_of_earlier_runs(store, device)
    groups: dict[str, list[PlannedRun]] = {}
    for run in planned:
        corpus = None if run.corpus is None else run.corpus.name
        identity = (*_name(run), run.backbone.revision, corpus)
        groups.setdefault(json.dumps([identity, dict(run.recipe)], default=str), []).append(run)
    return [_plan_row(runs, store, device, earlier, chunk) for runs in groups.values()]


def _plan_row(
    runs: Sequence[PlannedRun],
    store: RunsFolder,
    device: str,
    earlier: Mapping[tuple[str, str, str], float],
    chunk: int | None,
) -> PlanRow:
    guess = estimate(runs[0], earlier, device, chunk)
    fitting = None
    if (guess.memory_bytes or 0) > USABLE * memory_here(device):
        fitting = fitting_chunk(runs[0], device) or 0
    return PlanRow(
        tuple(runs),
        guess,
        pending=tuple(run for run in runs if not is_trained(run, store)),
        unscored=tuple(run for run in runs if lacks_scores(run, store)),
        chunk=fitting,
    )


def lacks_scores(run: PlannedRun, store: RunsFolder) -> bool:
    """Say if a run is trained, but has no score yet of a task that is to be scored."""
    record = store.get(run.run_id, run.fingerprint)
    if record is None or record.status != "finished":
        return False
    if len(run.task_data) < len(run.tasks):  # data is still to be fetched
        return True
    tasks = zip(run.tasks, run.task_data, strict=True)
    return any(not is_scored(record, task, known) for task, known in tasks)


def _device_text(device: str, precision: str) -> str:
    card = card_named(device)
    if card is None:
        return device_line(device, precision)
    return f"device {card.name} ({card.gib} GB), precision {precision}"


def _print_fetches(pending: Sequence[Pending], session: Session, *, terms: bool) -> None:
    """Print the fetches of a run, and how to fetch into the data folder beforehand."""
    config = session.config
    if config.offline:
        say("not on this machine; --offline forbids fetching", hang=2, blank=True)
    else:
        say("not on this machine; a run fetches this first", hang=2, blank=True)
    sets = [item.name for item in pending if item.kind != "backbone"]
    if config.data is not None and sets:
        command = f"bench data fetch {' '.join(sets)} --data {config.data}"
        say(f"into {config.data}: {command}", hang=2)
    print_grid(pending_grid(pending, terms=terms), indent=2)


def _runs_grid(rows: Sequence[PlanRow]) -> Grid:
    """Lay out a line for each row, numbered if there are several; notes are footnotes."""
    footnotes: dict[str, int] = {}
    lines = []
    for number, row in enumerate(rows, 1):
        marks = []
        for note in dict.fromkeys(note for run in row.runs for note in run.notes):
            marks.append(footnotes.setdefault(note, len(footnotes) + 1))
        lines.append(_run_cells(_number(number, rows), row, tuple(marks), rows))
    trained = [row for row in rows if row.first.corpus is not None]
    return grid(
        [GridColumn(name, right=name in NUMBERS) for name in lines[0]],
        [line.values() for line in lines],
        footnotes=list(footnotes),
        notes=list(dict.fromkeys(row.guess.basis for row in trained)),
    )


def _run_cells(
    number: str, row: PlanRow, marks: tuple[int, ...], rows: Sequence[PlanRow]
) -> dict[str, GridCell | str]:
    """Return the cells of a row by the names of their columns."""
    run, guess = row.first, row.guess
    backbone = run.backbone
    variant = _differences(row, rows)
    if run.variant:
        variant.insert(0, run.variant)
    cells: dict[str, GridCell | str] = {"": number}
    cells["method"] = GridCell(text=run.method, marks=marks)
    cells["setting"] = run.setting
    cells["variant"] = " ".join(variant)
    cells["backbone"] = backbone.title or (backbone.name if backbone.hub else backbone.short)
    cells["seeds"] = seed_ranges(run.seed for run in row.runs) or "any"
    cells["steps"] = "" if guess.steps is None else f"{guess.steps:,}"
    cells["GiB"] = "" if guess.memory_bytes is None else f"{guess.memory_bytes / 2**30:.1f}"
    cells["fits with"] = "" if row.chunk is None else f"--chunk {row.chunk or 'none'}"
    cells["time/run"] = "" if guess.seconds is None else format_duration(guess.seconds)
    cells["state"] = _state(row)
    cells["printed"] = f"{run.expect['value']:.2f}" if run.expect else ""
    return cells


def _number(number: int, rows: Sequence[PlanRow]) -> str:
    """Return the number of a row; "" if there is only one."""
    return str(number) if len(rows) > 1 else ""


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
    namesakes = [other for other in rows if _name(other.first) == _name(row.first)]
    differences = []
    for key, value in row.first.recipe.items():
        values = {json.dumps(other.first.recipe.get(key)) for other in namesakes}
        if len(values) > 1:
            differences.append(f"{key}={json.dumps(value)}")
    return differences


def _name(run: PlannedRun) -> tuple[str, str, str, str]:
    return run.method, run.setting, run.variant, run.backbone.name


def _recipe_grid(rows: Sequence[PlanRow], everything: bool) -> Grid:
    """Lay out for each row the corpus, recipe values with their sources, and the printed result.

    ``everything``: also values that are defaults or have no effect.
    """
    lines = []
    for number, row in enumerate(rows, 1):
        run, name = row.first, _number(number, rows)
        if run.corpus is not None:
            counted = f"{len(run.corpus):,} rows" if len(run.corpus) else "rows not counted yet"
            lines.append((name, "corpus", run.corpus.name, counted))
        defaults = merge_recipe(
            run.plugin.cls, None, "", {}, trained=learns(run.plugin.cls, run.setting)
        )
        for key, value in run.recipe.values_with_source().items():
            if everything or _matters(key, value, row, defaults):
                source = f"{value.source} ({value.note})" if value.note else value.source
                lines.append((name, key, json.dumps(value.value), source))
        if run.expect:
            lines.append((name, "printed", f"{run.expect['value']:.2f}", run.expect["source"]))
    notes = [] if everything else ["default values, with their sources: --all"]
    columns = ("", "recipe", GridColumn("value", wrap=24), GridColumn("source", wrap=24))
    return grid(columns, lines, notes=notes)


def _matters(key: str, value: Value, row: PlanRow, defaults: Mapping[str, Any]) -> bool:
    """Say if the short list has a value: a user gave it, or it has an effect and is no default."""
    if is_given_by_user(value.source):
        return True
    if value.value is None:
        return False
    if key == "max_steps" and (row.guess.steps or math.inf) < value.value:
        return False
    return key not in defaults or value.value != defaults[key]


def _total(rows: Sequence[PlanRow], to_fetch: Sequence[Pending]) -> str:
    """Add up the runs that are not finished."""
    pending = [run for row in rows for run in row.pending]
    unscored = sum(len(row.unscored) for row in rows)
    seconds = 0.0
    has_unknown_times = False
    for row in rows:
        seconds += (row.guess.seconds or 0) * len(row.pending)
        if row.guess.seconds is None and row.first.corpus is not None and row.pending:
            has_unknown_times = True
    disk = disk_bytes(pending)
    parts = [f"total: {plural(len(pending), 'run')} to do"]
    if unscored:
        parts.append(f"{plural(unscored, 'finished run')} to score")
    if seconds:
        parts.append(f"about {format_duration(seconds)} of training")
    if has_unknown_times:
        parts.append("not counting rows whose time is unknown")
    if disk:
        parts.append(f"up to {format_bytes(disk)} on disk")
    if to_fetch:
        parts.append(f"{pending_size(to_fetch)} to fetch")
    return "; ".join(parts)


def _plan_objects(
    rows: Sequence[PlanRow], pending: Sequence[Pending], device: str
) -> Iterator[dict[str, Any]]:
    """Yield an object for each run, for JSON. ``pending``: the fetches of the whole command."""
    fields = ("name", "kind", "bytes", "licence", "where")
    to_fetch = [{field: getattr(item, field) for field in fields} for item in pending]
    for row in rows:
        for run in row.runs:
            yield _run_object(run, row, to_fetch, device)


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
        "text": run.text,
        "recipe": {key: asdict(value) for key, value in values.items()},
        "estimate": {**asdict(row.guess), "disk_bytes": disk_bytes([run])},
        "to_fetch": to_fetch,
        "device": device,
        "precision": run.precision,
        "finished": is_finished,
        "printed": dict(run.expect) if run.expect else None,
        "chunk": chunk,
    }
