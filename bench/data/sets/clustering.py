"""Readers of the eight short-text clustering sets of SCCL: ``DIR/clustering/NAME.tsv``, a label, a tab and a text per line.

Two text forms are known. "sccl" is the copy that SCCL and PairSupCon point to, all eight sets; "original" is what the sets' own
authors published, where that differs: the three GoogleNews sets (in the sccl copy the letters lt and gt, and more stop words, were
cut out of the texts; T and S have one item less) and StackOverflow (45 titles lost their quotation marks). Both forms are
recognised by content in either place, ``NAME.tsv`` or ``variants/``. What one form holds, the other does not: they are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, DataDamaged, DataMissing, UnknownName
from bench.data.sets.folder import DataFolder, other_form
from bench.data.sets.manifest import ANY, DataSet, cells, data_set, data_sets

if TYPE_CHECKING:
    import numpy as np

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
"""What ``--text`` means here: the default is what the papers scored, "raw" what the sets' own authors published."""


@dataclass(frozen=True)
class ClassedTexts:
    """Texts and their classes, in the order of the data."""

    name: str
    texts: list[str]
    """Without white space at the ends; an empty text is a full stop, as in the papers' loaders."""
    labels: np.ndarray
    """(N,) int64, as the file gives them: not from 0, nor without gaps."""
    form: str
    """"sccl", "original" or "other-<hash>"."""
    sha256: str

    def __len__(self) -> int:
        return len(self.texts)


def read_clustering(folder: DataFolder, task: str, *, text: str = "tokenised") -> ClassedTexts:
    """One set, checked against what is known of its file.

    ``text``: "tokenised" (the sccl form), "raw" (the original form of the sets that have one, the only form of the others),
    "any", or a form's own name. Raises DataMissing, DataDamaged; UnknownName for a set that does not exist.
    """
    if task not in CLUSTERING_TASKS:
        raise UnknownName("clustering set", task, CLUSTERING_TASKS)
    asked = ROLES.get(text, text)
    known = {SCCL: data_set(task)}
    if f"{task}-{ORIGINAL}" in data_sets():
        known[ORIGINAL] = data_set(f"{task}-{ORIGINAL}")
    elif asked == ORIGINAL:
        asked = SCCL
    problems: list[BenchError] = []
    there: dict[str, str] = {}
    for form, wanted in sorted(known.items(), key=lambda item: item[0] != asked):
        for place in _places(wanted, known):
            try:
                found = _read(folder, task, form, place)
            except (DataMissing, DataDamaged) as problem:
                problems.append(problem)
                continue
            if asked in (ANY, found.form):
                return found
            there.setdefault(found.form, place.files[0].path)
    if there:
        form, path = next(iter(there.items()))
        use = {value: key for key, value in ROLES.items()}.get(form, ANY)
        raise other_form(task, asked, f"{form} in {path}", use, known.get(asked, known[SCCL]).get)
    raise next((error for error in problems if isinstance(error, DataDamaged)), problems[0])


def _places(wanted: DataSet, known: dict[str, DataSet]) -> Iterator[DataSet]:
    """The form's set where it belongs, then where another form belongs: a file may have any form's content."""
    yield wanted
    for other in known.values():
        if other is not wanted:
            file = replace(wanted.files[0], path=other.files[0].path)
            yield replace(wanted, files=(file,), homes=other.homes)


def _read(folder: DataFolder, task: str, form: str, wanted: DataSet) -> ClassedTexts:
    import numpy as np

    copy = folder.open(wanted)
    found_file = copy.files[0]
    labels, texts = [], []
    for number, (label, text) in enumerate(cells(found_file.text or "", found_file.file), start=1):
        if not label.strip().isdecimal():
            raise DataDamaged(f"{task}: line {number}: '{label[:40]}' is no label, in {found_file.path}", f"to get it: {wanted.get}")
        labels.append(int(label))
        texts.append(text.strip() or ".")
    return ClassedTexts(
        name=task,
        texts=texts,
        labels=np.array(labels, dtype=np.int64),
        form=form if copy.form == ANY else copy.form,
        sha256=copy.sha256,
    )
