"""Readers of the semantic textual similarity sets: STS12-16, STS-B and SICK-R, in SentEval's own
files; and their shared sentences.

As the papers read them: a pair with an empty gold line was never annotated and is dropped (STS15,
STS16); sentences are split on white space and joined by single spaces; nothing is lower-cased here;
STS13 comes without its fourth set, SMT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.base.errors import DataDamaged, UnknownName
from bench.data.sets import TOKENISED, Copy, DataFile, DataFolder, cells, data_set, single_spaced

Numbers = NDArray[np.int64]

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
ALL = "all"

_COLUMNS = {"STS-B": (5, 6, 4), "SICK-R": (1, 2, 3)}
"""Cells of a row: first sentence, second sentence, gold score."""


@dataclass(frozen=True)
class SentencePairs:
    """Scored pairs in the order of the data; row i of every list belongs to pair i."""

    name: str
    sentences1: list[str]
    sentences2: list[str]
    gold: np.ndarray
    """(N,) float64, the annotators' mean: 0..5, SICK-R 1..5."""
    subset: list[str]
    """Sub-dataset of every pair; the task's name if there is only one (the split's name if splits
    are joined)."""
    split: str
    sha256: str
    """Over the files' sha256, in order."""

    def __len__(self) -> int:
        return len(self.sentences1)


def read_sts(
    folder: DataFolder,
    task: str,
    *,
    text: str = TOKENISED,
    split: str = "test",
    keep_spaces: bool = False,
) -> SentencePairs:
    """Return the pairs of an STS task, checked against the known facts about its files.

    ``text``: "tokenised", "raw", or "any" for whichever is there. ``split``: "test"; STS-B and
    SICK-R also have "train" and "dev"; "all" joins train, dev and test in that order.
    ``keep_spaces``: keep the file's white space within sentences, as mteb does. Raises
    DataMissing, DataDamaged; UnknownName for a task or split that
    does not exist.
    """
    if task not in STS_TASKS:
        raise UnknownName("STS task", task, STS_TASKS)
    wanted = data_set(task)
    splits = list(dict.fromkeys(file.split for file in wanted.files))
    if split not in (*splits, ALL):
        raise UnknownName("split", split, [*splits, ALL], where=f"of {task}")
    wanted_splits = splits if split == ALL else [split]
    copy = folder.open(wanted, wanted.split(*wanted_splits), text=text)
    rows = []
    if task in _COLUMNS:
        for file in copy.files:
            part = file.file.split if split == ALL else task
            for row in parse_table(file.text, file.file, _COLUMNS[task], keep_spaces):
                rows.append((*row, part))
    else:
        rows += _pair_rows(copy, keep_spaces)
    first, second, gold, subset = zip(*rows, strict=True)
    return SentencePairs(
        name=task,
        sentences1=list(first),
        sentences2=list(second),
        gold=np.array(gold, dtype=np.float64),
        subset=list(subset),
        split=split,
        sha256=copy.sha256,
    )


def _pair_rows(copy: Copy, keep_spaces: bool) -> Iterator[tuple[str, str, float, str]]:
    """Yield the rows of STS12-16: per sub-dataset a file of pairs and a file of gold scores, line
    by line.
    """
    texts = {(file.file.subset, file.file.role): file for file in copy.files}
    for (subset, role), file in texts.items():
        if role == "pairs":
            pairs = parse_pairs(file.text, file.file, keep_spaces)
            gold = texts[subset, "gold"]
            for pair, score in zip(pairs, parse_gold(gold.text, gold.file), strict=True):
                if score is not None:
                    yield *pair, score, str(subset)


def parse_pairs(text: str, file: DataFile, keep_spaces: bool = False) -> list[tuple[str, str]]:
    """Yield the two sentences of each line, separated by a tab.

    Raises DataDamaged with the number of a line that has only one.
    """
    return [
        (_sentence(row[0], keep_spaces), _sentence(row[1], keep_spaces))
        for _, row in _numbered(text, file, 2)
    ]


def parse_gold(text: str, file: DataFile) -> list[float | None]:
    """Return one score per line; None for an empty line, a pair that nobody annotated."""
    return [
        _score(row[0], number, file) if row[0].strip() else None
        for number, row in _numbered(text, file, 1)
    ]


def parse_table(
    text: str, file: DataFile, columns: tuple[int, int, int], keep_spaces: bool = False
) -> list[tuple[str, str, float]]:
    """Return rows of (first sentence, second sentence, score), taken from these columns.

    Quotes are text, as in SentEval.
    """
    first, second, gold = columns
    return [
        (
            _sentence(row[first], keep_spaces),
            _sentence(row[second], keep_spaces),
            _score(row[gold], number, file),
        )
        for number, row in _numbered(text, file, max(columns) + 1)
    ]


def _numbered(text: str, file: DataFile, width: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the line, its cells).

    Raises DataDamaged for a line with fewer than ``width`` cells.
    """
    for number, row in enumerate(cells(text, file), start=1 + file.header):
        if len(row) < width:
            raise DataDamaged(
                f"{file.name}: line {number} has {len(row)} columns, {width} expected"
            )
        yield number, row


def _sentence(cell: str, keep_spaces: bool) -> str:
    return cell if keep_spaces else single_spaced(cell)


def _score(cell: str, number: int, file: DataFile) -> float:
    try:
        score = float(cell)
    except ValueError:
        raise DataDamaged(f"{file.name}: line {number}: '{cell[:40]}' is not a score") from None
    if not 0 <= score <= 5:
        raise DataDamaged(
            f"{file.name}: line {number}: the score {cell.strip()} is not within 0 to 5"
        )
    return score
