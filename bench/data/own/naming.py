"""Find the file that ``--suite [KIND:][NAME=]FILE[:COLUMN,COLUMN]`` names, and the roles of its
columns.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.base.errors import BenchError, DataMissing
from bench.data.corpora.naming import path_exists, split_columns
from bench.data.corpora.records import COMPRESSED, LINES, PARQUET
from bench.data.corpora.saved import is_saved

PAIRS = "pairs"
CLASSIFICATION = "classification"
CLUSTERING = "clustering"
KINDS = (PAIRS, CLASSIFICATION, CLUSTERING)
"""The ways to score a file; each is a prefix of ``--suite``."""

SUFFIXES = (*LINES, PARQUET)
EXAMPLE = (
    "--suite pairs.tsv, --suite pairs.csv:question,answer,rating, or --suite "
    "classification:reviews.csv:text,stars"
)


@dataclass(frozen=True)
class OwnFile:
    """A user's file as a data set.

    ``OwnFile(Path("reviews.csv"), "reviews", kind="classification")``
    """

    path: Path
    """A file of rows, or a folder that ``save_to_disk`` of ``datasets`` wrote."""
    name: str
    """Its name in tables."""
    kind: str = ""
    """One of ``KINDS``; "" if the user has not said it."""
    columns: tuple[str, ...] = ()
    """The columns that the user named, in the order that the kind needs; () to find them by their
    names.
    """


def is_own_file(text: str) -> bool:
    """Say if a part of ``--suite`` means a file: it names a known suffix, or a folder that
    ``save_to_disk`` wrote."""
    kind, colon, rest = text.partition(":")
    place = rest if colon and kind in KINDS else text
    path = place.partition("=")[2] or place
    without_columns = path.rpartition(":")[0] or path
    return any(
        _suffix(known) in SUFFIXES or is_saved(Path(known).expanduser())
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
    path = Path(place).expanduser()
    if not path.exists():
        raise DataMissing(f"--suite {text}: no file at {place}", EXAMPLE)
    if path.is_file() and _suffix(place) not in SUFFIXES:
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


class Description(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user's description of a file, in a TOML file next to it: pairs.toml for pairs.tsv."""

    name: str = ""
    """The data's name in tables."""
    scale: tuple[float, float] | None = None
    """The lowest and the highest rating that the raters could give."""
    licence: str = ""
    source: str = ""

    def facts(self) -> dict[str, object]:
        """Return the part that a record keeps."""
        kept: dict[str, object] = {}
        if self.scale:
            kept["scale"] = list(self.scale)
        if self.licence:
            kept["licence"] = self.licence
        if self.source:
            kept["source"] = self.source
        return kept


def read_description(path: Path) -> Description:
    """Read the description next to a file; an empty one if there is none.

    Raises BenchError if it is not valid.
    """
    file = path.with_name(f"{stem(path)}.toml")
    if not file.is_file():
        return Description()
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Description)
    except (OSError, ValueError, RecursionError) as error:
        raise BenchError(
            f"{file}: {error}",
            'a description has name = "...", scale = [0, 5], licence = "...", source = "...", '
            "each optional",
        ) from None


def _suffix(text: str) -> str:
    """Return the format by a file's name: ".tsv" for "a.tsv" and "A.TSV.gz"."""
    path = Path(text)
    suffix = path.suffix.lower()
    if suffix in COMPRESSED:
        return Path(path.stem).suffix.lower()
    return suffix


FIRST = ("sentence1", "sent0", "text1", "text_a", "anchor", "premise", "question1", "query")
SECOND = ("sentence2", "sent1", "text2", "text_b", "positive", "hypothesis", "question2", "answer")
RATING = ("score", "rating", "similarity", "similarity_score", "relatedness", "gold")
TEXT = ("text", "sentence", "content", "review", "title", "utterance", "question")
LABEL = ("label", "class", "category", "intent", "topic", "label_text")
SPLIT, SUBSET = "split", "subset"


