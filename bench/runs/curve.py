"""What a training leaves beside the record: its curve, read without torch, and the name of the batch that failed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CURVE = "curve.jsonl"
FAILED_BATCH = "failed-batch.tsv"  # the rows on which the loss became no number


def read_curve(folder: Path) -> list[dict[str, Any]]:
    """The entries of ``folder/curve.jsonl``, by step; a line that a crash cut short is left out. Empty where there is none."""
    try:
        lines = (folder / CURVE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and _is_number(entry.get("step")):
            entries.append(entry)
    return sorted(entries, key=lambda entry: entry["step"])


def series(curve: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float]]:
    """(step, value) of one key, where it was written and is a number."""
    return [(float(entry["step"]), float(entry[key])) for entry in curve if _is_number(entry.get(key))]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and math.isfinite(value)
