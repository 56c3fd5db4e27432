"""Which text and which of its columns ``--corpus`` names: ``SOURCE[:COLUMN,COLUMN]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.base.errors import CorpusError
from bench.data.corpora.columns import EXPECTED, our_names, text_column_that_holds_numbers
from bench.data.reading.naming import path_exists, split_columns

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


def parse_corpus(text: str) -> CorpusName:
    """Split ``SOURCE[:COLUMN,COLUMN]`` at the first colon that is not part of the path.

    A path that exists as it is written is whole, and so is a name of the hub. Raises CorpusError if
    the source or a column is empty.
    """
    if text.startswith(HUB) or path_exists(text):
        return CorpusName(text)
    name = CorpusName(*split_columns(text))
    if not name.source:
        raise CorpusError(f"--corpus {text}: a name is missing", EXAMPLE)
    if not all(name.columns):
        raise CorpusError(f"--corpus {text}: a column without a name", EXAMPLE)
    return name


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
