"""Which texts ``--corpus`` names:

``SOURCE[:COLUMN,COLUMN]``, or several of these with commas between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.base.errors import CorpusError
from bench.data.corpora.columns import EXPECTED, our_names, text_column_that_holds_numbers
from bench.data.reading import SUFFIXES, format_of
from bench.data.reading.naming import BY_HASH, path_exists, split_columns
from bench.data.reading.saved import is_saved

HUB = "hub:"
EXAMPLE = "--corpus notes.txt, --corpus pairs.csv:question,answer, or --corpus a.txt --corpus b.txt"


@dataclass(frozen=True)
class ChosenColumns:
    """Columns of a file that a user named, and the columns of training text that they are.

    ``ChosenColumns(("question", "rating=score"), ("question", "rating"), ("sent0", "score"))``
    """

    typed: tuple[str, ...]
    """What the user typed."""

    theirs: tuple[str, ...]
    """The file's names, in the user's order."""
    ours: tuple[str, ...]
    """Our names, in the same order; "negatives" for a list of hard negatives."""

    def as_text(self) -> tuple[str, ...]:
        """Return each column with ours: "question=sent0". It may be typed so, too."""
        return tuple(f"{their}={our}" for their, our in zip(self.theirs, self.ours, strict=True))


@dataclass(frozen=True)
class CorpusName:
    """One text that ``--corpus`` names.

    ``CorpusName("pairs.csv", ("question", "answer"))``
    """

    source: str
    """A file, a folder of ``save_to_disk``, a name that recipes use, ``sha256:HASH``, or all of a
    name of the hub."""
    columns: tuple[str, ...] = ()
    """The columns as they were typed; () if none were."""

    @property
    def text(self) -> str:
        """The name as a user types it."""
        if not self.columns:
            return self.source
        return f"{self.source}:{','.join(self.columns)}"


def split_corpora(text: str) -> list[CorpusName]:
    """Split names at their commas. A part after a name with columns is another column, unless it is
    clearly a file or another name.

    "pairs.csv:a,b,notes.txt" -> pairs.csv with the columns a and b, and notes.txt. A path that
    exists as it is written is never split. Raises CorpusError if a name or a column is empty.
    """
    pieces = text.split(",")
    names: list[CorpusName] = []
    at = 0
    while at < len(pieces):
        end = _end_of_path(pieces, at)
        piece = ",".join(pieces[at:end])
        if names and _has_columns(names[-1]) and not _is_source(piece):
            before = names[-1]
            if before.source.startswith(HUB):
                names[-1] = CorpusName(f"{before.source},{piece}")
            else:
                names[-1] = CorpusName(before.source, (*before.columns, piece.strip()))
        else:
            names.append(parse_corpus(piece if path_exists(piece) else piece.strip()))
        at = end
    for name in names:
        if not name.source:
            raise CorpusError(f"--corpus {text}: a name is missing at a comma", EXAMPLE)
        if not all(name.columns):
            raise CorpusError(f"--corpus {text}: a column without a name", EXAMPLE)
    return names


def parse_corpus(text: str) -> CorpusName:
    """Split ``SOURCE[:COLUMN,COLUMN]`` at the first colon that is not part of the path.

    A path that exists as it is written is whole.
    """
    if text.startswith(HUB) or path_exists(text):
        return CorpusName(text)
    return CorpusName(*split_columns(text))


def parse_columns(columns: Sequence[str], where: str) -> ChosenColumns:
    """Find the role of each column that a user named: as ``NAME=score`` says, by the names if all
    are known, else by their order.

    ``where`` names the text in messages. Raises CorpusError if they make no training text, or if
    one is named twice.
    """
    theirs = tuple(column.partition("=")[0].strip() for column in columns)
    twice = [their for their in theirs if theirs.count(their) > 1]
    if twice:
        raise CorpusError(f"{where}: the column '{twice[0]}' is named twice", EXAMPLE)
    ours = name_columns(columns)
    if ours is None:
        raise CorpusError(
            f"{where}: {', '.join(columns)} make no training text; {EXPECTED}",
            "NAME=score, NAME=hard_neg, ... says what a column is",
        )
    number = text_column_that_holds_numbers(columns, ours)
    if number is not None:
        raise CorpusError(
            f"{where}: the column '{number}' would be read as a text",
            "sentences come first: FIRST,SECOND,score; or say what each column is: NAME=sent0",
        )
    return ChosenColumns(tuple(columns), theirs, ours)


def name_columns(columns: Sequence[str]) -> tuple[str, ...] | None:
    """Return our names of the columns, or None if they make no training text.

    A name counts as ``label=score`` says; the others by their names if all are known, else by their
    order. A column with a list of hard negatives is "negatives".
    """
    renamed = [column.rpartition("=")[2].strip() for column in columns]
    ours = our_names(renamed)
    if ours is not None:
        return ours
    if len(renamed) > 2:
        ours = our_names(["sent0", "sent1", *renamed[2:]])
        if ours is not None:
            return ours
    by_order = {1: ("sentence",), 2: ("sent0", "sent1"), 3: ("sent0", "sent1", "hard_neg")}
    return by_order.get(len(columns))


def _end_of_path(pieces: Sequence[str], at: int) -> int:
    """Return how far the path that begins at ``pieces[at]`` goes: commas may be part of a path that
    exists."""
    for end in range(len(pieces), at + 1, -1):
        if path_exists(",".join(pieces[at:end])):
            return end
    return at + 1


def _has_columns(name: CorpusName) -> bool:
    if name.source.startswith(HUB):
        return ":" in name.source.removeprefix(HUB)
    return bool(name.columns)


def _is_source(piece: str) -> bool:
    """Say if a part after a column is clearly no column: a file by its suffix, a saved folder, a
    name of the hub, or a hash.
    """
    piece = piece.strip()
    if piece.startswith((HUB, BY_HASH)):
        return True
    source = parse_corpus(piece).source
    return format_of(source) in SUFFIXES or is_saved(Path(source).expanduser())
