"""Find the file that ``--suite [KIND:][NAME=]FILE[:COLUMN,COLUMN]`` names."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from bench.base.errors import BenchError, DataMissing
from bench.base.files import expand_home
from bench.base.text import list_names
from bench.data.reading import SUFFIXES, format_of
from bench.data.reading.lines import COMPRESSED
from bench.data.reading.naming import path_exists, split_columns
from bench.data.reading.saved import is_saved

PAIRS = "pairs"
CLASSIFICATION = "classification"
CLUSTERING = "clustering"
RETRIEVAL = "retrieval"
KINDS = (PAIRS, CLASSIFICATION, CLUSTERING, RETRIEVAL)
"""The ways to score a file; each is a prefix of ``--suite``."""

EXAMPLE = (
    "--suite pairs.tsv, --suite pairs.csv:question,answer,rating, --suite "
    "classification:reviews.csv:text,stars, or --suite retrieval:FOLDER"
)


@dataclass(frozen=True)
class OwnFile:
    """A user's file as a data set.

    ``OwnFile(Path("reviews.csv"), "reviews", kind="classification")``
    """

    path: Path
    """A file of rows, or a folder: one that ``save_to_disk`` of ``datasets`` wrote, or one with
    queries, corpus and qrels.
    """
    name: str
    """Its name in tables."""
    kind: str = ""
    """One of ``KINDS``; "" if the user has not said it."""
    columns: tuple[str, ...] = ()
    """The columns that the user named, in the order that the kind needs; () to find them by their
    names.
    """


def is_own_file(text: str) -> bool:
    """Say if a part of ``--suite`` means a file: it names a known suffix, a folder that
    ``save_to_disk`` wrote, or retrieval, which has a folder of its own."""
    kind, colon, rest = text.partition(":")
    if colon and kind == RETRIEVAL:
        return True
    place = rest if colon and kind in KINDS else text
    path = place.partition("=")[2] or place
    without_columns = path.rpartition(":")[0] or path
    return any(
        format_of(known) in SUFFIXES or is_saved(expand_home(known))
        for known in (path, without_columns)
    )


def split_files(text: str) -> list[str]:
    """Split files at commas; a part that names no file is another column of the file before it.

    "pairs.tsv:a,b,rating,more.csv" -> ["pairs.tsv:a,b,rating", "more.csv"].
    """
    files: list[str] = []
    for part in text.split(","):
        if files and not is_own_file(part):
            files[-1] += f",{part}"
        else:
            files.append(part)
    return files


def parse_own_file(text: str) -> OwnFile:
    """Take ``[KIND:][NAME=]FILE[:COLUMN,COLUMN]`` apart. A path that exists as it is written is
    never split.

    Raises DataMissing if there is no such file, BenchError if its format is not known or its name
    is empty.
    """
    kind, colon, rest = text.partition(":")
    if not colon or kind not in KINDS:
        kind, rest = "", text
    name, place = "", rest
    if not path_exists(rest):
        before, equals, after = rest.partition("=")
        if equals:
            name, place = before, after
    columns: tuple[str, ...] = ()
    if not path_exists(place):
        place, columns = split_columns(place)
    path = expand_home(place)
    if path.name in ("", ".."):  # `.` and `..` are folders with a name, too
        path = path.resolve()
    if not path.exists():
        raise DataMissing(f"--suite {text}: no file at {place}", EXAMPLE)
    if path.is_file() and format_of(place) not in SUFFIXES:
        raise BenchError(
            f"--suite {text}: unknown format '{path.suffix}'; expected {', '.join(SUFFIXES)}, or "
            "a folder of save_to_disk",
            "rename the file by its content, for example .tsv for cells separated by tabs",
        )
    if not all(columns):
        raise BenchError(f"--suite {text}: a column without a name", EXAMPLE)
    own_name = name or read_description(path).name or stem(path)
    if not re.fullmatch(r"[\w.+ -]{1,80}", own_name):
        raise BenchError(
            f"--suite {text}: {own_name!r} cannot be the name of a task",
            "--suite NAME=FILE, with letters, digits, spaces and . _ + -",
        )
    return OwnFile(path, own_name, kind, columns)


def stem(path: Path) -> str:
    """Return the name without its suffixes: "pairs" for pairs.tsv and pairs.tsv.gz."""
    name = path.name
    for suffix in (*COMPRESSED, *SUFFIXES):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
    return name


Side = Literal["query", "document"]
PairScore = Literal["spearman", "average-precision", "f1", "accuracy"]


class Description(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user's description of a file, in a TOML file next to it: pairs.toml for pairs.tsv."""

    name: str = ""
    """The data's name in tables."""
    scale: tuple[float, float] | None = None
    """The lowest and the highest rating that the raters could give."""
    licence: str = ""
    source: str = ""
    sides: tuple[Side, Side] | None = None
    """Of pairs: which column is the query, and which the document."""
    score: PairScore | None = None
    """Of pairs judged 0 or 1: the measure that is their score."""

    def __post_init__(self) -> None:
        """Raise ValueError if both columns are one side."""
        if self.sides is not None and len(set(self.sides)) < 2:
            raise ValueError('sides = ["query", "document"], in the order of the columns')

    @property
    def of_pairs(self) -> dict[str, object]:
        """The values that say something of rated pairs alone."""
        values = {"scale": self.scale, "sides": self.sides, "score": self.score}
        return {key: value for key, value in values.items() if value is not None}

    def facts(self, kind: str) -> dict[str, object]:
        """Return the part that the record of a file of this kind keeps."""
        kept: dict[str, object] = {}
        if self.scale and kind == PAIRS:
            kept["scale"] = list(self.scale)
        if self.licence:
            kept["licence"] = self.licence
        if self.source:
            kept["source"] = self.source
        if self.sides and kind == PAIRS:
            kept["sides"] = list(self.sides)
        return kept


def description_file(path: Path) -> Path:
    """Return the place of a file's description, which need not be there."""
    return path.parent / f"{stem(path)}.toml"


def description_notes(own: OwnFile) -> tuple[str, ...]:
    """Return a note if the description has values that have no effect on this kind of file.

    Raises BenchError for a folder of retrieval, which no command scores as pairs, as it may another
    file.
    """
    values = read_description(own.path).of_pairs
    if own.kind == PAIRS or not values:
        return ()
    only = f"{description_file(own.path)}: only rated pairs have {list_names(values)}"
    if own.kind == RETRIEVAL and own.path.is_dir():
        raise BenchError(only, f"remove {list_names(values)}; name, licence and source may stay")
    return (f"{only}: unused in {own.kind}",)


def read_description(path: Path) -> Description:
    """Read the description next to a file; an empty one if there is none.

    Raises BenchError if it is not valid.
    """
    file = description_file(path)
    if not file.is_file():
        return Description()
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Description)
    except (OSError, ValueError, RecursionError) as error:
        raise BenchError(
            f"{file}: {error}",
            'a description has name = "...", scale = [0, 5], licence = "...", source = "...", '
            'sides = ["query", "document"], '
            'score = "average-precision" (or "f1", "accuracy", "spearman"), each optional',
        ) from None
