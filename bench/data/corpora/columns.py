"""The columns of training text: the names that a file may give them, and the cells of its rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.base.errors import CorpusError
from bench.base.text import plural
from bench.data.reading.cells import number_of, shown, text_of
from bench.data.reading.lines import Record
from bench.data.reading.naming import plain_name

KINDS: dict[tuple[str, ...], str] = {
    ("sentence",): "sentences",
    ("sent0", "sent1"): "pairs",
    ("sent0", "sent1", "hard_neg"): "triplets",
    ("sent0", "sent1", "hard_neg", "hard_neg_2"): "n-tuples",  # and any further hard_neg_3, ...
    ("sent0", "sent1", "label"): "labelled",
    ("sent0", "sent1", "score"): "graded",
}
"""The columns that a corpus may have, and the word that a method uses to ask for them."""
COLUMNS_OF = {kind: columns for columns, kind in KINDS.items()}
NUMBERS = ("label", "score")  # columns that hold no text
LABELS = {"entailment": 0, "neutral": 1, "contradiction": 2}  # their ids in the hub's SNLI and MNLI
NAMES = {
    "sentence": "sentence",
    "text": "sentence",
    "sent0": "sent0",
    "anchor": "sent0",
    "premise": "sent0",
    "sentence1": "sent0",
    "text1": "sent0",
    "texta": "sent0",
    "sent1": "sent1",
    "positive": "sent1",
    "hypothesis": "sent1",
    "sentence2": "sent1",
    "text2": "sent1",
    "textb": "sent1",
    "label": "label",
    "goldlabel": "label",
    "score": "score",
}
"""Names without blanks, marks and capitals -> our columns: those of sentence-transformers, SNLI,
MNLI, STS-B, AnglE and CLAIF on the hub."""
HARD_NEGATIVE = re.compile(r"(?:hard)?neg(?:ative)?(s?)(\d{0,4})")
"""hard_neg, negative, negatives, negative_1, neg-2, ... in the same form.

A plural is a list of texts.
"""
NEARLY_KNOWN = re.compile(
    r"(sent|sentence|text|anchor|positive|pos|premise|hypothesis|label|goldlabel|score|similarity"
    r"|similarityscore|neg|negative|hardneg|hardnegative)s?\d*"
)
"""Names that can only mean training text in a file with one of our columns: such a column is never
ignored.
"""
EXPECTED = (
    "expected sentence, or sent0,sent1, or these two with hard_neg (or hard_neg_1, hard_neg_2, "
    "...), label or score"
)
EQUAL_NUMBERS = (
    "give every row the same number of hard negatives, or write a row for each of them (sent0, "
    "sent1, hard_neg)"
)
NO_SCORE = "drop rows without a score"

Row = tuple[str, ...]


@dataclass(frozen=True)
class ColumnMeaning:
    """A column of ours, as the name of a file's column means it."""

    column: str
    # of a hard negative: its place among several; -1 without a number
    place: int = 0
    # the name is a plural: each cell is a list of texts
    several: bool = False


def meaning_of(name: str) -> ColumnMeaning | None:
    """Return the column that a name means, or None if it is not one of ours."""
    plain = plain_name(name)
    if plain in NAMES:
        return ColumnMeaning(NAMES[plain])
    negative = HARD_NEGATIVE.fullmatch(plain)
    if negative is None:
        return None
    plural_s, number = negative.groups()
    if number:
        return ColumnMeaning("hard_neg", place=int(number))
    return ColumnMeaning("hard_neg", place=-1, several=bool(plural_s))


def is_nearly_known(name: str) -> bool:
    """Return True if a name is so near to one of ours that it must not be ignored ("scores",
    "positive_2")."""
    return NEARLY_KNOWN.fullmatch(plain_name(name)) is not None


def kind_of(columns: Sequence[str]) -> str:
    """Return "sentences", "pairs", "triplets", "n-tuples", "labelled" or "graded" for the columns
    of a corpus."""
    return KINDS[tuple(columns[:4])]


def negative_names(count: int) -> tuple[str, ...]:
    """Return the names of ``count`` hard negatives: hard_neg, hard_neg_2, hard_neg_3, ..."""
    return ("hard_neg", *(f"hard_neg_{i}" for i in range(2, count + 1)))[:count]


def our_names(names: Sequence[str]) -> tuple[str, ...] | None:
    """Return our name for each of a file's columns; None if they make no corpus.

    A list of hard negatives is "negatives".
    """
    meanings = [meaning_of(name) for name in names]
    ours = [meaning.column for meaning in meanings if meaning is not None]
    negatives = [
        i for i, meaning in enumerate(meanings) if meaning and meaning.column == "hard_neg"
    ]
    texts = [column for column in ours if column != "hard_neg"]
    if len(ours) < len(names) or not any(_is_of(kind, texts, len(negatives)) for kind in KINDS):
        return None
    if len(negatives) == 1 and _is_plural(names[negatives[0]]):
        ours[negatives[0]] = "negatives"
        return tuple(ours)
    in_order = sorted(negatives, key=lambda i: meanings[i].place)  # type: ignore[union-attr]
    for i, name in zip(in_order, negative_names(len(negatives)), strict=True):
        ours[i] = name
    return tuple(ours)


