"""Data, corpora and backbones that runs need and this machine lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.backbones import Reference, describe_pending, look_up
from bench.base.errors import BenchError, FetchFailed
from bench.base.grid import Grid, GridColumn, grid
from bench.base.printing import print_grid
from bench.base.terminal import warn
from bench.base.text import format_bytes
from bench.data.fetching import check_network
from bench.data.sets import Later, Pending
from bench.method.config import RunConfig
from bench.run.planned import PlannedRun


@dataclass(frozen=True)
class PreparedRuns:
    """The runs of a command, with everything that they need."""

    runs: tuple[PlannedRun, ...]

    to_fetch: tuple[Pending, ...] = ()
    """What would be fetched; only if the runs are only looked at."""


def note_backbone(
    later: Later, reference: Reference, config: RunConfig, *, ask_hub: bool
) -> Reference:
    """Return the reference. If it is not on this machine, ``later`` notes the future download.

    ``ask_hub``: the hub is asked for a name that this project does not know. Raises NotAModel if
    the hub has no such model.
    """
    name = reference.source or reference.name
    is_noted = name in [item.name for item in later.pending]
    if reference.path is not None or not reference.hub or is_noted:
        return reference
    pending = describe_pending(name)
    if ask_hub:
        pending = look_up(pending, offline=config.offline, allow_pickle=config.allow_pickle)
    later.note(pending)
    return reference


def missing_sets(runs: Sequence[PlannedRun]) -> list[BenchError]:
    """Return an error for each data set that the runs lack; they are scored on the others."""
    by_message = {error.message: error for run in runs for error in run.missing}
    return list(by_message.values())


def announce_fetches(pending: Sequence[Pending], folder: Path) -> None:
    """Print what is fetched now, data into ``folder``.

    Raises FetchFailed, and prints no table, if there is no network.
    """
    try:
        check_network(url for item in pending for url in item.urls)
    except FetchFailed as error:
        from huggingface_hub.constants import HF_HUB_CACHE

        names = ", ".join(item.name for item in pending)
        hint = (
            f"run the same command on a machine with a network, then copy {folder} and "
            f"{HF_HUB_CACHE} here"
        )
        if all(item.kind != "backbone" for item in pending):
            hint = f"--data DIR, if a folder has them; or {hint}"
        raise FetchFailed(f"{error.message}; not on this machine: {names}", hint) from None
    warn(f"fetched now, data into {folder}:")
    print_grid(pending_grid(pending), indent=2, stderr=True)


def pending_grid(pending: Sequence[Pending]) -> Grid:
    """Lay out names, sizes and licences, with the total, terms of use and notes below them."""
    rows = []
    for item in pending:
        megabytes = "?" if item.bytes is None else f"{item.bytes / 1e6:,.1f}"
        rows.append((item.name, megabytes, item.licence, item.where))
    notes = [f"{pending_size(pending)} in all"]
    if any(item.bytes is None for item in pending):
        notes = [f"{notes[0]}, without those marked ?: only the hub knows their sizes"]
    notes.append("a file that is cut off is fetched again from its first byte")
    notes += dict.fromkeys(_terms_and_notes(pending))
    columns = ("", GridColumn("MB", right=True), "licence", GridColumn("from", wrap=24))
    return grid(columns, rows, notes=notes)


def _terms_and_notes(pending: Sequence[Pending]) -> list[str]:
    lines = [f"accepted by fetching: {item.terms}" for item in pending if item.terms]
    archives = {name: sets for item in pending for name, sets in item.archives.items()}
    for name, sets in archives.items():
        if len(sets) > 1:
            lines.append(f"{name} holds {', '.join(sets)}")
    for item in pending:
        lines += item.notes
    return lines


def pending_size(pending: Sequence[Pending]) -> str:
    """Return the total size as text, without those that are unknown."""
    return format_bytes(sum(item.bytes or 0 for item in pending))
