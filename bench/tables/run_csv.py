"""All scores of one run as CSV: one line per task and per sub-dataset, numbers in full."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from bench.runs.record import RunRecord, Score
from bench.tables.words import csv_text

HEADING = ("suite", "task", "subset", "protocol", "text", "metric", "value", "std", "n")


def scores_csv(record: RunRecord) -> str:
    """``subset`` is empty in the line of the task itself. What was not recorded is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADING)
    for one in record.scores:
        for subset, value, std, n in _lines(one):
            cells = (one.suite, one.task, subset, one.protocol, one.text, one.metric, value, std, n)
            writer.writerow([_cell(cell) for cell in cells])
    return out.getvalue()


def _lines(one: Score) -> Iterator[tuple[str, float, float | None, int | None]]:
    yield "", one.value, one.std, one.n
    subsets = one.detail.get("subsets")
    for name, part in subsets.items() if isinstance(subsets, Mapping) else ():
        value = part.get(one.metric) if isinstance(part, Mapping) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            n = part.get("n")
            yield str(name), value, None, n if isinstance(n, int) and not isinstance(n, bool) else None


def _cell(value: Any) -> str:
    return "" if value is None else csv_text(value) if isinstance(value, str) else repr(value)
