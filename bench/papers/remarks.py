"""Remarks on printed cells and rows, for readers of the print: what does not fit in the tables.

``remarks.tsv`` of a paper's folder has a line for each. All are computed from the printed numbers:
``python tools/make_remarks.py`` writes the files, and a test computes them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from bench.papers.printed import ReferenceResult, line_of
from bench.papers.reading import read_every

KINDS = {
    "average": "averages that do not follow from their own cells",
    "impossible": "accuracies that no number of right answers gives",
    "differs": "numbers that other tables give differently",
    "same": "the same numbers under another method's name",
    "claim": "claims in a paper's text that its numbers do not support",
    "quoted": "quoted cells that differ from their source",
    "best": "the best of several runs, next to numbers that are not",
    "protocol": "cells whose protocol, text or training text differs from their neighbours'",
}


@dataclass(frozen=True)
class Remark:
    """Something that a reader of one printed cell, or row, should know.

    ``kind`` is a key of KINDS; the other fields but ``text`` name the row, as in ReferenceResult.
    """

    paper: str
    kind: str
    table: str
    label: str
    setting: str
    method: str
    backbone: str
    variant: str
    metric: str
    task: str  # "" for the whole row
    text: str

    @property
    def row(self) -> tuple[str, ...]:
        """The names of the printed row: the fields of ``line_of``, and the metric."""
        place = (self.paper, self.table, self.label, self.setting, self.method)
        return (*place, self.backbone, self.variant, self.metric)


@cache
def all_remarks() -> tuple[Remark, ...]:
    """Return every remark, in the papers' order."""
    return tuple(Remark(**row) for row in read_every("remarks.tsv"))


def remarks(result: ReferenceResult) -> tuple[Remark, ...]:
    """Return the remarks on a printed cell, and on its whole row."""
    of_row = _by_row().get((*line_of(result), result.metric), ())
    return tuple(remark for remark in of_row if remark.task in ("", result.task))


@cache
def _by_row() -> dict[tuple[str, ...], list[Remark]]:
    groups: dict[tuple[str, ...], list[Remark]] = {}
    for remark in all_remarks():
        groups.setdefault(remark.row, []).append(remark)
    return groups
