"""Where data sets can be fetched from: JSON data in ``sources.json``.

A source is a set of files at one site and one revision: some of the files of some data sets, one by one or in an archive, with
the conversion that each needs. What it gives is checked against the manifests' checksums. Where nobody could see the source
when it was written down, ``note`` says "trust on first use": what arrives first is recorded, and held against it ever after.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from bench.data.sets.manifest import DataFile, DataSet

SCHEMA = "bench.sources/1"


@dataclass(frozen=True, kw_only=True)
class Part:
    """How one file of ours comes out of a source."""

    paths: tuple[str, ...]
    """In the source, or in its archive."""
    conversion: str = "as is"
    sha256: tuple[str, ...] = ()
    """Of the source's own files, where they are converted."""
    bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    name: str
    title: str
    site: str
    """"hub", "github" or "web"."""
    repo: str
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
            return f"{self.repo}/{self.archive or ''}"
        place = f"{'hub data set' if self.site == 'hub' else 'github.com'} {self.repo}"
        return f"{place} (commit {self.revision[:12]})" if self.pinned else place


@functools.cache
def sources() -> Mapping[str, Source]:
    """Every source by name, in the order in which they are tried."""
    text = (resources.files("bench.data.sets") / "sources.json").read_text(encoding="utf-8")
    found = parse_sources(json.loads(text))
    return {one.name: one for one in found}


def parse_sources(raw: Mapping[str, Any]) -> list[Source]:
    """Raises ValueError or TypeError for a mistake: the file is ours, not the user's."""
    if raw.get("schema") != SCHEMA:
        raise ValueError(f"sources: schema {raw.get('schema')!r}, {SCHEMA!r} expected")
    return [_source(one) for one in raw["sources"]]


def _source(raw: Mapping[str, Any]) -> Source:
    files = {path: _part(one) for path, one in raw.get("files", {}).items()}
    return Source(**{**raw, "sets": tuple(raw["sets"]), "files": files})


def _part(raw: Mapping[str, Any]) -> Part:
    return Part(
        paths=tuple(raw["from"]), conversion=raw.get("as", "as is"), sha256=tuple(raw.get("sha256", ())), bytes=raw.get("bytes")
    )


def first_of(wanted: DataSet, ordered: list[Source]) -> list[Source]:
    """Those of its sources that are asked where none fails: for each file of the set the first that has it."""
    left, found = {file.path for file in wanted.files}, []
    for one in ordered:
        if given := {file.path for file in wanted.files if one.part(file) is not None} & left:
            found.append(one)
            left -= given
    return found


def sources_of(wanted: DataSet, text: str = "any") -> list[Source]:
    """The sources of a set in a text form ("any": tokenised where there are forms), best first."""
    form = text if text != "any" else "tokenised"
    return [one for one in sources().values() if wanted.name in one.sets and one.form in ("any", form)]
