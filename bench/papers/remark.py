"""A remark on a printed cell or row, for readers of the print."""

from __future__ import annotations

from dataclasses import dataclass

from bench.base.findings import DIFFERS, Finding
from bench.papers import (
    ReferenceResult,
)

KINDS = {
    "average": "averages that do not follow from their own cells",
    "impossible": "accuracies that no number of right answers gives",
    "differs": "numbers that other tables report differently",
    "same": "the same numbers under another method's name",
    "claim": "claims in a paper's text that its numbers do not support",
    "quoted": "quoted cells that differ from their source",
    "best": "the best of several runs, next to numbers that are not",
    "protocol": "cells whose protocol, text or training text differs from their neighbours'",
    "copied": "rows that are copied from another paper",
}


@dataclass(frozen=True, kw_only=True)
class Remark(Finding):
    """Something that a reader of one printed cell, or row, should know: ``kind`` is a key of KINDS,
    ``what`` the place of the print, ``why`` the remark."""

    cell: ReferenceResult
    """The printed cell, or the first of the row."""
    task: str
    """"" for the whole row."""


ROW = ("paper", "table", "label", "setting", "method", "backbone", "variant", "metric")
"""The fields that name a row: the fields of ``line_of``, and the metric."""


def make_remark(kind: str, cell: ReferenceResult, text: str, *, row: bool = False) -> Remark:
    return Remark(kind, name_cell(cell), DIFFERS, text, cell=cell, task="" if row else cell.task)


def as_data(remark: Remark) -> dict[str, str]:
    """Return a remark as JSON data: the row's names, the task, the text."""
    return {
        "kind": remark.kind,
        **{name: getattr(remark.cell, name) for name in ROW},
        "task": remark.task,
        "text": remark.why,
    }


def name_cell(cell: ReferenceResult) -> str:
    """Name the place of a cell: "dcpcse table 1 (DCPCSE-BERT-base)"."""
    return f"{cell.paper} table {cell.table} ({cell.label})"


def format_printed(value: float, metric: str = "") -> str:
    """Format a value with as many decimals as the metric's tables print."""
    return f"{value:.{DECIMALS.get(metric, 2)}f}"


DECIMALS = {
    "spearman-bootstrap": 1,
    "spearman-dev": 1,
    "accuracy-dev": 1,
    "alignment": 3,
    "uniformity": 3,
}
"""Decimals as printed; 2 for all other metrics."""
