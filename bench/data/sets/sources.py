"""The sources of data sets.

``sources.json`` has the sources. A source is a set of files at one site and one revision: some
files of some data sets, one by one or in an archive, with the conversion that each needs. What
arrives is checked against the checksums of the manifests. If nobody could see the source when it
was written down, its ``note`` says "trust on first use".
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

import msgspec

from bench.data.fetching import site
from bench.data.sets.manifest import DataFile, DataSet


@dataclass(frozen=True, kw_only=True)
class SourcePart:
    """How one file of ours comes out of a source."""

    paths: tuple[str, ...]
    """In the source, or in its archive."""
    conversion: str = "as is"
    sha256: tuple[str, ...] = ()
    """Hashes of the source's own files, if they are converted."""


@dataclass(frozen=True, kw_only=True)
class Source:
    name: str
    title: str
    site: str
    """"hub", "github" or "web"."""
    repo: str
    """Owner and name; for "web" the address of its folder, "" if the parts name whole addresses.
    """
    revision: str
    """A commit; "main" for the newest one."""
    into: str
    """Folder below the data folder."""
    form: str
    sets: tuple[str, ...]
    archive: str | None = None
    root: str = ""
    files: Mapping[str, SourcePart] = field(default_factory=dict)
    """Our path -> part.

    Empty: all files of its sets, at ``root`` + our path (in an archive: wherever a path ends so).
    """
    about_bytes: int | None = None
    most_bytes: int = 2_000_000_000
    """Bound of the download, and of what is unpacked from it."""
    note: str = ""

    @property
    def pinned(self) -> bool:
        return self.revision != "main"

    def part(self, file: DataFile) -> SourcePart | None:
        """Return how a file comes out of this source; None if the source lacks it."""
        if self.files:
            return self.files.get(file.path)
        path = f"{self.root}/{file.path}" if self.root else file.path
        return SourcePart(paths=(path,))

    @property
    def where(self) -> str:
        """Its place in words: "hub princeton-nlp/datasets-for-simcse", "github.com/owner/name
        (commit 1b344d9de28f)"."""
        if self.site == "web":
            return " and ".join(
                f"{self.repo}/{path}" if self.repo else path for path in self._paths
            )
        place = f"{'hub data set' if self.site == 'hub' else 'github.com'} {self.repo}"
        return f"{place} (commit {self.revision[:12]})" if self.pinned else place

    @property
    def urls(self) -> tuple[str, ...]:
        """Its address; the address of each file if they are in several places of the web."""
        return tuple(site(self.site, self.repo, self.revision, path).url for path in self._paths)

    @property
    def _paths(self) -> Sequence[str]:
        if self.archive or self.site != "web":
            return (self.archive or "",)
        return [path for part in self.files.values() for path in part.paths]


@functools.cache
def all_sources() -> Mapping[str, Source]:
    """Return every source by name, in the order of trying."""
    text = (resources.files("bench.data.sets") / "sources.json").read_text(encoding="utf-8")
    return {
        source.name: source for source in msgspec.convert(json.loads(text)["sources"], list[Source])
    }


def sources_of(wanted: DataSet, text: str = "any") -> list[Source]:
    """Return the sources of a set in a text form, best first.

    "any" is tokenised if there are forms.
    """
    return [
        s
        for s in all_sources().values()
        if wanted.name in s.sets and s.form in ("any", "tokenised" if text == "any" else text)
    ]
