"""What a command means and needs: its runs, what of it is missing, and how to get it; and the progress of what is done."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from bench.base.devices import device_line
from bench.base.text import duration, list_names, plural, seed_ranges, size
from bench.cli.options import print_grid, print_json, say
from bench.data.sets import Pending
from bench.method.contract import Value
from bench.records import RunsFolder
from bench.records.record import is_given_by_user
from bench.run.config import RunConfig
from bench.run.estimates import (
    USABLE,
    Estimate,
    card_named,
    disk_bytes,
    estimate,
    fitting_chunk,
    is_trained,
    memory_here,
    speeds_of_earlier_runs,
)
from bench.run.execute import is_scored
from bench.run.plan import PlannedRun, learns
from bench.run.recipes import merge
from bench.session.needs import Planned, pending_grid, pending_size
from bench.show.grid import Cell, Column, Grid, grid

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class PlanRow:
    """Runs that differ only in the seed."""

    runs: tuple[PlannedRun, ...]
    guess: Estimate  # of each
    pending: tuple[PlannedRun, ...]  # those that are not trained
    unscored: tuple[PlannedRun, ...]  # those that are trained, but lack the score of a task
    chunk: (
        int | None
    )  # the --chunk with which they fit into memory; 0: none does, None: they fit as they are


def plan_rows(
    planned: Sequence[PlannedRun], store: RunsFolder, device: str, chunk: int | None = None
) -> list[PlanRow]:
    """The runs of a plan, grouped by everything except the seed, with what each would take on a device or card."""
    earlier = (
        speeds_of_earlier_runs(store, device)
        if any(run.corpus is not None for run in planned)
        else {}
    )
    groups: dict[str, list[PlannedRun]] = {}
    for run in planned:
        identity = (*_name(run), run.backbone.revision, run.corpus and run.corpus.name)
        groups.setdefault(json.dumps([identity, dict(run.recipe)], default=str), []).append(run)
    rows = []
    for runs in groups.values():
        guess = estimate(runs[0], earlier, device, chunk)
        fits = (guess.memory_bytes or 0) <= USABLE * memory_here(device)
        rows.append(
            PlanRow(
                tuple(runs),
                guess,
                pending=tuple(run for run in runs if not is_trained(run, store)),
                unscored=tuple(run for run in runs if lacks_scores(run, store)),
                chunk=None if fits else fitting_chunk(runs[0], device) or 0,
            )
        )
    return rows


def show_plan(
    plan: Planned, store: RunsFolder, config: RunConfig, as_json: bool, *, everything: bool = False
) -> None:
    """Print the plan and what it would fetch; write nothing. ``everything``: also the default values."""
    rows = plan_rows(
        plan.runs, store, config.device, config.chunk if isinstance(config.chunk, int) else None
    )
    if as_json:
        print_json(as_data(rows, plan.to_fetch, config.device))
        return
    first, card = rows[0].runs[0], card_named(config.device)
    click.echo(
        f"device {card.name} ({card.gib} GB), precision {first.precision}"
        if card
        else device_line(config.device, first.precision)
    )
    scored = list_names(dict.fromkeys(task.name for task in first.tasks), 20)
    say(f"scored on {scored} ({first.text} text)", hang=2)
    for table in (_runs_grid(rows), _recipe_grid(rows, everything)):
        print_grid(table, blank=True)
    if plan.to_fetch:
        say(
            "not on this machine; "
            + ("--offline forbids fetching" if config.offline else "a run fetches this first"),
            hang=2,
            blank=True,
        )
        sets = [item.name for item in plan.to_fetch if item.kind != "backbone"]
        if config.data is not None and sets:
            say(
                f"into {config.data}: bench data fetch {' '.join(sets)} --data {config.data}",
                hang=2,
            )
        print_grid(pending_grid(plan.to_fetch, terms=everything), indent=2)
    say(_total(rows, plan.to_fetch), hang=2, blank=True)


def _runs_grid(rows: Sequence[PlanRow]) -> Grid:
    """A line for each row, numbered if there are several; the notes on runs are footnotes, once each."""
    footnotes: dict[str, int] = {}
    lines: list[dict[str, Cell | str]] = []
    for number, row in enumerate(rows, 1):
        run, guess, backbone = row.runs[0], row.guess, row.runs[0].backbone
        notes = dict.fromkeys(note for one in row.runs for note in one.notes)
        marks = [footnotes.setdefault(note, len(footnotes) + 1) for note in notes]
        lines.append(
            {
                "": str(number) if len(rows) > 1 else "",
                "method": Cell(text=run.method, marks=tuple(marks)),
                "setting": run.setting,
                "variant": " ".join(filter(None, [run.variant, *_series(row, rows)])),
                "backbone": backbone.title or (backbone.name if backbone.hub else backbone.short),
                "seeds": seed_ranges(one.seed for one in row.runs) or "any",
                "steps": "" if guess.steps is None else f"{guess.steps:,}",
                "GiB": "" if guess.memory_bytes is None else f"{guess.memory_bytes / 2**30:.1f}",
                "fits with": "" if row.chunk is None else f"--chunk {row.chunk or 'none'}",
                "time/run": "" if guess.seconds is None else duration(guess.seconds),
                "state": _state(row),
                "printed": f"{run.expect['value']:.2f}" if run.expect else "",
            }
        )
    return grid(
        [Column(name, right=name in ("steps", "GiB", "time/run", "printed")) for name in lines[0]],
        [line.values() for line in lines],
        footnotes=list(footnotes),
        notes=list(
            dict.fromkeys(row.guess.basis for row in rows if row.runs[0].corpus is not None)
        ),
    )


def lacks_scores(run: PlannedRun, store: RunsFolder) -> bool:
    """Say if a run is trained, but has no score yet of a task that is to be scored."""
    record = store.get(run.run_id, run.fingerprint)
    if record is None or record.status != "finished":
        return False
    tasks = zip(
        run.tasks, run.task_data, strict=False
    )  # data that is fetched later is not in task_data
    return len(run.task_data) < len(run.tasks) or any(
        not is_scored(record, task, known) for task, known in tasks
    )


def _state(row: PlanRow) -> str:
    """ "2 of 3 finished, 1 to score"; "" if nothing is done yet."""
    finished = len(row.runs) - len(row.pending) - len(row.unscored)
    parts = []
    if finished:
        parts.append(f"{finished} of {len(row.runs)} finished")
    if row.unscored:
        parts.append(f"{len(row.unscored)} to score")
    return ", ".join(parts)


def _series(row: PlanRow, rows: Sequence[PlanRow]) -> list[str]:
    """The recipe values in which this row differs from others of the same name: "temperature=0.1"."""
    alike = [other.runs[0].recipe for other in rows if _name(other.runs[0]) == _name(row.runs[0])]
    return [
        f"{key}={json.dumps(value)}"
        for key, value in row.runs[0].recipe.items()
        if len({json.dumps(recipe.get(key)) for recipe in alike}) > 1
    ]


def _name(run: PlannedRun) -> tuple[str, str, str, str]:
    return run.method, run.setting, run.variant, run.backbone.name


def _recipe_grid(rows: Sequence[PlanRow], everything: bool) -> Grid:
    """For each row: the corpus, the values that are not defaults (or all), with their sources, and the printed result."""
    lines = []
    for number, row in enumerate(rows, 1):
        run, name = row.runs[0], str(number) if len(rows) > 1 else ""
        defaults = merge(run.plugin.cls, None, "", {}, trained=learns(run.plugin.cls, run.setting))
        if run.corpus is not None:
            counted = f"{len(run.corpus):,} rows" if len(run.corpus) else "rows not counted yet"
            lines.append((name, "corpus", run.corpus.name, counted))
        for key, value in run.recipe.values_with_source().items():
            if everything or _matters(key, value, row, defaults):
                source = f"{value.source} ({value.note})" if value.note else value.source
                lines.append((name, key, json.dumps(value.value), source))
        if run.expect:
            lines.append((name, "printed", f"{run.expect['value']:.2f}", run.expect["source"]))
    return grid(
        ("", "recipe", Column("value", wrap=24), Column("source", wrap=24)),
        lines,
        notes=[] if everything else ["default values, with their sources: --all"],
    )


def _matters(key: str, value: Value, row: PlanRow, defaults: Mapping[str, Any]) -> bool:
    """Say if a recipe value belongs into the short list: a user gave it, or it is no default and has an effect."""
    if is_given_by_user(value.source):
        return True
    if value.value is None:
        return False
    if key == "max_steps" and (row.guess.steps or math.inf) < value.value:
        return False
    return key not in defaults or value.value != defaults[key]


def _total(rows: Sequence[PlanRow], to_fetch: Sequence[Pending]) -> str:
    """The totals over the runs that are not finished."""
    pending = [run for row in rows for run in row.pending]
    unscored = sum(len(row.unscored) for row in rows)
    seconds = sum((row.guess.seconds or 0) * len(row.pending) for row in rows)
    unknown = any(row.guess.seconds is None and row.runs[0].corpus and row.pending for row in rows)
    needed = disk_bytes(pending)
    parts = [f"total: {plural(len(pending), 'run')} to do"]
    if unscored:
        parts.append(f"{plural(unscored, 'finished run')} to score")
    if seconds:
        parts.append(f"about {duration(seconds)} of training")
    if unknown:
        parts.append("not counting rows whose time is unknown")
    if needed:
        parts.append(f"up to {size(needed)} on disk")
    if to_fetch:
        parts.append(f"{pending_size(to_fetch)} to fetch")
    return "; ".join(parts)


def as_data(
    rows: Sequence[PlanRow], pending: Sequence[Pending], device: str
) -> Iterator[dict[str, Any]]:
    """A dictionary for each run. ``pending``: what the whole command would fetch."""
    to_fetch = [
        {key: getattr(item, key) for key in ("name", "kind", "bytes", "licence", "where")}
        for item in pending
    ]
    for row in rows:
        for run in row.runs:
            yield {
                "run_id": None if run.provisional else run.run_id,
                "fingerprint": None if run.provisional else run.fingerprint,
                "method": run.method,
                "variant": run.variant,
                "setting": run.setting,
                "backbone": run.backbone.name,
                "seed": run.seed,
                "corpus": run.corpus.name if run.corpus else None,
                "notes": list(run.notes),
                "tasks": list(dict.fromkeys(task.name for task in run.tasks)),
                "text": run.text,
                "recipe": {
                    key: asdict(value) for key, value in run.recipe.values_with_source().items()
                },
                "estimate": {**asdict(row.guess), "disk_bytes": disk_bytes([run])},
                "to_fetch": to_fetch,
                "device": device,
                "precision": run.precision,
                "finished": run not in row.pending and run not in row.unscored,
                "printed": dict(run.expect) if run.expect else None,
                "chunk": row.chunk or None,
            }
