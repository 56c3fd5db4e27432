"""What a command means and needs: its runs, what of it is not here, and getting that, announced in one table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.base.errors import DataMissing, FetchFailed
from bench.base.text import duration, list_names, plural, size
from bench.cli.columns import print_grid, say, width
from bench.cli.options import json_text, warn
from bench.data.sets import DataFolder, Fetcher, Later, Pending, fetched_folder
from bench.run.estimates import (
    USABLE,
    Estimate,
    card_named,
    estimate,
    fitting_chunk,
    memory_here,
    speeds_of_earlier_runs,
)
from bench.run.plan import PlannedRun, learns
from bench.run.plugins import Registry, discover
from bench.run.recipes import merge
from bench.runs import RunsFolder
from bench.show.grid import Cell, Column, Grid, grid, terminal

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.data.fetching import Report
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


def prepare(make: Make, config: RunConfig, report: Report, *, only_look: bool = False) -> Planned:
    """The runs that ``make`` plans with a data folder and a way to get backbones, with everything that they need on this machine.

    What is missing is planned with first, and nothing of it is requested: so the user sees names, sizes and licences of all of it
    before the first byte, and a machine without a network says so at once. ``only_look`` stops there (``--dry-run``). Raises a
    BenchError for what cannot be had.
    """
    from bench.backbones import fetch

    data = Path(config.data) if config.data else None
    ready: Callable[[Reference], Reference] = partial(
        fetch, offline=config.offline, allow_pickle=config.allow_pickle, say=report.say
    )
    if config.offline and not only_look:
        return Planned(tuple(make(DataFolder(data, offline=True), ready)))
    later = Later(beside_root=only_look)
    looked = tuple(make(DataFolder(data, fetcher=later), partial(_noted, later)))
    if only_look or not later.pending:
        return Planned(looked, later.pending)
    announce(later.pending, report, fetched_folder())
    folder = DataFolder(data, fetcher=Fetcher(fetched_folder(), report))
    return Planned(tuple(make(folder, ready)))


def _noted(later: Later, reference: Reference) -> Reference:
    """The reference; where it is not here, it is noted what fetching it would bring."""
    from bench.backbones import hub as models_of_hub

    if reference.path is None and reference.hub:
        later.note(
            models_of_hub.describe_pending(reference.source or reference.name, reference.sizes())
        )
    return reference


def announce(pending: Sequence[Pending], report: Report, into: Path) -> None:
    """The table of what is fetched now. Raises FetchFailed, in place of the table, where there is no network."""
    from bench.data.fetching import check_network

    try:
        check_network(url for item in pending for url in item.urls)
    except FetchFailed as error:
        names = ", ".join(item.name for item in pending)
        raise FetchFailed(
            f"{error.message}; not on this machine: {names}", elsewhere(pending)
        ) from None
    report.say(
        f"fetched now, data into {into}:"
        if any(item.kind != "backbone" for item in pending)
        else "fetched now:"
    )
    for line in table_of(pending):
        report.say(line)


def check_nothing_to_fetch(pending: Sequence[Pending]) -> None:
    """Raises DataMissing where a command that may open no connection would have to."""
    if pending:
        names = ", ".join(item.name for item in pending)
        raise DataMissing(
            f"{names}: not on this machine, and --offline (or HF_HUB_OFFLINE) forbids fetching",
            elsewhere(pending),
        )


def table_of(pending: Sequence[Pending], terms: bool = True) -> list[str]:
    """Names, sizes and licences, one line each; the sum; then, with ``terms``, those that are accepted by fetching, and notes, once each."""
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
    lines = [line.plain for line in terminal(grid(columns, rows), width(), indent=2)]
    unknown = [item.name for item in pending if item.bytes is None]
    total = f"  about {sum(item.bytes or 0 for item in pending) / 1e6:,.0f} MB in all"
    lines.append(
        total + (f", and {list_names(unknown)}, whose size only the hub knows" if unknown else "")
    )
    if not terms:
        return lines
    accepted: dict[str, list[str]] = {}
    archives: dict[str, Sequence[str]] = {}
    for item in pending:
        accepted.setdefault(item.terms, []).append(item.name)
        archives |= item.archives
    lines += [
        f"  terms of {', '.join(names)}, which you accept by fetching: {text}"
        for text, names in accepted.items()
        if text
    ]
    named = {item.name for item in pending}
    for archive, sets in archives.items():
        if others := [name for name in sets if name not in named]:
            lines.append(
                f"  {archive} brings {', '.join(others)} along (bench data list NAME: their licences)"
            )
    return lines + [
        f"  {note}" for note in dict.fromkeys(note for item in pending for note in item.notes)
    ]


def elsewhere(pending: Sequence[Pending]) -> str:
    """How all of it comes to a machine without a network."""
    from bench.backbones.hub import bring_over

    ahead = "where there is a network: "
    sets = [item.name for item in pending if item.kind != "backbone" and ":" not in item.name]
    parts = [f"bench data fetch {' '.join(sets)} --data DIR, then --data DIR here"] if sets else []
    parts += [
        bring_over(item.name).removeprefix(ahead) for item in pending if item.kind == "backbone"
    ]
    parts += [
        f"the same command (for {item.name}), then copy its cache"
        for item in pending
        if ":" in item.name
    ]
    return ahead + "; ".join(parts)


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
    earlier = (
        speeds_of_earlier_runs(store, device)
        if any(run.corpus is not None for run in planned)
        else {}
    )
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
    """Print the plan, and what it would fetch; nothing is written. ``everything``: values that are the defaults, and terms, too."""
    planned, pending, device = plan.runs, plan.to_fetch, config.device
    chunk = config.chunk if isinstance(config.chunk, int) else None
    rows = plan_rows(planned, store, device, chunk)
    if as_json:
        by_run = {
            id(run): (row.guess, finished)
            for row in rows
            for run, finished in zip(row.runs, row.finished, strict=True)
        }
        for run in planned:
            click.echo(json_text(as_dict(run, *by_run[id(run)], pending, device)))
        return
    say(_device_line(rows, device), hang=2)
    first = rows[0].first
    scored = list_names(dict.fromkeys(task.name for task in first.tasks), 20)
    say(f"scored on {scored} ({first.text} text)", hang=2)
    click.echo()
    print_grid(_runs_grid(rows, device))
    click.echo()
    print_grid(_recipe_grid(rows, everything))
    if everything:
        states = [
            (run.run_id, "finished" if finished else "to do")
            for row in rows
            for run, finished in zip(row.runs, row.finished, strict=True)
        ]
        click.echo()
        print_grid(grid(("run", "state"), states))
    if pending:
        _show_pending(pending, config.data, everything)
    click.echo()
    say(_total(rows, pending), hang=2)


def _device_line(rows: Sequence[PlanRow], device: str) -> str:
    """What the plan is for, and what its times are computed from."""
    card = card_named(device)
    title = f"planned for one {card.name} ({card.gib} GB)" if card else f"device {device}"
    bases = dict.fromkeys(row.guess.basis for row in rows if row.first.corpus is not None)
    return "; ".join([f"{title}, precision {rows[0].first.precision}", *bases])


def _runs_grid(rows: Sequence[PlanRow], device: str) -> Grid:
    """A line for each row, numbered where there are several; what is noted of runs stands below, once."""
    from bench.board.repeat import seed_words

    footnotes: dict[str, int] = {}
    lines = []
    for number, row in enumerate(rows, 1):
        run, guess, done = row.first, row.guess, len(row.runs) - row.pending
        notes = dict.fromkeys(note for one in row.runs for note in one.notes)
        marks = [footnotes.setdefault(note, len(footnotes) + 1) for note in notes]
        line: dict[str, Cell | str] = {
            "": _number(number, rows),
            "method": Cell(text=run.method, marks=tuple(marks)),
            "setting": run.setting,
            "variant": " ".join(filter(None, [run.variant, *_series(row, rows)])),
            "backbone": run.backbone.title
            or (run.backbone.name if run.backbone.hub else run.backbone.short),
            "seeds": seed_words(sorted({one.seed for one in row.runs if one.seed is not None}))
            or "any",
            "steps": "" if guess.steps is None else f"{guess.steps:,}",
            "GiB": "" if guess.memory_bytes is None else f"{guess.memory_bytes / 2**30:.1f}",
            "fits with": _what_fits(row, device),
            "h/run": "" if guess.seconds is None else hour_text(guess.seconds),
            "state": f"{done} of {len(row.runs)} finished" if done else "",
            "printed": printed_text(run),
        }
        lines.append(line)
    right = ("steps", "GiB", "h/run", "printed")
    columns = [Column(name, right=name in right) for name in lines[0]]
    return grid(columns, [line.values() for line in lines], footnotes=list(footnotes))


def _number(number: int, rows: Sequence[PlanRow]) -> str:
    return str(number) if len(rows) > 1 else ""


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


def hour_text(seconds: float) -> str:
    """Hours with two digits that count: "0.46", "9.5", "246"; "<0.01" below that."""
    hours = seconds / 3600
    return (
        "<0.01"
        if hours < 0.01
        else f"{hours:,.0f}"
        if hours >= 10
        else f"{hours:.1f}"
        if hours >= 1
        else f"{hours:.2f}"
    )


def printed_text(run: PlannedRun) -> str:
    """The value that a paper prints for a run; nothing for what is not trained and has none."""
    if run.expect is None:
        return "none" if run.corpus is not None else ""
    return f"{run.expect['value']:.2f}"


def _recipe_grid(rows: Sequence[PlanRow], everything: bool) -> Grid:
    """Of each row its corpus, the values that are not the defaults (or all), with their sources, and the printed result."""
    lines = []
    for number, row in enumerate(rows, 1):
        run, name = row.first, _number(number, rows)
        if run.corpus is not None:
            size_text = f"{len(run.corpus):,} rows" if len(run.corpus) else "rows not counted yet"
            lines.append((name, "corpus", run.corpus.name, size_text))
        values = run.recipe.values_with_source()
        for key in values if everything else changed_keys(run):
            value = values[key]
            source = value.source + (f" ({value.note})" if value.note else "")
            lines.append((name, key, json.dumps(value.value), source))
        if run.expect:
            lines.append((name, "printed", printed_text(run), run.expect["source"]))
    columns = ("", "recipe", Column("value", wrap=24), Column("source", wrap=24))
    note = "with --all: the values that are defaults, with their sources"
    return grid(columns, lines, notes=[] if everything else [note])


def changed_keys(run: PlannedRun) -> list[str]:
    """Recipe keys whose value is not what the harness, and then the method, have by default; and those that the command sets."""
    defaults = merge(run.plugin.cls, None, "", {}, trained=learns(run.plugin.cls, run.setting))
    return [
        key
        for key, value in run.recipe.values_with_source().items()
        if key not in defaults or value.value != defaults[key] or value.source == "--set"
    ]


def _show_pending(pending: Sequence[Pending], data: str | None, everything: bool) -> None:
    sets = [item.name for item in pending if item.kind != "backbone" and ":" not in item.name]
    title = "not on this machine; without --dry-run this is fetched first"
    if data is not None and sets:
        title = f"not on this machine; bench data fetch {' '.join(sets)} --data {data} gets the data, which nothing else adds to that folder"
    click.echo()
    say(title, hang=2)
    for line in table_of(pending, terms=everything):
        say(line[2:], indent=2, hang=4)
    if not everything and any(item.terms or item.notes or item.archives for item in pending):
        say("terms of use and notes: --all", indent=2, hang=4)


def _total(rows: Sequence[PlanRow], pending: Sequence[Pending]) -> str:
    """The sum over what is to do."""
    todo = [row for row in rows if row.pending]
    seconds = sum((row.guess.seconds or 0) * row.pending for row in todo)
    unknown = sum(
        row.pending for row in todo if row.guess.seconds is None and row.first.corpus is not None
    )
    parts = [f"total: {plural(sum(row.pending for row in todo), 'run')} to do"]
    if seconds:
        days = f" ({duration(seconds)})" if seconds > 48 * 3600 else ""
        about = f"about {hour_text(seconds)}".replace("about <", "under ")
        parts.append(f"{about} hours of training{days}")
    if unknown:
        parts.append(f"how long {unknown} of them take is not known")
    if pending:
        parts.append(f"{size(sum(item.bytes or 0 for item in pending))} to fetch")
    return "; ".join(parts)


def as_dict(
    run: PlannedRun, guess: Estimate, finished: bool, pending: Sequence[Pending], device: str
) -> dict[str, Any]:
    """``pending``: what the whole command would fetch."""
    recipe = {key: asdict(value) for key, value in run.recipe.values_with_source().items()}
    fits = guess.memory_bytes is None or guess.memory_bytes <= USABLE * memory_here(device)
    return {
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
        "recipe": recipe,
        "estimate": asdict(guess),
        "to_fetch": [
            {key: getattr(item, key) for key in ("name", "kind", "bytes", "licence", "where")}
            for item in pending
        ],
        "device": device,
        "precision": run.precision,
        "finished": finished,
        "printed": dict(run.expect) if run.expect else None,
        "chunk": None if fits else fitting_chunk(run, device),
    }
