"""What the quoted papers print themselves, for the rows whose table could be read: ``sources.tsv``, one row a line."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from bench.errors import BenchError
from bench.references import ReferenceResult

FILE = Path(__file__).with_name("sources.tsv")
KEY = ("source", "metric", "setting", "method", "backbone", "variant")


def in_source(cell: ReferenceResult) -> tuple[str, float] | None:
    """(table, value) of a copied cell in the paper that it was copied from; None where that table is not at hand."""
    return _cells().get((*(getattr(cell, name) for name in KEY), cell.task))


@cache
def _cells() -> dict[tuple[str, ...], tuple[str, float]]:
    cells: dict[tuple[str, ...], tuple[str, float]] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for score in row["scores"].split(" "):
                try:
                    task, value = score.split("=")
                    cells[(*(row[name] for name in KEY), task)] = row["table"], float(value)
                except ValueError:
                    raise BenchError(f"{FILE}: '{score}' in the row '{row['label']}' is no score") from None
    return cells
