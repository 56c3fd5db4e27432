"""Runs as tidy rows: one mapping per run and score, for CSV files and data frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.records.run import Run

FACTS = ("method", "variant", "setting", "backbone", "seed", "status")
SCORE = ("suite", "task", "protocol", "metric", "value", "std", "n")
COST = ("trainable_parameters", "train_seconds", "peak_memory_bytes", "encode_sentences_per_second")
COLUMNS = ("run", "name", *FACTS, *SCORE, *COST)


def tidy_rows(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Return one mapping with the keys of ``COLUMNS`` for each run and score, in the runs' order.

    ``value`` has the papers' scale: correlation and accuracy x 100; a value that was not recorded
    is None.
    """
    rows = []
    for record, _ in runs:
        for score in record.scores:
            row: dict[str, Any] = {"run": record.run_id, "name": record.backbone_name}
            for keys, source in ((FACTS, record), (SCORE, score), (COST, record.cost)):
                for key in keys:
                    row[key] = getattr(source, key)
            rows.append(row)
    return rows