@dataclass(frozen=True)
class FileColumns:
    """The file's own names of the columns that are read."""

    texts: tuple[str, ...]
    """One column of texts, or the two sides of pairs."""
    answer: str
    """The column of ratings or labels."""
    split: str | None = None
    subset: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        optional = [name for name in (self.split, self.subset) if name is not None]
        return (*self.texts, self.answer, *optional)


def find_kind(own: OwnFile, there: Sequence[str]) -> str:
    """Return the kind of a file with the columns ``there``.

    Raises BenchError if no column says it, or labels may mean two things.
    """
    if own.kind:
        return own.kind
    named = own.columns or there
    if _first_of(RATING, named) or (len(own.columns) == 3 and not _first_of(LABEL, named)):
        return PAIRS
    if not own.columns and not _first_of(LABEL, there):
        raise BenchError(
            f"{own.path}: its first line names the columns "
            f"{', '.join(name[:30] for name in there)}; "
            "none is known",
            "write a first line with names (sentence1, sentence2, score), or name the columns: "
            f"{EXAMPLE}",
        )
    raise BenchError(
        f"{own.path} has labels: they may be classes to predict, or to find by clustering",
        f"--suite {CLASSIFICATION}:{own.path}, or --suite {CLUSTERING}:{own.path}",
    )


def choose_columns(own: OwnFile, there: Sequence[str]) -> FileColumns:
    """Find the columns of a file that has the columns ``there``. ``own.kind`` must be known.

    Raises BenchError, with the columns that the file has, if one is missing or may be one of two.
    """
    split = _first_of((SPLIT,), there)
    subset = _first_of((SUBSET,), there)
    if own.columns:
        _check_named(own, there)
        *texts, answer = own.columns
        return FileColumns(tuple(texts), answer, split, subset)
    first = _first_of(FIRST, there)
    second = _first_of(SECOND, there)
    text = _first_of(TEXT, there)
    rating = _first_of(RATING, there)
    label = _first_of(LABEL, there)
    if own.kind == PAIRS:
        rated = rating or label
        if first and second and rated:
            return FileColumns((first, second), rated, split, subset)
        raise _missing(own, there, "two columns of sentences and one of ratings")
    if label is None:
        raise _missing(own, there, "a column of texts and one of labels")
    if text:
        return FileColumns((text,), label, split, subset)
    if first and second and own.kind == CLASSIFICATION:
        return FileColumns((first, second), label, split, subset)
    raise _missing(own, there, "a column of texts and one of labels")


def _check_named(own: OwnFile, there: Sequence[str]) -> None:
    absent = [name for name in own.columns if name not in there]
    if absent:
        raise BenchError(
            f"{own.path} has no column '{absent[0]}'; it has {', '.join(there)}",
            f"--suite {own.kind}:{own.path.name}:COLUMN,COLUMN",
        )
    if len(set(own.columns)) < len(own.columns):
        raise BenchError(f"{own.path}: a column is named twice: {', '.join(own.columns)}", EXAMPLE)
    expected = {PAIRS: (3,), CLASSIFICATION: (2, 3), CLUSTERING: (2,)}[own.kind]
    if len(own.columns) not in expected:
        raise _missing(own, own.columns, _NEEDED[own.kind])


_NEEDED = {
    PAIRS: "first sentence, second sentence, rating",
    CLASSIFICATION: "text, label (of pairs: first text, second text, label)",
    CLUSTERING: "text, label",
}


def _missing(own: OwnFile, there: Sequence[str], needed: str) -> BenchError:
    """Return the error for a file without the columns of its kind, found by their names."""
    names, _, _ = _NEEDED[own.kind].partition(" (")
    columns = names.replace(", ", ",").replace(" ", "_")
    return BenchError(
        f"{own.path}: expected {needed}; it has the columns "
        f"{', '.join(name[:30] for name in there)}",
        f"name them, in this order: --suite {own.kind}:{own.path.name}:{columns}",
    )


def _first_of(known: Sequence[str], there: Sequence[str]) -> str | None:
    """Return the file's own name of the first of the ``known`` columns that it has, in any case."""
    names = {name.strip().lower(): name for name in there}
    for name in known:
        if name in names:
            return names[name]
    return None
