"""The curve of a training, ``curve.jsonl``: one JSON object per line, with its step."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.base.errors import DataDamaged
from bench.base.reading import CURVE_BYTES, NotPlainFile, read_plain_file
from bench.records.names import CURVE


def read_curve(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of ``folder/curve.jsonl``, by step, without lines that a crash cut short.

    Empty without a curve.

    Raises DataDamaged, naming the file, for a link, a pipe, a device, or a file too large for a
    curve.
    """
    file = folder / CURVE
    try:
        lines = read_plain_file(file, CURVE_BYTES).decode("utf-8", "replace").splitlines()
    except NotPlainFile as error:
        raise DataDamaged(f"{file} is not a curve: {error.strerror}", "remove it") from None
    except OSError:
        return []
    entries = []
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict) and _is_number(entry.get("step")):
                entries.append(entry)
    return sorted(entries, key=lambda entry: entry["step"])


def curve_series(curve: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float]]:
    """Return (step, value) of every entry with a number for the key."""
    return [
        (float(entry["step"]), float(entry[key])) for entry in curve if _is_number(entry.get(key))
    ]


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    )
