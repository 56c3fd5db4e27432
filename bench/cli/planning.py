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
from bench.cli.columns import print_columns, print_grid, say, width
from bench.cli.options import json_text, warn
from bench.data.sets import DataFolder, Fetcher, Later, Pending, fetched_folder
from bench.run.estimates import (
    USABLE,
    Estimate,
    card_named,
    corpus_rows,
    estimate,
    fitting_chunk,
    memory_here,
    speeds_of_earlier_runs,
)
from bench.run.plan import PlannedRun, learns
from bench.run.plugins import Registry, discover
from bench.run.printed import aim, short_source
from bench.run.recipes import merge
from bench.runs import RunsFolder
from bench.show.grid import Column, grid, terminal

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
    for note in _notes(rows):
        say(note, hang=2)
    click.echo()
    _show_runs(rows)
    click.echo()
    first = rows[0].first
    say(
        f"scored on {', '.join(dict.fromkeys(task.name for task in first.tasks))} ({first.text} text)",
        hang=2,
    )
    _show_recipes(rows, everything)
    if pending:
        _show_pending(pending, config.data, everything)
    click.echo()
    for line in (*_memory_lines(rows, device), _total(rows, pending, device)):
        say(line, hang=2)


def _device_line(rows: Sequence[PlanRow], device: str) -> str:
    """What the plan is for, and what its times are computed from."""
    precision, card = rows[0].first.precision, card_named(device)
    title = f"planned for one {card.name} ({card.gib} GB)" if card else f"device {device}"
    bases = dict.fromkeys(
        row.guess.basis for row in rows if row.guess.seconds is not None and row.guess.steps
    )
    return "; ".join([f"{title}, precision {precision}", *bases])


def _label(row: PlanRow, rows: Sequence[PlanRow]) -> str:
    """The shortest that tells a row from the others: "promcse", "promcse+eh on roberta-large"."""
    run = row.first
    several = len({_backbone(other.first) for other in rows}) > 1
    settings = {other.first.setting for other in rows if other.first.method == run.method}
    name = (
        run.method
        + (f"+{run.variant}" if run.variant else "")
        + (f" {run.setting}" if len(settings) > 1 else "")
    )
    return name + (f" on {_backbone(run)}" if several else "")


def _backbone(run: PlannedRun) -> str:
    """What a table calls it: a folder by its title, or its last part."""
    return run.backbone.title or (run.backbone.name if run.backbone.hub else run.backbone.short)


def _notes(rows: Sequence[PlanRow]) -> list[str]:
    """Every note of the runs once, after the runs that it is about where it is not about all of them."""
    about: dict[str, list[str]] = {}
    for row in rows:
        remarks = aim(row.first) if len(rows) == 1 else [row.first.remark]  # else the table has it
        for note in dict.fromkeys([*remarks, *(note for run in row.runs for note in run.notes)]):
            about.setdefault(note, []).append(_label(row, rows))
    return [
        note if len(names) == len(rows) else f"{', '.join(dict.fromkeys(names))}: {note}"
        for note, names in about.items()
        if note
    ]


def _show_runs(rows: Sequence[PlanRow]) -> None:
    from bench.board.repeat import seed_words

    table = []
    for row in rows:
        run, guess = row.first, row.guess
        seeds = seed_words(sorted({run.seed for run in row.runs if run.seed is not None})) or "any"
        memory = "" if guess.memory_bytes is None else f"{guess.memory_bytes / 2**30:.1f}"
        steps = "" if guess.steps is None else f"{guess.steps:,}"
        state = (
            ""
            if row.pending == len(row.runs)
            else f"{len(row.runs) - row.pending} of {len(row.runs)} finished"
        )
        hours = "" if guess.seconds is None else hour_text(guess.seconds)
        variant = " ".join([*([run.variant] if run.variant else []), *_series(row, rows)])
        table.append(
            (
                run.method,
                run.setting,
                variant,
                _backbone(run),
                seeds,
                steps,
                memory,
                hours,
                state,
                printed_text(run),
            )
        )
    numbers = [Column(name, right=True) for name in ("steps", "GiB", "h/run")]
    texts = ("method", "setting", "variant", "backbone", "seeds")
    print_grid(grid([*texts, *numbers, "state", Column("printed", right=True)], table))


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


