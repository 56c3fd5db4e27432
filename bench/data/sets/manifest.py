"""What each data set is: files, counts, checksums, licence, source. JSON data in ``manifests/``, one file per collection.

A file of a set may exist in several text forms (``raw``, ``tokenised``); where its bytes are the same in all, or there is only
one, the form is called ``any``. Three hashes are kept of a file:

    sha256      of its bytes, as sha256sum prints it (for packed files: of what is inside)
    sha256_lf   the same with CRLF line ends written as LF; only where the original has CRLF
    content     of its cells, lower-cased, without white space and control characters: equal in every tokenisation of one text

The numbers are written by ``python tools/make_manifest.py``; the rest of a manifest is written by hand.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from bench.base.errors import UnknownName

SCHEMA = "bench.data/1"
ANY = "any"

_NO_CONTROL = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)])


@dataclass(frozen=True, kw_only=True)
class Form:
    """One form of a file. ``bytes`` is the size on disk (about, where the file is one of ``first_use``)."""

    sha256: str
    bytes: int
    sha256_lf: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataFile:
    path: str
    """Relative to a home of the set."""
    role: str
    """What a reader does with it: "pairs", "gold", "table", "text"."""
    rows: int
    """Data rows, without the header."""
    forms: Mapping[str, Form]
    split: str = "test"
    subset: str | None = None
    header: int = 0
    """Lines before the first row."""
    columns: int = 1
    """Tab-separated cells that count; what follows them in a row is ignored. 1 = the whole line is one cell."""
    filled: int | None = None
    """Rows that are not empty, where some are (pairs that nobody annotated)."""
    content: str | None = None
    packed: str | None = None
    """"xz" where the file is compressed; hashes are then of what is inside."""
    encoding: str = "utf-8"
    exact: bool = False
    """Whether case and white space count although there is one form only: a copy that differs in them is an "other-" form."""

    first_use: bool = False
    """Whether nobody could see the file when this was written: its checksum ("" here) is recorded when it is first fetched."""

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def varies(self) -> bool:
        """Whether the file has a text form (a gold file has none)."""
        return self.exact or ANY not in self.forms


@dataclass(frozen=True, kw_only=True)
class DataSet:
    name: str
    kind: str
    """"evaluation", "corpus" or "built-in"."""
    title: str
    suites: tuple[str, ...]
    unit: str
    """What one item is: "pairs", "sentences", "triplets"."""
    items: Mapping[str, int]
    """Items per split (scored items, for an evaluation set)."""
    licence: str
    terms: str
    source: str
    cite: str
    get: str
    homes: Mapping[str, str]
    """Form -> folder below the data folder where that form is kept."""
    also: tuple[str, ...] = ()
    """Other folders that are looked in for any form."""
    files: tuple[DataFile, ...] = field(default=())
    shared: tuple[str, ...] = ()
    """Names of sets that live in the same files."""
    accept: bool = False
    """Whether a user has to accept the terms: they are shown before a download."""

    @property
    def places(self) -> tuple[str, ...]:
        """Folders to look in, relative to the data folder, most specific first."""
        return tuple(dict.fromkeys([*self.homes.values(), *self.also]))

    @property
    def forms(self) -> tuple[str, ...]:
        """Text forms that are known by checksum; empty where the set has no forms."""
        return tuple(dict.fromkeys(form for file in self.files for form in file.forms if form != ANY))

    @property
    def bytes(self) -> int:
        """Size on disk in one form (the largest, where forms differ)."""
        return sum(max(form.bytes for form in file.forms.values()) for file in self.files)

    def split(self, *splits: str) -> tuple[DataFile, ...]:
        return tuple(file for split in splits for file in self.files if file.split == split)


@functools.cache
def data_sets() -> Mapping[str, DataSet]:
    """Every data set that the harness knows, by name, in the order of the manifests."""
    sets: dict[str, DataSet] = {}
    folder = resources.files("bench.data.sets") / "manifests"
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".json"):
            for known in parse_manifest(json.loads(entry.read_text(encoding="utf-8")), entry.name):
                if known.name in sets:
                    raise ValueError(f"{entry.name}: a second data set named {known.name}")
                sets[known.name] = known
    return sets


def data_set(name: str) -> DataSet:
    """The data set of that name; UnknownName with the nearest names otherwise."""
    known = data_sets()
    if name not in known:
        raise UnknownName("data set", name, known, hint="bench data list shows all of them")
    return known[name]


def parse_manifest(manifest: Mapping[str, Any], where: str) -> list[DataSet]:
    """A manifest's sets. Raises ValueError or TypeError for a mistake in it: manifests are ours, not the user's."""
    if manifest.get("schema") != SCHEMA:
        raise ValueError(f"{where}: schema {manifest.get('schema')!r}, {SCHEMA!r} expected")
    return [_data_set({**manifest.get("common", {}), **entry}) for entry in manifest["sets"]]


def _data_set(raw: Mapping[str, Any]) -> DataSet:
    files = tuple(DataFile(**{**file, "forms": {name: Form(**form) for name, form in file["forms"].items()}}) for file in raw["files"])
    lists = {key: tuple(raw[key]) for key in ("suites", "also", "shared") if key in raw}
    return DataSet(**{**raw, **lists, "files": files})


def cells(text: str, file: DataFile) -> list[list[str]]:
    """The rows of a file below its header, each cut to the columns that count. CRLF and LF are line ends, nothing else is."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    rows = (line.removesuffix("\r") for line in lines[file.header :])
    return [row.split("\t")[: file.columns] if file.columns > 1 else [row] for row in rows]


def single_spaced(cell: str) -> str:
    """The words of a cell with one space between, as SentEval's loaders read text."""
    return " ".join(cell.split())


def content_hash(rows: list[list[str]]) -> str:
    """Hash of the cells that no tokeniser changes: it adds and removes white space, drops control characters, lowers case."""
    plain = ("\t".join("".join(cell.split()).translate(_NO_CONTROL).lower() for cell in row) for row in rows)
    return hashlib.sha256("\n".join(plain).encode("utf-8", "surrogatepass")).hexdigest()


def lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def once_encoded_hashes(data: bytes) -> list[str]:
    """Hashes of what the bytes were before somebody read them as latin-1 (or Windows-1252) and wrote UTF-8."""
    hashes = []
    for read_as in ("latin-1", "cp1252"):
        with contextlib.suppress(UnicodeError):
            before = data.decode("utf-8").encode(read_as)
            hashes += [hashlib.sha256(before).hexdigest(), hashlib.sha256(lf(before)).hexdigest()]
    return hashes
