"""Makes checked data of the rows of a user's file: rated pairs, or texts with a class each.

Every check names the row. Text is unchanged except for white space: words are joined by single
spaces, as in the papers' sets.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.base.errors import DataDamaged
from bench.base.text import list_names, plural
from bench.data.own.columns import FileColumns, choose_columns, find_kind
from bench.data.own.naming import OwnFile, read_description
from bench.data.own.rows import FileRow, cell_of, hash_rows, no_rows, read_rows
from bench.data.reading.cells import number_of, shown, text_of
from bench.data.sets import single_spaced
from bench.data.sets.clustering import ClassedTexts
from bench.data.sets.sts import SentencePairs
from bench.data.sets.transfer import LabelledTexts

TRAIN = "train"
DEV = "dev"
TEST = "test"
SPLITS = {
    "train": TRAIN,
    "training": TRAIN,
    "dev": DEV,
    "valid": DEV,
    "validation": DEV,
    "val": DEV,
    "test": TEST,
}
"""The words of a split column, and the names of splits of saved data sets."""
WHOLE_DECIMAL = re.compile(r"([+-]?\d+)\.0+")
"""A whole number as pandas writes it next to a missing one."""
FOLDS = 10
"""Of the cross-validation of texts that have no train split, as for MR."""


@dataclass(frozen=True)
class FileItem:
    """One checked row: its texts, its answer as the file has it, and its place for messages."""

    place: str
    texts: tuple[str, ...]
    answer: Any
    split: str | None
    subset: str | None


SPEARMAN = "spearman"
"""The score of pairs that are rated on any scale."""


@dataclass(frozen=True)
class OwnPairs(SentencePairs):
    """Rated pairs of a user."""

    # which side of a search each column is; None: neither
    sides: tuple[str, str] | None = None
    # the measure that is their score
    score: str = SPEARMAN


def with_kind(own: OwnFile) -> OwnFile:
    """Return the file with its kind.

    Raises BenchError if neither the user nor its columns say it, DataDamaged if it has no rows.
    """
    if own.kind:
        return own
    first = next(read_rows(own.path), None)
    if first is None:
        raise no_rows(own.path)
    return replace(own, kind=find_kind(own, list(first.cells)))


def read_pairs(own: OwnFile) -> OwnPairs:
    """Read the rated pairs of the test split, or all pairs if the file has no splits.

    Raises DataDamaged, BenchError.
    """
    described = read_description(own.path)
    items = scored_items(own, read_items(own))
    _check_sentences(items)
    gold = np.array([_rating(item, described.scale) for item in items], dtype=np.float64)
    if described.score not in (None, SPEARMAN):
        _check_judged(items, gold, described.score)
    if len(items) < 2:
        raise DataDamaged(f"{own.path}: one pair; a correlation needs at least two", "add pairs")
    if np.ptp(gold) == 0:
        raise DataDamaged(
            f"{own.path}: all {len(items)} ratings are {gold[0]:g}, so that no correlation with "
            "them exists",
            "give pairs with different ratings",
        )
    rows = [[*item.texts, rating] for item, rating in zip(items, gold.tolist(), strict=True)]
    if described.sides:
        rows.insert(0, [*described.sides])
    return OwnPairs(
        name=own.name,
        sentences1=[item.texts[0] for item in items],
        sentences2=[item.texts[1] for item in items],
        gold=gold,
        subset=[item.subset or own.name for item in items],
        split=TEST,
        sha256=hash_rows(rows),
        sides=described.sides,
        score=described.score or SPEARMAN,
    )


def read_labelled(own: OwnFile) -> LabelledTexts:
    """Read texts, or pairs of texts, with their classes and splits.

    Every split is "test" if the file has none. Raises DataDamaged, BenchError.
    """
    items = read_items(own)
    labels = [_label(item) for item in items]
    splits = _splits(own, items)
    classes = tuple(sorted(set(labels), key=_natural))
    if len(classes) < 2:
        raise DataDamaged(
            f"{own.path}: one class, '{classes[0]}'", "give texts of at least two classes"
        )
    _check_classes(own, labels, splits)
    rows = [
        [*item.texts, label, split]
        for item, label, split in zip(items, labels, splits, strict=True)
    ]
    sha256 = hash_rows(rows)
    numbers = {name: number for number, name in enumerate(classes)}
    return LabelledTexts(
        name=own.name,
        texts=tuple(list(side) for side in zip(*(item.texts for item in items), strict=True)),
        labels=np.array([numbers[label] for label in labels], dtype=np.int64),
        split=np.array(splits),
        sha256=sha256,
        classes=classes,
    )


def read_classed(own: OwnFile) -> ClassedTexts:
    """Read the texts to be clustered: the test split, or all if the file has no splits.

    Raises DataDamaged, BenchError.
    """
    items = scored_items(own, read_items(own))
    labels = [_label(item) for item in items]
    classes = sorted(set(labels), key=_natural)
    if not 2 <= len(classes) < len(items):
        raise DataDamaged(
            f"{own.path}: {plural(len(items), 'text')} and {len(classes)} of different labels",
            "clustering needs at least two classes, and more texts than classes",
        )
    sha256 = hash_rows([[*item.texts, label] for item, label in zip(items, labels, strict=True)])
    numbers = {name: number for number, name in enumerate(classes)}
    return ClassedTexts(
        name=own.name,
        texts=[item.texts[0] or "." for item in items],
        labels=np.array([numbers[label] for label in labels], dtype=np.int64),
        sha256=sha256,
    )


def texts_in_two_splits(texts: LabelledTexts) -> list[str]:
    """Return the tested texts that the train or dev split has, too, in their order.

    The two sides of a pair are joined by " | ".
    """
    splits_of: dict[str, set[str]] = {}
    for sides, split in zip(zip(*texts.texts, strict=True), texts.split.tolist(), strict=True):
        splits_of.setdefault(" | ".join(sides), set()).add(split)
    return [text for text, splits in splits_of.items() if TEST in splits and len(splits) > 1]


def read_items(own: OwnFile) -> list[FileItem]:
    """Read the checked rows of a file. Its first row says which columns it has.

    A later row may have others, unless they would have been read.
    """
    columns: FileColumns | None = None
    there: list[str] = []
    items = []
    for row in read_rows(own.path):
        new = [name for name in row.cells if name not in there]
        there += new
        if columns is None:
            columns = choose_columns(own, there)
        elif new and choose_columns(own, there) != columns:
            named = "', '".join(new)
            raise DataDamaged(
                f"{row.place} has '{named}', but the first row has not",
                "write every column in every row",
            )
        items.append(_item(row, columns))
    if columns is None:
        raise no_rows(own.path)
    return items


def _item(row: FileRow, columns: FileColumns) -> FileItem:
    texts = []
    for column in columns.texts:  # an empty text is a text
        texts.append(single_spaced(text_of(cell_of(row, column), row.place, column)))
    answer = cell_of(row, columns.answer)
    subset = None
    if columns.subset is not None:
        subset = str(cell_of(row, columns.subset))
    return FileItem(row.place, tuple(texts), answer, _split(row, columns), subset)


def _split(row: FileRow, columns: FileColumns) -> str | None:
    """Return the split of a row: from its split column, else from the saved data set."""
    word = row.split if columns.split is None else str(cell_of(row, columns.split))
    if word is None:
        return None
    split = SPLITS.get(word.strip().lower())
    if split is None:
        raise DataDamaged(
            f"{row.place} has the split {word!r}; expected train, dev or test",
            "rename the split, or drop the column",
        )
    return split


def _check_sentences(items: Sequence[FileItem]) -> None:
    """Raise DataDamaged for a pair that lacks a sentence: nobody can have rated it."""
    for item in items:
        if not all(item.texts):
            raise DataDamaged(
                f"{item.place} has an empty sentence", "drop pairs without a sentence"
            )


def _check_judged(items: Sequence[FileItem], gold: np.ndarray, score: str | None) -> None:
    """Raise DataDamaged for a rating that is neither 0 nor 1."""
    for item, rating in zip(items, gold.tolist(), strict=True):
        if rating not in (0, 1):
            raise DataDamaged(
                f"{item.place} has the rating {rating:g}; {score} needs pairs judged 0 or 1",
                'write 0 or 1, or score = "spearman" in the file\'s description',
            )


def _rating(item: FileItem, scale: tuple[float, float] | None) -> float:
    rating = number_of(
        item.answer,
        item.place,
        "rating",
        "write 1 for yes and 0 for no, drop pairs that nobody rated, or name the column of ratings",
    )
    if scale is not None and not scale[0] <= rating <= scale[1]:
        raise DataDamaged(
            f"{item.place} has the rating {rating:g}, outside of the scale {scale[0]:g} to "
            f"{scale[1]:g}",
            "correct the rating, or the scale in the file's description",
        )
    return rating


def _label(item: FileItem) -> str:
    """Return the name of a class.

    A whole number is written without a point, so that 1, 1.0 and the text "1.0" are one class.
    Raises DataDamaged for a cell without a label, or with several.
    """
    value = item.answer
    is_nan = value != value
    label = ""
    if value is not None and not is_nan:
        label = str(value).strip()
    if isinstance(value, bytes):
        label = text_of(value, item.place, "label").strip()
    if not label:
        raise DataDamaged(f"{item.place} has no label", "drop texts without a label")
    if isinstance(value, list | dict) or _is_list(label):
        raise DataDamaged(
            f"{item.place} has several labels, {shown(value)}; a text has one label",
            "keep one label of each text, or make a file for each label, with yes or no in a row",
        )
    whole = WHOLE_DECIMAL.fullmatch(label)
    return whole[1] if whole else label


def _is_list(label: str) -> bool:
    """Say if a text is a list as pandas writes it into a CSV: [0, 2], or ['joy', 'fear']."""
    if not (label.startswith("[") and label.endswith("]")):
        return False
    try:
        return isinstance(ast.literal_eval(label), list)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def _natural(label: str) -> tuple[float, str]:
    """Return the sort key of a label: numbers by value, before words. "nan" is a word."""
    try:
        number = float(label)
    except ValueError:
        number = math.inf
    return (math.inf if math.isnan(number) else number), label


def _splits(own: OwnFile, items: Sequence[FileItem]) -> list[str]:
    """Return the split of every item; "test" for all if there are none.

    Raises DataDamaged if nothing would be scored.
    """
    splits = [item.split for item in items if item.split is not None]
    if not splits:
        return [TEST] * len(items)
    if TEST not in splits:
        found = list_names(sorted(set(splits)))
        raise DataDamaged(
            f"{own.path}: no row is of the split test; there are rows of {found}",
            "call a split test, or drop the column for a cross-validation of all rows",
        )
    return splits


def scored_items(own: OwnFile, items: Sequence[FileItem]) -> list[FileItem]:
    """Return the items of the test split; all if there are no splits. Raises DataDamaged."""
    splits = _splits(own, items)
    return [item for item, split in zip(items, splits, strict=True) if split == TEST]


def _check_classes(own: OwnFile, labels: Sequence[str], splits: Sequence[str]) -> None:
    """Raise DataDamaged if a classifier cannot be fitted.

    A class has too few texts, or only the test split has it.
    """
    fitted = [label for label, split in zip(labels, splits, strict=True) if split == TRAIN]
    if fitted:
        unknown = sorted(set(labels) - set(fitted))
        if unknown:
            raise DataDamaged(
                f"{own.path}: no text of the train split has the class '{unknown[0]}'",
                "drop the class, or add texts of it",
            )
    elif DEV in splits:
        raise DataDamaged(
            f"{own.path}: rows of dev and test, none of train",
            "call a split train, or drop the column",
        )
    if fitted and DEV in splits:
        return
    where = " of the train split" if fitted else ""
    counts = Counter(fitted or labels)
    label, most = counts.most_common(1)[0]
    if most < FOLDS:
        raise DataDamaged(
            f"{own.path}: the largest class{where}, '{label}', has {plural(most, 'text')}; "
            f"{FOLDS} folds need {FOLDS}",
            "add texts, or a split column with train, dev and test",
        )
    rare, least = counts.most_common()[-1]
    if least < 2:
        raise DataDamaged(
            f"{own.path}: the class '{rare}' has one text{where}, which cannot be fitted and "
            "tested",
            "drop the class, or add texts of it",
        )
