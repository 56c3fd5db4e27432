"""The clustering sets: ``DIR/clustering/NAME.tsv``, a label, a tab and a text per line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.base.errors import UnknownName
from bench.data.sets import (
    ANY,
    DataFolder,
    cells,
    data_set,
    data_sets,
    other_form,
)

# Two text forms are known. "sccl" is the copy that SCCL and PairSupCon point to, all eight sets;
# "original" is the version that the sets' own authors published, if it differs: the three
# GoogleNews sets (in the sccl copy the letters lt and gt, and more stop words, were cut out of the
# texts; T and S have one item less) and StackOverflow (45 titles lost their quotation marks). Both
# forms are recognised by content in either place, ``NAME.tsv`` or ``variants/``. What one form
# holds, the other does not: they are never mixed.

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
SCCL, ORIGINAL = "sccl", "original"
ROLES = {"tokenised": SCCL, "raw": ORIGINAL}
"""The meaning of ``--text`` here: the default is the text that the papers scored, "raw" the text
that the sets' own authors published."""


@dataclass(frozen=True)
class ClassedTexts:
    """Texts and their classes, in the order of the data."""

    name: str
    texts: list[str]
    """Without white space at the ends; an empty text is a full stop, as in the papers' loaders."""
    labels: np.ndarray
    """(N,) int64, as the file gives them: not always from 0, and sometimes with gaps."""
    form: str
    """"sccl", "original" or "other-<hash>"."""
    sha256: str

    def __len__(self) -> int:
        return len(self.texts)


def read_clustering(folder: DataFolder, task: str, *, text: str = "tokenised") -> ClassedTexts:
    """Return one set, checked against the known facts about its file.

    ``text``: "tokenised" (the sccl form), "raw" (the original form of the sets that have one, the
    only form of the others), "any", or a form's own name. Raises DataMissing, DataDamaged;
    UnknownName for a set that does not exist.
    """
    if task not in CLUSTERING_TASKS:
        raise UnknownName("clustering set", task, CLUSTERING_TASKS)
    requested, original = ROLES.get(text, text), f"{task}-{ORIGINAL}"
    form = ORIGINAL if requested == ORIGINAL and original in data_sets() else SCCL
    wanted = data_set(original if form == ORIGINAL else task)
    copy = folder.open(wanted)
    (file,) = copy.files
    recognised = form if copy.form == ANY else copy.form
    if requested not in (ANY, recognised) and not (
        requested in ROLES.values() and recognised == form
    ):
        raise other_form(task, requested, f"{recognised} in {file.path}", ANY, wanted.get)
    rows = cells(file.text, file.file)
    return ClassedTexts(
        name=task,
        texts=[text.strip() or "." for _, text in rows],
        labels=np.array([int(label) for label, _ in rows], dtype=np.int64),
        form=recognised,
        sha256=copy.sha256,
    )
