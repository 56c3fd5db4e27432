"""A printed table with our scores: as a table, and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.base.grid import Grid, GridColumn, csv_lines, grid
from bench.base.text import list_names
from bench.compare.beside_paper import RowBeside
from bench.compare.consistency import NOT_TESTED, verdict_text
from bench.compare.printed import Reproduced
from bench.papers import PaperPart

NAMES = ("label", "setting", "backbone", "task", "metric", "value", "std", "runs")
"""The fields of a printed value that its line of CSV has."""


def beside_grid(part: PaperPart, beside: Sequence[RowBeside]) -> Grid:
    """Lay out a line for each printed value of the rows that we have, and name the others.

    The reasons why values are not tested are below the lines, each once.
    """
    lines = []
    ours: dict[str, None] = {}
    without: dict[str, None] = {}
    untested: dict[str, dict[str, None]] = {}
    scored = [row for row in beside if row.is_scored]
    labels = Counter(row.row.first.label for row in scored)
    for row in beside:
        first = row.row.first
        if not row.is_scored:
            without[f"{first.label} ({first.setting}, {first.backbone})"] = None
            continue
        name = first.label
        if labels[name] > 1:
            name += f" ({first.setting})"
        ours[f"{name}: {row.ours}"] = None
        for cell in row.cells:
            verdict = _verdict(cell)
            if cell.reason:
                verdict = NOT_TESTED
                untested.setdefault(cell.reason, {})[name] = None
            lines.append((name, cell.printed.task, cell.printed.shown, _mean(cell), verdict))
    notes = list(ours)
    for reason, names in untested.items():
        rows = "all rows" if len(names) == len(scored) else list_names(names, most=10)
        notes.append(f"{NOT_TESTED}, {reason}: {rows}")
    if without:
        notes.append(f"not scored here: {list_names(without, most=10)}")
    notes += [
        "ours is within if the published value lies in our 95 % interval for the mean of as many "
        "runs as the paper had; else below or above it",
        "of 20 such intervals, one misses by chance",
    ]
    columns = (
        GridColumn("published row", wrap=14),
        "task",
        GridColumn("published", right=True, wrap=8),
        GridColumn("ours", right=True),
        GridColumn("ours is", wrap=16),
    )
    return grid(columns, lines, title=f"{part.name}: {part.shows}", notes=notes)


def _mean(cell: Reproduced) -> str:
    return "" if cell.mean is None else f"{cell.mean:.{cell.decimals}f}"


def _verdict(cell: Reproduced) -> str:
    return verdict_text(cell, cell.printed)


def beside_data(beside: Sequence[RowBeside]) -> list[dict[str, Any]]:
    """Return an object for each printed value: the value, ours, the verdict and its interval."""
    return [
        {**asdict(cell), "ours": row.ours, "sentence": _verdict(cell)}
        for row in beside
        for cell in row.cells
    ]


def beside_csv(beside: Sequence[RowBeside]) -> str:
    """Write a line for each printed value."""
    columns = (*NAMES, "ours", "seeds", "verdict", "expected", "half", "reason", "our_runs")
    lines = []
    for row in beside:
        for cell in row.cells:
            facts = [getattr(cell.printed, name) for name in NAMES]
            verdict = [cell.verdict, cell.expected, cell.half, cell.reason, " ".join(cell.runs)]
            lines.append([*facts, cell.mean, len(cell.seeds), *verdict])
    return csv_lines(columns, lines)
