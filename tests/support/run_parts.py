"""The parts of a run's folder that are the same whatever happened on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def run_parts(folder: Path) -> dict[str, Any]:
    """Read checkpoint, predictions, the curve without speeds, the record without times, names of
    files.
    """
    curve = [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]
    record = json.loads((folder / "run.json").read_text())
    return {
        "checkpoint": {p.name: p.read_bytes() for p in sorted((folder / "checkpoint").iterdir())},
        "curve": [
            {k: v for k, v in entry.items() if k != "sentences_per_second"} for entry in curve
        ],
        "record": {
            key: record[key]
            for key in ("run_id", "fingerprint", "status", "error", "scores", "training", "recipe")
        },
        "predictions": (folder / "predictions" / "captions.npz").read_bytes(),
        "files": sorted(
            p.name for p in folder.iterdir() if not p.name.endswith(".tmp")
        ),  # these go after an hour
    }
