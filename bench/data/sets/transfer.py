"""Readers of the sets of texts with a class each: SentEval's seven transfer sets, and the eight
short-text clustering sets of SCCL.

The transfer sets (MR CR SUBJ MPQA SST-2 TREC MRPC) are in SentEval's own files. As SentEval reads
them: MR, CR, SUBJ, MPQA and TREC are latin-1, the others UTF-8; the first four are cut by Python's
splitlines (where U+0085 ends a line too), the others by line feeds; text is split on white space.
Blank lines of CR and MPQA stay, as empty sentences with a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.base.errors import DataDamaged, UnknownName
from bench.data.sets import (
    DataFolder,
    Found,
    data_set,
    single_spaced,
)

QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
CLASSES = {
    **dict.fromkeys(("MR", "CR", "MPQA", "SST-2"), ("negative", "positive")),
    "SUBJ": ("subjective", "objective"),
    "TREC": QUESTIONS,
    "MRPC": ("different", "paraphrase"),
}

Row = tuple[tuple[str, ...], int]
"""One sentence, or the two of a pair, and a label."""


@dataclass(frozen=True)
class LabelledTexts:
    """Sentences or pairs of them with a class each, in the order of the files (positive before
    negative)."""

    name: str
    texts: tuple[list[str], ...]
    """One list of sentences; MRPC has two, row i of both is pair i."""
    labels: np.ndarray
    """(N,) int64, an index into ``classes``."""
    split: np.ndarray
    """(N,) of "train", "dev" and "test"; "test" throughout where cross-validation makes the splits.
    """
    sha256: str
    classes: tuple[str, ...]
    """The name of each class, in the order of ``labels``."""

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, split: str) -> np.ndarray:
        """Return the rows of a split in SentEval's order: by number of tokens (of the first, then
        the second sentence), then by label."""
        lengths = [np.array([len(text.split()) for text in texts]) for texts in self.texts]
        order = np.lexsort((self.labels, *reversed(lengths)))
        return order[self.split[order] == split]


def read_transfer(folder: DataFolder, task: str) -> LabelledTexts:
    """Return a transfer set, checked against the known facts about its files.

    Raises DataMissing, DataDamaged, UnknownName.
    """
    if task not in CLASSES:
        raise UnknownName("transfer task", task, CLASSES)
    wanted = data_set(task)
    copy = folder.open(wanted)
    rows = [(*row, file.file.split) for file in copy.files for row in parse_texts(task, file)]
    split = [name for _, _, name in rows]
    if any(split.count(name) != n for name, n in wanted.items.items()):
        raise DataDamaged(
            f"{task}: {len(rows):,} items found, {sum(wanted.items.values()):,} expected, in "
            f"{copy.place}"
        )
    return LabelledTexts(
        name=task,
        texts=tuple(list(column) for column in zip(*(texts for texts, _, _ in rows), strict=True)),
        labels=np.array([label for _, label, _ in rows], dtype=np.int64),
        split=np.array(split),
        sha256=copy.sha256,
        classes=CLASSES[task],
    )


def _parse_sst(line: str) -> Row:
    text, label, *_ = line.split("\t")
    return (single_spaced(text),), ("0", "1").index(label)


def _parse_trec(line: str) -> Row:
    target, question = line.split(":", 1)
    return (single_spaced(question.split(" ", 1)[1]),), QUESTIONS.index(target)


def _parse_mrpc(line: str) -> Row:
    label, _, _, first, second, *_ = line.split("\t")  # quotes are text
    return (single_spaced(first), single_spaced(second)), ("0", "1").index(label)


_PARSERS = {"SST-2": _parse_sst, "TREC": _parse_trec, "MRPC": _parse_mrpc}


def parse_texts(task: str, copy: Found) -> list[Row]:
    """Return the rows of a file.

    Of MR, CR, SUBJ and MPQA a file has one class, which its role names. Raises DataDamaged.
    """
    text = copy.text.replace("\r\n", "\n").replace("\r", "\n")  # as Python's text mode
    if task not in _PARSERS:
        return [
            ((single_spaced(line),), int(copy.file.role == "positive"))
            for line in text.splitlines()
        ]
    rows = []
    for number, line in enumerate(
        text.removesuffix("\n").split("\n")[copy.file.header :], start=1 + copy.file.header
    ):
        try:
            rows.append(_PARSERS[task](line.strip()))
        except (ValueError, IndexError):
            raise DataDamaged(
                f"{copy.file.name}: line {number} is not in SentEval's format: '{line[:40]}'"
            ) from None
    return rows
