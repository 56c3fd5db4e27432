"""Where data sets can be fetched from (JSON data in ``sources.json``), and what a plan notes that it would fetch.

A source is a set of files at one site and one revision: some of the files of some data sets, one by one or in an archive, with
the conversion that each needs. What it gives is checked against the manifests' checksums. Where nobody could see the source
when it was written down, ``note`` says "trust on first use": what arrives first is recorded, and held against it ever after.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Protocol

import msgspec

from bench.base.errors import BenchError
from bench.base.files import default_cache
from bench.data.fetching import site
from bench.data.sets.manifest import DataFile, DataSet


@dataclass(frozen=True, kw_only=True)
class Part:
    """How one file of ours comes out of a source."""

    paths: tuple[str, ...]
    """In the source, or in its archive; ``*`` stands for any characters in the name of a file of the hub."""
    conversion: str = "as is"
    sha256: tuple[str, ...] = ()
    """Of the source's own files, where they are converted."""


@dataclass(frozen=True, kw_only=True)
class Source:
    name: str
    title: str
    site: str
    """"hub", "github" or "web"."""
    repo: str
    """Owner and name; of "web" the address of its folder, "" where the parts name whole addresses."""
    revision: str
    """A commit; "main" where it is pinned at the first fetch."""
    into: str
    """Folder below the data folder."""
    form: str
    sets: tuple[str, ...]
    archive: str | None = None
    root: str = ""
    files: Mapping[str, Part] = field(default_factory=dict)
    """Our path -> part. Empty: all files of its sets, at ``root`` + our path (in an archive: wherever a path ends so)."""
    about_bytes: int | None = None
    most_bytes: int = 2_000_000_000
    """Bound of the download, and of what is unpacked from it."""
    note: str = ""

    @property
    def pinned(self) -> bool:
        return self.revision != "main"

    def part(self, file: DataFile) -> Part | None:
        """How a file comes out of this source; None where it does not have it."""
        if self.files:
            return self.files.get(file.path)
        return Part(paths=(f"{self.root}/{file.path}" if self.root else file.path,))

    @property
    def where(self) -> str:
        """In words: "hub princeton-nlp/datasets-for-simcse", "github.com/owner/name (commit 1b344d9de28f)"."""
        if self.site == "web":
            return " and ".join(
                f"{self.repo}/{path}" if self.repo else path for path in self._paths
            )
        place = f"{'hub data set' if self.site == 'hub' else 'github.com'} {self.repo}"
        return f"{place} (commit {self.revision[:12]})" if self.pinned else place

    @property
    def urls(self) -> tuple[str, ...]:
        """Its address; of files of "web" that lie in several places, that of each."""
        return tuple(site(self.site, self.repo, self.revision, path).url for path in self._paths)

    @property
    def _paths(self) -> Sequence[str]:
        if self.site == "web" and not self.archive:
            return [path for part in self.files.values() for path in part.paths]
        return (self.archive or "",)


@functools.cache
def sources() -> Mapping[str, Source]:
    """Every source by name, in the order in which they are tried."""
    text = (resources.files("bench.data.sets") / "sources.json").read_text(encoding="utf-8")
    listed = msgspec.convert(json.loads(text)["sources"], list[Source])
    return {source.name: source for source in listed}


def first_of(wanted: DataSet, ordered: list[Source]) -> list[Source]:
    """Those of its sources that are asked where none fails: for each file of the set the first that has it."""
    missing, chosen = {file.path for file in wanted.files}, []
    for source in ordered:
        if given := {file.path for file in wanted.files if source.part(file) is not None} & missing:
            chosen.append(source)
            missing -= given
    return chosen


def sources_of(wanted: DataSet, text: str = "any") -> list[Source]:
    """The sources of a set in a text form ("any": tokenised where there are forms), best first."""
    form = text if text != "any" else "tokenised"
    return [
        source
        for source in sources().values()
        if wanted.name in source.sets and source.form in ("any", form)
    ]


# --- where fetched data is kept, what can fill it, and what a plan would fetch ---

ON_ITS_PAGE = "on its page of the hub"


class SetFetcher(Protocol):
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
    """In the place of a fetcher: notes what is to be fetched, in the order in which it was needed, and opens no connection.

    ``beside_root``: also what a folder that the user gave lacks, into which nothing is fetched: for a plan that is only looked at.
    """

    def __init__(self, beside_root: bool = False) -> None:
        self.beside_root = beside_root
        self._noted: dict[str, Pending] = {}

    @property
    def pending(self) -> tuple[Pending, ...]:
        return tuple(self._noted.values())

    def note(self, item: Pending) -> None:
        self._noted.setdefault(item.name, item)

    def get(self, wanted: DataSet, text: str) -> None:
        """Raises NotFetchedYet."""
        self.note(pending_set(wanted, text))
        raise NotFetchedYet(wanted.name, wanted)


def pending_set(wanted: DataSet, text: str) -> Pending:
    """What would come, from which source, where none fails."""
    every = sources_of(wanted, text)
    first = first_of(wanted, every)
    return Pending(
        name=wanted.name,
        kind="corpus" if wanted.kind == "corpus" else "data",
        where=" and ".join(source.where for source in first),
        urls=tuple(url for source in every for url in source.urls),
        bytes=max(wanted.bytes, sum(source.about_bytes or 0 for source in first)),
        licence=wanted.licence,
        terms=wanted.terms if wanted.accept else "",
        notes=tuple(f"{source.name}: {source.note}" for source in first if source.note),
        archives={source.name: source.sets for source in first if source.archive},
    )


def fetched_folder() -> Path:
    """The folder for fetched data, unless the user names one: below $BENCH_CACHE, else ~/.cache/sentence-bench."""
    return default_cache() / "data"
