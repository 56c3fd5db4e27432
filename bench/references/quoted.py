"""The numbers that quoted papers print themselves: of papers with tables here, and of
``sources.tsv``, one row a line, for others."""

from __future__ import annotations

from functools import cache

from bench.references import (
    HERE,
    WEIGHTED,
    ReferenceResult,
    read_rows,
    read_scores,
    results,
)

SOURCES_FILE = HERE / "sources.tsv"
KEY = ("source", "metric", "setting", "method", "backbone", "variant")


def in_source(cell: ReferenceResult) -> tuple[str, float] | None:
    """(table, value) of a copied cell in the paper that it was copied from; None if that table is
    not here."""
    return _cells().get((*(getattr(cell, name) for name in KEY), cell.task))


SOURCES = {
    "Gao et al. 2021": "simcse",
    "Liu et al. 2023": "rankcse",
    "Wu et al. 2022 (PCL)": "pcl",
}  # the papers whose own tables are here, as others name them


@cache
def _cells() -> dict[tuple[str, ...], tuple[str, float]]:
    return {
        (source, *(getattr(cell, name) for name in KEY[1:]), cell.task): (cell.table, cell.value)
        for source, paper in SOURCES.items()
        for cell in reversed(results(paper=paper))  # of two rows the first stands
        if cell.protocol != WEIGHTED
    } | {
        (*(row[name] for name in KEY), task): (row["table"], value)
        for row in read_rows(SOURCES_FILE)
        for task, _, value, _ in read_scores(row, SOURCES_FILE)
    }
