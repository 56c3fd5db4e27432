"""What a command needs on this machine, and how to get it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.backbones import Reference, describe_pending, fetch
from bench.base.errors import FetchFailed
from bench.base.text import size
from bench.cli.options import width
from bench.data.fetching import check_network, offline_now
from bench.data.sets import DataFolder, Later, Pending, fetched_folder
from bench.data.sets.fetch import Fetcher
from bench.records import RunsFolder
from bench.run.config import Plan, RunConfig
from bench.run.estimates import check_chunks, check_disk, settled
from bench.run.plan import PlannedRun, make_all
from bench.run.plugins import Registry, discover
from bench.session.messages import warn
from bench.show.grid import Column, Grid, grid, terminal

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
    for line in terminal(pending_grid(pending), width(), indent=2):
        warn(line.plain)


def pending_grid(pending: Sequence[Pending], terms: bool = True) -> Grid:
    """Names, sizes and licences; below them the sum and, with ``terms``, the terms of use and the notes, once each."""
    archives = {name: sets for item in pending for name, sets in item.archives.items()}
    notes = [
        f"{pending_size(pending)} in all; sizes marked ? are known to the hub alone",
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


def pending_size(pending: Sequence[Pending]) -> str:
    return size(sum(item.bytes or 0 for item in pending))
