"""The clustering sets: ``DIR/clustering/NAME.tsv``, a label, a tab and a text per line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.data.sets import (
    RAW,
    TOKENISED,
    DataFolder,
    cells,
    data_set,
    data_sets,
)

# Two texts are known. "sccl" is the copy that SCCL and PairSupCon point to, all eight sets;
# "original" is the version that the sets' own authors published, if it differs: the three
# GoogleNews sets (in the sccl copy the letters lt and gt, and more stop words, were cut out of the
# texts; T and S have one item less) and StackOverflow (45 titles lost their quotation marks).

CLUSTERING_TASKS = (
    "AgNews",
    "SearchSnippets",
    "StackOverflow",
    "Biomedical",
    "Tweet",
    "GoogleNews-TS",
    "GoogleNews-T",
    "GoogleNews-S",
)
ORIGINAL = "original"
RAW_TASKS = tuple(name for name in CLUSTERING_TASKS if f"{name}-{ORIGINAL}" in data_sets())
"""The sets with another text by their own authors than the one that the papers scored."""


@dataclass(frozen=True)
class ClassedTexts:
    """Texts and their classes, in the order of the data."""

    name: str
    texts: list[str]
    """Without white space at the ends; an empty text is a full stop, as in the papers' loaders."""
    labels: np.ndarray
    """(N,) int64, as the file gives them: not always from 0, and sometimes with gaps."""
    sha256: str

    def __len__(self) -> int:
        return len(self.texts)


def read_clustering(folder: DataFolder, task: str, *, text: str = TOKENISED) -> ClassedTexts:
    """Return one set, checked against the known facts about its file.

    ``text``: "tokenised", the text that the papers scored, or "raw", the one that the set's own
    authors published. Raises DataMissing, DataDamaged; UnknownName for a set that does not exist,
    or that has one text only.
    """
    copy = folder.open(data_set(f"{task}-{ORIGINAL}" if text == RAW else task))
    (file,) = copy.files
    rows = cells(file.text, file.file)
    return ClassedTexts(
        name=task,
        texts=[text.strip() or "." for _, text in rows],
        labels=np.array([int(label) for label, _ in rows], dtype=np.int64),
        sha256=copy.sha256,
    )
