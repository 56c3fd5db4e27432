"""What a command means and needs: its runs, what of it is not here, and getting that, announced in one table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.backbones import fetch
from bench.backbones.hub import bring_over, describe_pending
from bench.base.errors import DataMissing, FetchFailed
from bench.base.text import duration, list_names, plural, size
from bench.board.repeat import seed_ranges
from bench.cli.columns import print_grid, say, width
from bench.cli.options import json_text, warn
from bench.data.fetching import check_network
from bench.data.sets import DataFolder, Later, Pending, fetched_folder
from bench.data.sets.fetch import Fetcher
from bench.run.estimates import (
    USABLE,
    Estimate,
    card_named,
    estimate,
    fitting_chunk,
    memory_here,
    speeds_of_earlier_runs,
)
from bench.run.plan import PlannedRun, learns, make_all
from bench.run.plan_file import Plan
from bench.run.plugins import Registry, discover
from bench.run.recipes import merge
from bench.run.settle import check_chunks
from bench.runs import RunsFolder
from bench.show.grid import Cell, Column, Grid, grid, terminal

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.method import Value
    from bench.run.config import RunConfig


def known_methods(files: Sequence[Path | str]) -> Registry:
    """The methods there are, with those of ``files``; a line for each that could not be loaded goes to standard error."""
    registry = discover([Path(file) for file in files])
    for warning in registry.warnings:
        warn(f"warning: {warning}")
    return registry


@dataclass(frozen=True)
class Planned:
    """The runs of a command, and what is still to be fetched for them."""

    runs: tuple[PlannedRun, ...]
    to_fetch: tuple[
        Pending, ...
    ] = ()  # what is not here; of a plan that may fetch nothing, what keeps it from being run


Make = Callable[[DataFolder, Callable[["Reference"], "Reference"]], Sequence[PlannedRun]]


def prepare(make: Make, config: RunConfig, *, only_look: bool = False) -> Planned:
    """The runs that ``make`` plans with a data folder and a way to get backbones, with everything that they need on this machine.

    What is missing is planned with first, and nothing of it is requested: so the user sees names, sizes and licences of all of it
    before the first byte, and a machine without a network says so at once. ``only_look`` stops there (``--dry-run``). Raises a
    BenchError for what cannot be had.
    """
    data = Path(config.data) if config.data else None
    ready: Callable[[Reference], Reference] = partial(
        fetch, offline=config.offline, allow_pickle=config.allow_pickle, say=warn
    )
    if config.offline and not only_look:
        return Planned(tuple(make(DataFolder(data, offline=True), ready)))
    later = Later(beside_root=only_look)
    looked = tuple(make(DataFolder(data, fetcher=later), partial(_noted, later)))
    if only_look or not later.pending:
        return Planned(looked, later.pending)
    announce(later.pending, fetched_folder())
    folder = DataFolder(data, fetcher=Fetcher(fetched_folder(), warn))
    return Planned(tuple(make(folder, ready)))


def plan_runs(plan: Plan, *, only_look: bool = False) -> Planned:
    """The runs of a settled plan, see :func:`prepare`. Raises BenchError also where a method cannot take batches in parts."""
    config = plan.runs[0]
    make = partial(make_all, plan.runs, known_methods(config.plugins))
    planned = prepare(make, config, only_look=only_look)
    check_chunks(planned.runs, config.chunk)
    return planned


def _noted(later: Later, reference: Reference) -> Reference:
    """The reference; where it is not here, it is noted what fetching it would bring."""
    if reference.path is None and reference.hub:
        later.note(describe_pending(reference.source or reference.name))
    return reference


def announce(pending: Sequence[Pending], into: Path) -> None:
    """The table of what is fetched now. Raises FetchFailed, in place of the table, where there is no network."""
    try:
        check_network(url for item in pending for url in item.urls)
    except FetchFailed as error:
        names = ", ".join(item.name for item in pending)
        missing = f"{error.message}; not on this machine: {names}"
        raise FetchFailed(missing, elsewhere(pending)) from None
    warn(f"fetched now, data into {into}:")
    for line in terminal(pending_grid(pending), width(), indent=2):
        warn(line.plain)


def check_nothing_to_fetch(pending: Sequence[Pending]) -> None:
    """Raises DataMissing where a command that may open no connection would have to."""
    if pending:
        names = ", ".join(item.name for item in pending)
        raise DataMissing(
            f"{names}: not on this machine, and --offline (or HF_HUB_OFFLINE) forbids fetching",
            elsewhere(pending),
        )


def pending_grid(pending: Sequence[Pending], terms: bool = True) -> Grid:
    """Names, sizes and licences; below them the sum and, with ``terms``, what is accepted by fetching and what is noted, once each."""
    rows = [
        (
            item.name,
            "?" if item.bytes is None else f"{item.bytes / 1e6:,.1f}",
            item.licence,
            item.where,
        )
        for item in pending
    ]
    columns = ("", Column("MB", right=True), "licence", Column("from", wrap=24))
    hub = ", without those marked ?, whose size only the hub has"
    unknown = any(item.bytes is None for item in pending)
    notes = [f"{size(_bytes(pending))} in all{hub if unknown else ''}"]
    if not terms:
        return grid(columns, rows, notes=[*notes, "terms of use and notes: --all"])
    notes += [f"accepted by fetching: {item.terms}" for item in pending if item.terms]
    archives = {name: ", ".join(sets) for item in pending for name, sets in item.archives.items()}
    notes += [f"{name} holds {sets}" for name, sets in archives.items() if "," in sets]
    notes += [note for item in pending for note in item.notes]
    return grid(columns, rows, notes=list(dict.fromkeys(notes)))


def _bytes(pending: Sequence[Pending]) -> int:
    return sum(item.bytes or 0 for item in pending)


def elsewhere(pending: Sequence[Pending]) -> str:
    """How all of it comes to a machine without a network."""
    ahead = "where there is a network: "
    sets, mteb = _sets(pending), [item.name for item in pending if ":" in item.name]
    parts = [f"bench data fetch {sets} --data DIR, then --data DIR here"] if sets else []
    parts += [f"the same command (for {', '.join(mteb)}), then copy its cache"] if mteb else []
    backbones = [item.name for item in pending if item.kind == "backbone"]
    return ahead + "; ".join(parts + [bring_over(name).removeprefix(ahead) for name in backbones])


def _sets(pending: Sequence[Pending]) -> str:
    """What ``bench data fetch`` gets of it."""
    return " ".join(i.name for i in pending if i.kind != "backbone" and ":" not in i.name)


# --- ``bench run --dry-run``: the runs that a command means, what they would take, and what is fetched for them ---


@dataclass(frozen=True)
class PlanRow:
    """Runs that differ in nothing but the seed."""

    runs: tuple[PlannedRun, ...]
    guess: Estimate  # of each
    finished: tuple[bool, ...]

    @property
    def first(self) -> PlannedRun:
        return self.runs[0]

    @property
    def pending(self) -> int:
        """How many are still to be done."""
        return self.finished.count(False)


def plan_rows(
    planned: Sequence[PlannedRun], store: RunsFolder, device: str, chunk: int | None = None
) -> list[PlanRow]:
    """The runs of a plan by all that they are but the seed, with what each would take on a device or card."""
    trains = any(run.corpus is not None for run in planned)
    earlier = speeds_of_earlier_runs(store, device) if trains else {}
    groups: dict[str, list[PlannedRun]] = {}
    for run in planned:
        what = (*_name(run), run.backbone.revision, run.corpus and run.corpus.name)
        groups.setdefault(json.dumps([what, dict(run.recipe)], default=str), []).append(run)
    rows = []
    for runs in groups.values():
        records = [store.get(run.run_id, run.fingerprint) for run in runs]
        finished = tuple(record is not None and record.status == "finished" for record in records)
        rows.append(PlanRow(tuple(runs), estimate(runs[0], earlier, device, chunk), finished))
    return rows


def show_plan(
    plan: Planned, store: RunsFolder, config: RunConfig, as_json: bool, *, everything: bool = False
) -> None:
    """Print the plan, and what it would fetch; nothing is written. ``everything``: values that are the defaults, too."""
    pending, device = plan.to_fetch, config.device
    chunk = config.chunk if isinstance(config.chunk, int) else None
    rows = plan_rows(plan.runs, store, device, chunk)
    if as_json:
        for facts in as_data(rows, pending, device):
            click.echo(json_text(facts))
        return
    first, card = rows[0].first, card_named(device)
    title = f"planned for one {card.name} ({card.gib} GB)" if card else f"device {device}"
    bases = dict.fromkeys(row.guess.basis for row in rows if row.first.corpus is not None)
    scored = list_names(dict.fromkeys(task.name for task in first.tasks), 20)
    say("; ".join([f"{title}, precision {first.precision}", *bases]), hang=2)
    say(f"scored on {scored} ({first.text} text)", hang=2)
    click.echo()
    print_grid(_runs_grid(rows, device))
    click.echo()
    print_grid(_recipe_grid(rows, everything))
    click.echo()
    if pending:
        say("not on this machine; without --dry-run this is fetched first", hang=2)
        if config.data is not None and (sets := _sets(pending)):
            say(f"into that folder: bench data fetch {sets} --data {config.data}", hang=2)
        print_grid(pending_grid(pending, terms=everything), indent=2)
        click.echo()
    say(_total(rows, pending), hang=2)


def _runs_grid(rows: Sequence[PlanRow], device: str) -> Grid:
    """A line for each row, numbered where there are several; what is noted of runs stands below, once."""
    footnotes: dict[str, int] = {}
    lines = []
    for number, row in enumerate(rows, 1):
        run, guess, backbone = row.first, row.guess, row.first.backbone
        notes = dict.fromkeys(note for one in row.runs for note in one.notes)
        marks = [footnotes.setdefault(note, len(footnotes) + 1) for note in notes]
        seeds = sorted({one.seed for one in row.runs if one.seed is not None})
        finished = len(row.runs) - row.pending
        line: dict[str, Cell | str] = {
            "": str(number) if len(rows) > 1 else "",
            "method": Cell(text=run.method, marks=tuple(marks)),
            "setting": run.setting,
            "variant": " ".join(filter(None, [run.variant, *_series(row, rows)])),
            "backbone": backbone.title or (backbone.name if backbone.hub else backbone.short),
            "seeds": seed_ranges(seeds) or "any",
            "steps": "" if guess.steps is None else f"{guess.steps:,}",
            "GiB": "" if guess.memory_bytes is None else f"{guess.memory_bytes / 2**30:.1f}",
            "fits with": _what_fits(row, device),
            "time/run": "" if guess.seconds is None else duration(guess.seconds),
            "state": f"{finished} of {len(row.runs)} finished" if finished else "",
            "printed": f"{run.expect['value']:.2f}" if run.expect else "",
        }
        lines.append(line)
    right = ("steps", "GiB", "time/run", "printed")
    columns = [Column(name, right=name in right) for name in lines[0]]
    return grid(columns, [line.values() for line in lines], footnotes=list(footnotes))


def _what_fits(row: PlanRow, device: str) -> str:
    """The --chunk with which runs fit into the memory of the device; "" for those that fit as they are."""
    if (row.guess.memory_bytes or 0) <= USABLE * memory_here(device):
        return ""
    chunk = fitting_chunk(row.first, device)
    return f"--chunk {chunk}" if chunk else "no --chunk"


def _series(row: PlanRow, rows: Sequence[PlanRow]) -> list[str]:
    """What a series of values gives to this row, where another of the same name has another: "temperature=0.1"."""
    alike = [other.first.recipe for other in rows if _name(other.first) == _name(row.first)]
    return [
        f"{key}={json.dumps(value)}"
        for key, value in row.first.recipe.items()
        if len({json.dumps(recipe.get(key)) for recipe in alike}) > 1
    ]


def _name(run: PlannedRun) -> tuple[str, str, str, str]:
    return run.method, run.setting, run.variant, run.backbone.name


def _recipe_grid(rows: Sequence[PlanRow], everything: bool) -> Grid:
    """Of each row its corpus, the values that are not the defaults (or all), with their sources, and the printed result."""
    lines = []
    for number, row in enumerate(rows, 1):
        run, name = row.first, str(number) if len(rows) > 1 else ""
        if run.corpus is not None:
            counted = f"{len(run.corpus):,} rows" if len(run.corpus) else "rows not counted yet"
            lines.append((name, "corpus", run.corpus.name, counted))
        for key, value in run.recipe.values_with_source().items():
            if everything or _is_changed(run, key, value):
                source = value.source + (f" ({value.note})" if value.note else "")
                lines.append((name, key, json.dumps(value.value), source))
        if run.expect:
            lines.append((name, "printed", f"{run.expect['value']:.2f}", run.expect["source"]))
    columns = ("", "recipe", Column("value", wrap=24), Column("source", wrap=24))
    note = "with --all: the values that are defaults, with their sources"
    return grid(columns, lines, notes=[] if everything else [note])


def _is_changed(run: PlannedRun, key: str, value: Value) -> bool:
    """Is it not what the harness, and then the method, have by default, or did the command set it?"""
    defaults = merge(run.plugin.cls, None, "", {}, trained=learns(run.plugin.cls, run.setting))
    return key not in defaults or value.value != defaults[key] or value.source == "--set"


def _total(rows: Sequence[PlanRow], pending: Sequence[Pending]) -> str:
    """The sum over what is to do."""
    parts = [f"total: {plural(sum(row.pending for row in rows), 'run')} to do"]
    if seconds := sum((row.guess.seconds or 0) * row.pending for row in rows):
        parts.append(f"about {duration(seconds)} of training")
    if any(row.guess.seconds is None and row.first.corpus and row.pending for row in rows):
        parts.append("without the rows whose time is not known")
    if pending:
        parts.append(f"{size(_bytes(pending))} to fetch")
    return "; ".join(parts)


def as_data(
    rows: Sequence[PlanRow], pending: Sequence[Pending], device: str
) -> Iterator[dict[str, Any]]:
    """A mapping for each run. ``pending``: what the whole command would fetch."""
    fetched = ("name", "kind", "bytes", "licence", "where")
    to_fetch = [{key: getattr(item, key) for key in fetched} for item in pending]
    for row in rows:
        fits = not _what_fits(row, device)
        for run, finished in zip(row.runs, row.finished, strict=True):
            values = run.recipe.values_with_source().items()
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
                "recipe": {key: asdict(value) for key, value in values},
                "estimate": asdict(row.guess),
                "to_fetch": to_fetch,
                "device": device,
                "precision": run.precision,
                "finished": finished,
                "printed": dict(run.expect) if run.expect else None,
                "chunk": None if fits else fitting_chunk(run, device),
            }
