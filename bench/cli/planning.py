"""What a command means and needs: its runs, what of it is missing, and how to get it; and the progress of what is done."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from bench.backbones import Reference, describe_pending, fetch
from bench.base.devices import device_line
from bench.base.errors import FetchFailed
from bench.base.text import duration, list_names, plural, seed_ranges, size
from bench.cli.options import print_grid, print_json, say, warn, width
from bench.data.fetching import check_network, offline_now
from bench.data.sets import DataFolder, Later, Pending, fetched_folder
from bench.data.sets.fetch import Fetcher
from bench.method.contract import Value
from bench.records import RunsFolder
from bench.records.record import is_given_by_user
from bench.run.config import Plan, RunConfig
from bench.run.estimates import (
    USABLE,
    Estimate,
    card_named,
    check_chunks,
    check_disk,
    disk_bytes,
    estimate,
    fitting_chunk,
    is_trained,
    memory_here,
    settled,
    speeds_of_earlier_runs,
)
from bench.run.execute import is_scored
from bench.run.plan import PlannedRun, learns, make_all
from bench.run.plugins import Registry, discover
from bench.run.recipes import merge
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.terminal import terminal_lines

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


def known_methods(files: Sequence[Path | str]) -> Registry:
    """All methods, with those in ``files``; prints a line on standard error for each that could not be loaded."""
    registry = discover(list(map(Path, files)))
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    return registry


def checked(plan: Plan, *, only_look: bool = False, ranks: Ranks | None = None) -> Plan:
    """The plan, settled. Raises BenchError for a device or a folder that does not exist."""
    DataFolder(plan.runs[0].data).check_root()
    return Plan(
        tuple(
            settled(run, only_look=only_look, ranks=ranks)
            for run in (plan.replaced(offline=True) if offline_now() else plan).runs
        ),
        plan.question,
    )


@dataclass(frozen=True)
class Planned:
    """The runs of a command and, for a dry run, what would be fetched for them."""

    runs: tuple[PlannedRun, ...]
    to_fetch: tuple[Pending, ...] = ()


def prepare(
    make: Callable[[DataFolder, Callable[[Reference], Reference]], Sequence[PlannedRun]],
    config: RunConfig,
    *,
    only_look: bool = False,
) -> Planned:
    """The runs that ``make`` plans, given a data folder and a way to get backbones, with everything that they need on this machine.

    ``make`` first runs without fetching anything, so the user sees the names, sizes and licences of all that is missing before the
    first byte arrives, and a machine without a network fails at once. ``only_look`` stops there (``--dry-run``). Raises a BenchError
    for anything that cannot be fetched, and if the disk is too full to train.
    """
    data = Path(config.data) if config.data else None
    ready = partial(fetch, offline=config.offline, allow_pickle=config.allow_pickle, say=warn)
    later = Later(beside_root=only_look)
    runs = (
        make(DataFolder(data, offline=True), ready)
        if config.offline and not only_look
        else make(DataFolder(data, fetcher=later), partial(_noted, later))
    )
    if later.pending and not only_look:
        announce(later.pending, fetched_folder())
        runs = make(DataFolder(data, fetcher=Fetcher(fetched_folder(), warn)), ready)
    if not only_look and not config.target.elsewhere:
        check_disk(runs, RunsFolder(config.runs))
    return Planned(tuple(runs), later.pending if only_look else ())


def plan_runs(plan: Plan, *, only_look: bool = False) -> Planned:
    """The runs of a settled plan, see :func:`prepare`. Raises BenchError also if a method cannot split its batches."""
    config = plan.runs[0]
    planned = prepare(
        partial(make_all, plan.runs, known_methods(config.plugins)), config, only_look=only_look
    )
    check_chunks(planned.runs, config.chunk)
    return planned


def _noted(later: Later, reference: Reference) -> Reference:
    """The reference; if it is not on this machine, ``later`` gets what would be fetched."""
    if reference.path is None and reference.hub:
        later.note(describe_pending(reference.source or reference.name))
    return reference


def announce(pending: Sequence[Pending], into: Path) -> None:
    """Print what is fetched now. Raises FetchFailed, and prints no table, if there is no network."""
    try:
        check_network(url for item in pending for url in item.urls)
    except FetchFailed as error:
        from huggingface_hub.constants import HF_HUB_CACHE

        raise FetchFailed(
            f"{error.message}; not on this machine: {', '.join(item.name for item in pending)}",
            f"run the same command on a machine with a network, then copy {into} and {HF_HUB_CACHE} here",
        ) from None
    warn(f"fetched now, data into {into}:")
    for line in terminal_lines(pending_grid(pending), width(), indent=2):
        warn(line.plain)


def pending_grid(pending: Sequence[Pending], terms: bool = True) -> Grid:
    """Names, sizes and licences; below them the sum and, with ``terms``, the terms of use and the notes, once each."""
    archives = {name: sets for item in pending for name, sets in item.archives.items()}
    notes = [
        f"{_size(pending)} in all; sizes marked ? are known to the hub alone",
        *(f"accepted by fetching: {item.terms}" for item in pending if item.terms),
        *(f"{name} holds {', '.join(sets)}" for name, sets in archives.items() if len(sets) > 1),
        *(note for item in pending for note in item.notes),
    ]
    return grid(
        ("", Column("MB", right=True), "licence", Column("from", wrap=24)),
        [
            (
                item.name,
                "?" if item.bytes is None else f"{item.bytes / 1e6:,.1f}",
                item.licence,
                item.where,
            )
            for item in pending
        ],
        notes=list(dict.fromkeys(notes)) if terms else [notes[0], "terms of use and notes: --all"],
    )


def _size(pending: Sequence[Pending]) -> str:
    return size(sum(item.bytes or 0 for item in pending))


# --- ``bench run --dry-run``: the runs that a command means, what they would take, and what is fetched for them ---


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
        parts.append(f"{_size(to_fetch)} to fetch")
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


# --- progress on standard error: rich's bars on a terminal, a plain line every so often elsewhere ---


EVERY = 10.0  # seconds between two plain lines


class Bars(Progress):
    """A bar for each phase that works, and a line of numbers below them."""

    numbers = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield Text(self.numbers, no_wrap=True, overflow="ellipsis")


class RunReporter:
    """Lines when runs start and end; between them bars or, with ``plain``, a line every ten seconds without control characters.

    rich counts and times in both cases; with ``plain`` it draws nothing. Its last task is the current phase.
    """

    def __init__(self, plain: bool = True) -> None:
        self.plain, self.label, self.count = plain, "", 1
        self.console = Console(stderr=True, highlight=False)
        self.bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(separator="/"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            refresh_per_second=4,
            speed_estimate_period=1e9,  # the mean of the whole phase: scores on the dev set are slower
            get_time=time.monotonic,
            disable=plain,
            expand=True,
        )
        self.fields: dict[str, Any] = {}
        self.last = time.monotonic()  # when a plain line was printed

    def plan(self, runs: Sequence[Any]) -> None:
        """Begin a list of runs."""
        self.count = len(runs)

    def start(self, label: str, number: int | None = None) -> None:
        """Begin a run; ``number``: its place in the list, from 1."""
        self.label = f"{label} ({number} of {self.count})" if number and self.count > 1 else label
        if self.plain:
            self._say("starts")
        else:
            self.console.print(self.label, style="bold", markup=False)

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase. A score on the dev set is within the training, which goes on afterwards."""
        self._end_phases(but="train" if name in ("train", "dev") else "")
        if name == "dev" or not self.bars.tasks:
            self.bars.add_task(name, total=total)
            self.last = self.last if name == "dev" else time.monotonic()

    def advance(self, done: int, **fields: Any) -> None:
        if not self.bars.tasks:
            return
        task = self.bars.tasks[-1]
        self.fields |= fields
        self.bars.update(task.id, completed=done, total=fields.get("total"))
        numbers = self._numbers(task)
        self.bars.numbers = "  ".join(numbers)
        if self.plain and time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            self._say_progress()

    def _say_progress(self) -> None:
        counts = [_count(task) for task in self.bars.tasks]
        self._say("  ".join([*counts, self.bars.numbers]).rstrip())

    def note(self, text: str) -> None:
        self._say(text, "dim")

    def done(self, line: str) -> None:
        """End a run with a line."""
        self._end_phases()
        self._say(line)

    def _end_phases(self, but: str = "") -> None:
        for task in self.bars.tasks:
            if task.description != but:
                self.bars.remove_task(task.id)
        if not self.bars.tasks:
            self.fields, self.bars.numbers = {}, ""

    def _numbers(self, task: Task) -> list[str]:
        """Task, loss, the best dev score and its step, speed: those that are known."""
        fields = self.fields
        speed = task.speed if task.description == "encode" else fields.get("sentences_per_second")
        return [
            part
            for part in (
                fields.get("task"),
                fields.get("loss") is not None and f"loss {fields['loss']:.4f}",
                fields.get("best") is not None
                and f"dev best {fields['best']:.2f} at {fields['best_step']}",
                speed and f"{speed:.0f} sentences/s",
            )
            if part
        ]

    def _say(self, text: str, style: str = "") -> None:
        if self.plain:
            print(f"{self.label}: {text}" if self.label else text, file=sys.stderr, flush=True)
        else:
            self.console.print(Padding.indent(Text(text, style), 2))


def _count(task: Task) -> str:
    """ "train 125 of 1000", and the remaining time if it is known."""
    of = f" of {task.total:g}" if task.total else ""
    remaining = f"  {duration(task.time_remaining)} left" if task.time_remaining else ""
    return f"{task.description} {task.completed:g}{of}{remaining}"


@contextmanager
def reporting(plain: bool) -> Iterator[RunReporter]:
    """A reporter that suits standard error: bars on a terminal, lines elsewhere or with ``plain``."""
    reporter = RunReporter(plain or not sys.stderr.isatty())
    with nullcontext() if reporter.plain else reporter.bars:
        yield reporter
