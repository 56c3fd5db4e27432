"""What a command means and needs: its runs, what of it is not here, and getting that, announced in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.backbones import Reference
    from bench.datasets import Pending
    from bench.fetching import Report
    from bench.plan import PlannedRun, Request
    from bench.plugins import Registry


@dataclass(frozen=True)
class Planned:
    runs: tuple[PlannedRun, ...]
    to_fetch: tuple[Pending, ...] = ()  # what is not here; of a plan that may fetch nothing, what keeps it from being run


def planned(
    request: Request, registry: Registry, data: Path | None, report: Report, *, offline: bool = False, only_look: bool = False,
) -> Planned:  # fmt: skip
    """The runs of a request, with everything that they need on this machine.

    What is missing is planned with first, and nothing of it is asked for: so the user sees names, sizes and licences of all of it
    before the first byte, and a machine without a network says so at once. ``only_look`` stops there (``--dry-run``). Raises a
    BenchError for what cannot be had.
    """
    from bench import plan
    from bench.backbones import fetch
    from bench.datasets import DataFolder, Fetcher, Later, fetched_folder

    ready: Callable[[Reference], Reference] = partial(fetch, offline=offline, allow_pickle=request.allow_pickle, say=report.say)
    if offline and not only_look:
        return Planned(tuple(plan.make(request, registry, DataFolder(data, offline=True), ready)))
    later = Later()
    looked = tuple(plan.make(request, registry, DataFolder(data, fetcher=later), partial(_noted, later)))
    if only_look or not later.pending:
        return Planned(looked, later.pending)
    announce(later.pending, report, fetched_folder())
    folder = DataFolder(data, fetcher=Fetcher(fetched_folder(), report))
    return Planned(tuple(plan.make(request, registry, folder, ready)))


def _noted(later: object, reference: Reference) -> Reference:
    """The reference; where it is not here, it is noted what fetching it would bring."""
    from bench import hub_models
    from bench.datasets import Later

    assert isinstance(later, Later)
    if reference.path is None and reference.hub:
        later.note(hub_models.pending(reference.source or reference.name, reference.sizes()))
    return reference


def announce(pending: Sequence[Pending], report: Report, into: Path) -> None:
    """The table of what is fetched now. Raises FetchFailed, in place of the table, where there is no network."""
    from bench.errors import FetchFailed
    from bench.fetching import check_network

    try:
        check_network(url for one in pending for url in one.urls)
    except FetchFailed as error:
        raise FetchFailed(
            f"{error.message}; not on this machine: {', '.join(one.name for one in pending)}", elsewhere(pending)
        ) from None
    report.say(f"fetched now, data into {into}:" if any(one.kind != "backbone" for one in pending) else "fetched now:")
    for line in table_of(pending):
        report.say(line)


def check_nothing_to_fetch(pending: Sequence[Pending]) -> None:
    """Raises DataMissing where a command that may open no connection would have to."""
    from bench.errors import DataMissing

    if pending:
        names = ", ".join(one.name for one in pending)
        raise DataMissing(f"{names}: not on this machine, and --offline (or HF_HUB_OFFLINE) forbids fetching", elsewhere(pending))


def table_of(pending: Sequence[Pending]) -> list[str]:
    """Names, sizes and licences, one line each; the sum; then terms that are accepted by fetching, and notes, each said once."""
    sizes = [f"{one.bytes / 1e6:,.1f}" if one.bytes is not None else "?" for one in pending]
    head = [("", "MB", "licence", "from")]
    rows = head + [(one.name, size, one.licence, one.where) for one, size in zip(pending, sizes, strict=True)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = [
        f"  {name:<{widths[0]}}  {size:>{widths[1]}}  {licence:<{widths[2]}}  {where}" for name, size, licence, where in rows
    ]
    unknown = [one.name for one in pending if one.bytes is None]
    total = f"  about {sum(one.bytes or 0 for one in pending) / 1e6:,.0f} MB in all"
    lines.append(total + (f", and {', '.join(unknown)}, whose size only the hub knows" if unknown else ""))
    terms: dict[str, list[str]] = {}
    for one in pending:
        terms.setdefault(one.terms, []).append(one.name)
    lines += [f"  terms of {', '.join(names)}, which you accept by fetching: {text}" for text, names in terms.items() if text]
    named = {one.name for one in pending}
    for archive, sets in {name: sets for one in pending for name, sets in one.archives.items()}.items():
        if others := [name for name in sets if name not in named]:
            lines.append(f"  {archive} brings {', '.join(others)} along (bench data list NAME: their licences)")
    return lines + [f"  {note}" for note in dict.fromkeys(note for one in pending for note in one.notes)]


def elsewhere(pending: Sequence[Pending]) -> str:
    """How all of it comes to a machine without a network."""
    from bench.hub_models import bring_over

    sets = [one.name for one in pending if one.kind != "backbone" and ":" not in one.name]
    parts = [f"bench data fetch {' '.join(sets)} --data DIR, then --data DIR here"] if sets else []
    parts += [bring_over(one.name).removeprefix("where there is a network: ") for one in pending if one.kind == "backbone"]
    parts += [f"the same command (for {one.name}), then copy its cache" for one in pending if ":" in one.name]
    return "where there is a network: " + "; ".join(parts)
