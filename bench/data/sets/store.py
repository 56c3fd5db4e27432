"""Where fetched data is kept, what can fill it, and what a plan would fetch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.base.errors import BenchError
from bench.data.fetching import site
from bench.data.sets.manifest import DataSet
from bench.data.sets.sources import first_of, sources_of

ON_ITS_PAGE = "on its page of the hub"


class Gets(Protocol):
    """What fetches a set that is missing; see bench.data.sets.fetch."""

    def get(self, wanted: DataSet, text: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Pending:
    """Something that is needed, is not on this machine, and can be fetched."""

    name: str
    kind: str
    """"data", "corpus" or "backbone"."""
    where: str
    """In words."""
    urls: tuple[str, ...]
    """Where it could come from; one of them is enough."""
    bytes: int | None = None
    """Of the download, about; None where only the server knows."""
    licence: str = ON_ITS_PAGE
    terms: str = ""
    """What is accepted by fetching it."""
    notes: tuple[str, ...] = ()
    archives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Archive -> the sets that arrive with it."""


class NotFetchedYet(BenchError):
    """Something that a plan needs and that would be fetched now, if this were more than a plan. ``wanted``: where it is a set."""

    def __init__(self, name: str, wanted: DataSet | None = None) -> None:
        super().__init__(f"{name} is not on this machine yet")
        self.wanted = wanted


class Later:
    """In the place of a fetcher: notes what is to be fetched, in the order in which it was needed, and opens no connection."""

    def __init__(self) -> None:
        self._noted: dict[str, Pending] = {}

    @property
    def pending(self) -> tuple[Pending, ...]:
        return tuple(self._noted.values())

    def note(self, one: Pending) -> None:
        self._noted.setdefault(one.name, one)

    def get(self, wanted: DataSet, text: str) -> None:
        """Raises NotFetchedYet."""
        self.note(pending_set(wanted, text))
        raise NotFetchedYet(wanted.name, wanted)


def pending_set(wanted: DataSet, text: str) -> Pending:
    """What would come, from which source, where none fails."""
    every = sources_of(wanted, text)
    first = first_of(wanted, every)
    return Pending(
        name=wanted.name, kind="corpus" if wanted.kind == "corpus" else "data", where=" and ".join(one.where for one in first),
        urls=tuple(site(one.site, one.repo, one.revision, one.archive or "").url for one in every),
        bytes=max(wanted.bytes, sum(one.about_bytes or 0 for one in first)), licence=wanted.licence,
        terms=wanted.terms if wanted.accept else "", notes=tuple(f"{one.name}: {one.note}" for one in first if one.note),
        archives={one.name: one.sets for one in first if one.archive},
    )  # fmt: skip


def fetched_folder() -> Path:
    """The folder for fetched data, unless the user names one: below $BENCH_CACHE, else ~/.cache/sentence-bench."""
    from bench.base.cache import default_cache

    return default_cache() / "data"
