"""The numbers that quoted papers print themselves: of papers with tables here, and of
``quoted.tsv``, a row per line, for others."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bench.papers import WEIGHTED, ReferenceResult, read_scores, read_tsv, results

SOURCES_FILE = Path(__file__).parent / "quoted.tsv"
KEY = ("source", "metric", "setting", "method", "backbone", "variant")


def in_source(cell: ReferenceResult) -> tuple[str, float] | None:
    """Return (table, value) of a copied cell in the paper that it was copied from; None if that
    table is not here.
    """
    return _cells().get((*(getattr(cell, name) for name in KEY), cell.task))


SOURCES = {
    "Gao et al. 2021": "simcse",
    "Liu et al. 2023": "rankcse",
    "Wu et al. 2022 (PCL)": "pcl",
}
"""The papers with tables here, as others name them."""


@cache
def _cells() -> dict[tuple[str, ...], tuple[str, float]]:
    found: dict[tuple[str, ...], tuple[str, float]] = {}
    for source, paper in SOURCES.items():
        for cell in results(paper=paper):
            if cell.protocol != WEIGHTED:
                names = [getattr(cell, name) for name in KEY[1:]]
                # the first of two rows counts
                found.setdefault((source, *names, cell.task), (cell.table, cell.value))
    for row in read_tsv(SOURCES_FILE):
        names = [row[name] for name in KEY]
        for task, _, value, _ in read_scores(row):
            found[(*names, task)] = (row["table"], value)
    return found