def text_column_that_holds_numbers(theirs: Sequence[str], ours: Sequence[str]) -> str | None:
    """Return the first column that is called a label or a score, but would be read as a text; None
    if there is none."""
    for their, our in zip(theirs, ours, strict=True):
        meaning = meaning_of(their)
        if meaning is not None and meaning.column in NUMBERS and our not in NUMBERS:
            return their
    return None


def columns_to_be(ours: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a corpus that is not here, in our order; "negatives" counts as two."""
    texts = [name for name in ours if name != "negatives" and not name.startswith("hard_neg")]
    negatives = len(ours) - len(texts)
    if "negatives" in ours:
        negatives += 1
    our_order = list(NAMES.values())
    return (*sorted(texts, key=our_order.index), *negative_names(negatives))


@dataclass(frozen=True)
class Layout:
    """The places of the cells of a corpus in the records of a file.

    ``layout = find_layout("a.jsonl", {"anchor": "a", "positive": "b", "negatives": ["c", "d"],
    "id": 7}, exact=False)`` has the columns sent0, sent1, hard_neg and hard_neg_2, and leaves
    ("id",) unread.
    """

    # names the file in messages, and what a row of it is called: "line" or "row"
    where: str
    word: str
    # our columns, in our order
    columns: tuple[str, ...]
    # the file's names of them, in the same order; if ``listed`` the last one holds a list of all
    # hard negatives
    keys: tuple[str, ...]
    listed: bool
    # all names of the first record, and the names that no column is made of
    names: frozenset[str]
    unread: tuple[str, ...]
    # names without a meaning that later records have besides
    strange: set[str] = field(default_factory=set)

    def rows(self, records: Iterable[tuple[int, Record]]) -> Iterator[Row]:
        """Yield the row of each numbered record. Raises CorpusError, naming the line."""
        for number, record in records:
            yield self.row(number, record)

    def row(self, number: int, record: Record) -> Row:
        """Return the cells of a record in the order of ``columns``.

        A missing cell, or a cell with nothing but white space, is one space, as in the training
        scripts of SimCSE and PromCSE; of several hard negatives none may be missing. A label is its
        word, a score its number as Python writes it. Raises CorpusError, naming the line.
        """
        if record.keys() != self.names:
            self._check_names(number, record)
        values = self._values(number, record)
        if self.columns[-1] not in NUMBERS and all(map(_is_full_text, values)):
            return tuple(values)  # nearly every row of a million
        row = []
        for column, value in zip(self.columns, values, strict=True):
            if column == "label":
                text = _label(self._place(number), value)
            elif column == "score":
                text = repr(number_of(value, self._place(number), "score", NO_SCORE))
            elif isinstance(value, str):
                text = value
            elif value is None:
                text = ""
            else:
                key = self._key_of(column)
                text = text_of(value, self._place(number), key, "a string or null")
            blank = not text or text.isspace()
            if blank and column.startswith("hard_neg") and "hard_neg_2" in self.columns:
                raise CorpusError(
                    f"{self._place(number)}: a hard negative of '{self._key_of(column)}' is empty, "
                    f"and the first row has {self._count()}",
                    EQUAL_NUMBERS,
                )
            row.append(" " if blank else text)
        return tuple(row)

    def _place(self, number: int) -> str:
        return f"{self.where}: {self.word} {number}"

    def _count(self) -> int:
        """Return how many hard negatives a row has."""
        return len([column for column in self.columns if column.startswith("hard_neg")])

    def _key_of(self, column: str) -> str:
        """Return the file's name of one of our columns."""
        return self.keys[min(self.columns.index(column), len(self.keys) - 1)]

    def _values(self, number: int, record: Record) -> list[Any]:
        """Return a cell for each of our columns. Raises CorpusError, naming the line."""
        if not self.listed:
            return [record[key] for key in self.keys]
        *keys, last = self.keys
        values = [record[key] for key in keys]
        negatives = record[last]
        count = self._count()
        if not isinstance(negatives, list):
            raise CorpusError(
                f"{self._place(number)}: '{last}' is {shown(negatives)}, expected a list of "
                f"{plural(count, 'text')}, as in {self.word} 1",
                EQUAL_NUMBERS,
            )
        if len(negatives) != count:
            raise CorpusError(
                f"{self._place(number)}: '{last}' has {plural(len(negatives), 'text')}, "
                f"{self.word} 1 has {count}",
                EQUAL_NUMBERS,
            )
        return [*values, *negatives]

    def _check_names(self, number: int, record: Record) -> None:
        """Raise CorpusError if a record lacks a column, or has one that the first record lacks."""
        for key in self.keys:
            if key not in record:
                raise CorpusError(
                    f"{self._place(number)} has no '{key}', but {self.word} 1 has",
                    "write null for a missing cell",
                )
        for name in record.keys() - self.names - self.strange:
            if meaning_of(name) or is_nearly_known(name):
                raise CorpusError(
                    f"{self._place(number)} has '{name}', but {self.word} 1 has not",
                    f"give every {self.word} the same columns, with null for a missing cell, or "
                    "drop the column",
                )
            self.strange.add(name)


def _is_full_text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and not value.isspace()


def find_layout(where: str, head: Record, *, exact: bool, word: str = "line") -> Layout:
    """Find the columns of a corpus in records such as the first one, ``head``.

    ``exact``: the file may have no other columns. ``word``: the name of a row. Raises CorpusError
    if no column is one of a corpus, if two mean the same, or if a column would be ignored that can
    only be training text.
    """
    names = list(head)
    first = f"{where}: line 1" if word == "line" else where
    found: dict[str, dict[int, str]] = {}
    others = []
    for name in names:
        meaning = meaning_of(name)
        if meaning is None:
            others.append(name)
            continue
        same = found.setdefault(meaning.column, {})
        if meaning.place in same:
            raise CorpusError(
                f"{first} has two columns for {meaning.column}: '{same[meaning.place]}' "
                f"and '{name}'",
                "rename or drop one of them",
            )
        same[meaning.place] = name
    negatives = [name for _, name in sorted(found.pop("hard_neg", {}).items())]
    columns = next((kind for kind in KINDS if _is_of(kind, found, len(negatives))), None)
    if columns is None or (others and exact):
        raise _refusal(first, names)
    for name in others:
        if is_nearly_known(name):
            raise CorpusError(
                f"{first} has the column '{name}' next to {', '.join(columns)}, and it "
                "would be ignored",
                f"rename or drop it; {EXPECTED}",
            )
    texts = [column for column in columns if not column.startswith("hard_neg")]
    keys = [found[column][0] for column in texts]
    count, listed = _count_negatives(first, head, negatives)
    return Layout(
        where=where,
        word=word,
        columns=(*texts, *negative_names(count)),
        keys=(*keys, *negatives),
        listed=listed,
        names=frozenset(names),
        unread=tuple(others),
    )


def _is_of(columns: Sequence[str], texts: Collection[str], negatives: int) -> bool:
    """Return True if a kind of corpus has the columns ``texts`` and this number of hard
    negatives.
    """
    plain = [column for column in columns if not column.startswith("hard_neg")]
    wanted = len(columns) - len(plain)
    return sorted(plain) == sorted(texts) and wanted == min(negatives, 2)


def _count_negatives(first: str, head: Record, negatives: Sequence[str]) -> tuple[int, bool]:
    """Return how many hard negatives a row has, and True if they are one list.

    Raises CorpusError.
    """
    values = [head[name] for name in negatives]
    lists = [name for name, value in zip(negatives, values, strict=True) if isinstance(value, list)]
    plurals = [name for name in negatives if _is_plural(name)]
    if (lists or plurals) and len(negatives) > 1:
        name = (lists or plurals)[0]
        other = next(column for column in negatives if column != name)
        raise CorpusError(
            f"{first} has two columns for hard_neg: '{name}', a list, and '{other}'",
            "drop one of them",
        )
    if lists:
        if not values[0]:
            raise CorpusError(
                f"{first}: '{lists[0]}' is an empty list, and every row has as many hard "
                "negatives as the first",
                "drop the column to train on pairs, or the rows without hard negatives",
            )
        return len(values[0]), True
    if plurals:
        raise CorpusError(
            f"{first}: '{plurals[0]}' is {shown(values[0])}, expected a list of texts",
            "a column that holds one text is hard_neg; CSV and TSV have a column for each: "
            "hard_neg_1, hard_neg_2, ...",
        )
    return len(negatives), False


def _is_plural(name: str) -> bool:
    meaning = meaning_of(name)
    return meaning is not None and meaning.several


def _refusal(first: str, names: Sequence[str]) -> CorpusError:
    """Return the error for a file with columns that make no known kind of training text."""
    listed = ", ".join(repr(name.strip()[:30]) for name in names[:8])
    hint = "rename or drop columns; or name those to read of a file, --corpus FILE:COLUMN,COLUMN"
    if any(not name.strip() or name.startswith("Unnamed: ") for name in names):
        hint = "the column without a name is pandas' index: to_csv(..., index=False)"
    return CorpusError(f"{first} has the columns {listed}; {EXPECTED}", hint)


def _label(place: str, value: Any) -> str:
    text = str(value).strip().lower()
    for label, i in LABELS.items():
        if text in (label, str(i)):
            return label
    expected = ", ".join(f"{label} ({i})" for label, i in LABELS.items())
    hint = "drop rows without a gold label; name a column of graded scores 'score'"
    if text in [f"{i}.0" for i in LABELS.values()]:
        hint = (
            "pandas writes whole numbers so next to a missing one: df = "
            "df.dropna(subset=['label']).astype({'label': int}); "
            "if they are graded scores, name the column 'score'"
        )
    raise CorpusError(f"{place} has the label {value!r}; expected {expected}", hint)
