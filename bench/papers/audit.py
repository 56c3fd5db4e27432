"""The remarks on the printed tables that follow from their own cells: computed, never typed.

A remark belongs to a cell, or to a whole row if ``task`` is empty; pages and ``bench references
--audit`` show the same ones.
"""

from __future__ import annotations

from functools import cache

from bench.papers import (
    ReferenceResult,
    line_of,
    rows,
)
from bench.papers.checks import CHECKS
from bench.papers.remark import Remark


@cache
def audit() -> tuple[Remark, ...]:
    """Return every remark, kind after kind, in the papers' order. ``copied`` rows are among
    them.
    """
    every = rows()
    return tuple(remark for check in CHECKS for remark in check(every))


def remarks(result: ReferenceResult) -> tuple[Remark, ...]:
    """Return the remarks on a printed cell, and on its whole row."""
    return tuple(
        remark
        for remark in _by_row().get((*line_of(result), result.metric), ())
        if remark.task in ("", result.task)
    )


@cache
def _by_row() -> dict[tuple[str, ...], list[Remark]]:
    groups: dict[tuple[str, ...], list[Remark]] = {}
    for remark in audit():
        groups.setdefault((*line_of(remark.cell), remark.cell.metric), []).append(remark)
    return groups
