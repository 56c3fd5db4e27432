"""Notes of a plan: the data that would be fetched if it were run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bench.base.errors import BenchError
from bench.data.sets.manifest import DataSet
from bench.data.sets.sources import Source, sources_of

ON_ITS_PAGE = "on its page of the hub"


class SetFetcher(Protocol):
    """Fetches a missing set; see bench.data.sets.fetch."""

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
    """The places that could have it; one of them is enough."""
    bytes: int | None = None
    """Of the download, about; None where only the server knows."""
    licence: str = ON_ITS_PAGE
    terms: str = ""
    """What is accepted by fetching it."""
    notes: tuple[str, ...] = ()
    archives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Archive -> the sets that arrive with it."""


class NotFetchedYet(BenchError):
    """A plan needs something that would be fetched now if the plan were run."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not on this machine yet")


class Later:
    """Stands in for a fetcher: notes the files to fetch, in the order of their use, and opens no
    connection.

    ``beside_root``: also files missing from a folder that the user named (nothing is fetched into
    it): for --dry-run.
    """

    def __init__(self, beside_root: bool = False) -> None:
        self.beside_root = beside_root
        self.pending: tuple[Pending, ...] = ()

    def note(self, item: Pending) -> None:
        if item.name not in [noted.name for noted in self.pending]:
            self.pending = (*self.pending, item)

    def get(self, wanted: DataSet, text: str) -> None:
        """Raise NotFetchedYet."""
        self.note(pending_set(wanted, text))
        raise NotFetchedYet(wanted.name)


def pending_set(wanted: DataSet, text: str) -> Pending:
    """Note a set with the sources that would be used if none fails.

    For each file that is the first source that has it.
    """
    every = sources_of(wanted, text)
    missing = {file.path for file in wanted.files}
    first: list[Source] = []
    for source in every:
        here = missing & {file.path for file in wanted.files if source.part(file)}
        if here:
            first.append(source)
            missing -= here
    return Pending(
        name=wanted.name,
        kind="corpus" if wanted.kind == "corpus" else "data",
        where=" and ".join(dict.fromkeys(source.where for source in first)),
        urls=tuple(url for source in every for url in source.urls),
        bytes=max(wanted.bytes, sum(source.about_bytes or 0 for source in first)),
        licence=wanted.licence,
        terms=wanted.terms if wanted.accept else "",
        notes=tuple(f"{source.name}: {source.note}" for source in first if source.note),
        archives={source.name: source.sets for source in first if source.archive},
    )
