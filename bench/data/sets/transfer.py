"""The reader of sets of texts with a class each, as SentEval's seven transfer sets are.

The set's entry in the manifest names the cells of a row and the classes. Files are read as SentEval
reads them: text is split on white space, and blank lines of CR and MPQA stay, as empty sentences
with a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench.base.errors import DataDamaged
from bench.data.sets import (
    DataFolder,
    DataSet,
    Found,
    data_set,
    single_spaced,
)

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
    """Return a labelled set, checked against the known facts about its files.

    Raises DataMissing, DataDamaged.
    """
    wanted = data_set(task)
    copy = folder.open(wanted)
    rows = [(*row, file.file.split) for file in copy.files for row in parse_rows(wanted, file)]
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
        classes=tuple(wanted.classes.values()),
    )


def parse_rows(wanted: DataSet, copy: Found) -> Iterator[Row]:
    """Yield the rows of a file. Raises DataDamaged for a row without a label of the set."""
    labels = list(wanted.classes)
    separator = re.compile(f"[{re.escape(wanted.separators)}]")
    text = copy.text.replace("\r\n", "\n").replace("\r", "\n")  # as Python's text mode
    lines = text.removesuffix("\n").split("\n")
    header = copy.file.header
    for number, line in enumerate(lines[header:], start=1 + header):
        if "label" not in wanted.cells:
            yield (single_spaced(line),), labels.index(copy.file.role)
            continue
        cells = separator.split(line, maxsplit=len(wanted.cells) - 1)
        texts = []
        label = ""
        for kind, cell in zip(wanted.cells, cells, strict=False):
            if kind == "text":
                texts.append(single_spaced(cell))  # quotes are text
            if kind == "label":
                label = cell.strip()
        if len(cells) < len(wanted.cells) or label not in labels:
            raise DataDamaged(
                f"{copy.file.name}: line {number}: '{line[:40]}' is not "
                f"{', '.join(wanted.cells)} with a label of {', '.join(labels)}"
            )
        yield tuple(texts), labels.index(label)