def _show_recipes(rows: Sequence[PlanRow], everything: bool) -> None:
    """Each recipe once: its corpus, where its result is printed, and the values that are not the defaults, with their sources."""
    click.echo()
    hidden = False
    for row in rows:
        run = row.first
        values = run.recipe.values_with_source()
        shown = values if everything else {key: values[key] for key in changed_keys(run)}
        hidden = hidden or len(shown) < len(values)
        why = (
            row.guess.basis
            if run.corpus is not None and None in (row.guess.steps, row.guess.seconds)
            else ""
        )  # that is not known
        facts = [fact for fact in (_corpus_text(run), why, _source_text(run)) if fact]
        if shown or facts:
            say(
                f"{' '.join([_label(row, rows), *_series(row, rows)])}: {'; '.join(facts) or 'not trained'}",
                hang=2,
            )
        lines = [
            (
                key,
                json.dumps(value.value),
                value.source + (f" ({value.note})" if value.note else ""),
            )
            for key, value in shown.items()
        ]
        print_columns(lines, indent=2)
        if everything:
            states = ("finished already" if finished else "to do" for finished in row.finished)
            print_columns(
                [(run.run_id, state) for run, state in zip(row.runs, states, strict=True)], indent=2
            )
    if hidden:
        say(
            "recipe values that are defaults are not listed: --all lists them, with their sources",
            hang=2,
        )


def _source_text(run: PlannedRun) -> str:
    """Where the value of :func:`printed_text` stands: "printed: 78.49 (PromCSE table 1)"."""
    return f"printed: {printed_text(run)} ({short_source(run.expect)})" if run.expect else ""


def changed_keys(run: PlannedRun) -> list[str]:
    """Recipe keys whose value is not what the harness, and then the method, have by default; and those that the command sets."""
    defaults = merge(run.plugin.cls, None, "", {}, trained=learns(run.plugin.cls, run.setting))
    return [
        key
        for key, value in run.recipe.values_with_source().items()
        if key not in defaults or value.value != defaults[key] or value.source == "--set"
    ]


def _corpus_text(run: PlannedRun) -> str:
    if run.corpus is None:
        return ""
    rows = corpus_rows(run)
    return f"corpus {run.corpus.name}, {f'{rows:,}' if rows is not None else 'nobody knows yet how many'} rows"


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


def _memory_lines(rows: Sequence[PlanRow], device: str) -> list[str]:
    """What does not fit into the memory of the device, with the --chunk that does."""
    room, card = memory_here(device), card_named(device)
    large: dict[int | None, list[PlanRow]] = {}
    for row in rows:
        if (row.guess.memory_bytes or 0) > USABLE * room:
            large.setdefault(fitting_chunk(row.first, device), []).append(row)
    lines = []
    for fits, needing in large.items():
        most = max(row.guess.memory_bytes or 0 for row in needing)
        names = ", ".join(dict.fromkeys(_label(row, rows) for row in needing))
        what = (
            f"--chunk {fits} fits, with the same batch and gradient" if fits else "no --chunk fits"
        )
        has = f"one {card.name}" if card else "this machine" if device == "cpu" else device
        lines.append(
            f"memory: about {most / 2**30:.0f} GiB for {names}, and {has} has {room / 2**30:.0f}: {what}"
        )
    return lines


def _total(rows: Sequence[PlanRow], pending: Sequence[Pending], device: str) -> str:
    """The sum over what is to do."""
    todo = [row for row in rows if row.pending]
    count, card = sum(row.pending for row in todo), card_named(device)
    times = [row.guess.seconds * row.pending for row in todo if row.guess.seconds is not None]
    parts = [f"total: {plural(count, 'run')} to do"]
    if times:
        days = f" ({duration(sum(times))})" if sum(times) > 48 * 3600 else ""
        about = f"about {hour_text(sum(times))}".replace("about <", "under ")
        parts.append(f"{about} hours of training{days}{f' on one {card.name}' if card else ''}")
    if unknown := sum(
        row.pending for row in todo if row.guess.seconds is None and row.first.corpus is not None
    ):
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
        "remark": run.remark,
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
