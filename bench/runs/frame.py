"""Runs as tidy rows, one for each run and score: what a table, a figure or a data frame is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.runs.run import Run

FACTS = ("run", "name", "method", "variant", "setting", "backbone", "seed", "status")
SCORE = ("suite", "task", "protocol", "text", "metric", "value", "std", "n")
COST = ("trainable_parameters", "train_seconds", "peak_memory_bytes", "encode_sentences_per_second")
COLUMNS = (*FACTS, *SCORE, *COST)


def frame(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """One mapping with the keys of ``COLUMNS`` for each run and score, in the runs' order. ``value`` has the papers' scale: correlation and
    accuracy x 100; what was not recorded is None."""
    rows = []
    for run in runs:
        record = run.record
        facts = {"run": record.run_id, "name": record.backbone_name}
        facts |= {key: getattr(record, key) for key in FACTS[2:]}
        cost = {key: getattr(record.cost, key) for key in COST}
        rows += [
            facts | {key: getattr(score, key) for key in SCORE} | cost for score in record.scores
        ]
    return rows
