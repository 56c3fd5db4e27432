"""Readers of the semantic textual similarity sets: STS12-16, STS-B and SICK-R, in SentEval's own
files; and their shared sentences.

As the papers read them: a pair with an empty gold line was never annotated and is dropped (STS15,
STS16); sentences are split on white space and joined by single spaces; nothing is lower-cased here;
STS13 comes without its fourth set, SMT.

Nothing is checked here: the bytes of every file are known by their checksum before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """Return the pairs of an STS task, from files that are checked against known checksums.

    ``text``: "tokenised", "raw", or "any" for whichever is there. ``split``: "test"; STS-B and
    SICK-R also have "train" and "dev"; "all" joins train, dev and test in that order.
    ``keep_spaces``: keep the file's white space within sentences, as mteb does. Raises
    DataMissing, DataDamaged.
    """
    wanted = data_set(task)
    splits = [split]
    if split == ALL:
        splits = list(dict.fromkeys(file.split for file in wanted.files))
    copy = folder.open(wanted, wanted.split(*splits), text=text)
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
    """Return the two sentences of each line, separated by a tab."""
    return [
        (_sentence(row[0], keep_spaces), _sentence(row[1], keep_spaces))
        for row in cells(text, file)
    ]


def parse_gold(text: str, file: DataFile) -> list[float | None]:
    """Return one score per line; None for an empty line, a pair that nobody annotated."""
    return [float(row[0]) if row[0].strip() else None for row in cells(text, file)]


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
            float(row[gold]),
        )
        for row in cells(text, file)
    ]


def _sentence(cell: str, keep_spaces: bool) -> str:
    return cell if keep_spaces else single_spaced(cell)
