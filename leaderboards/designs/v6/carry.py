"""Copy the runs of version 6 into the folder of the runs that are still to come, with their
predictions::

    python leaderboards/designs/v6/carry.py RUNS

Version 7 has both. This file is deleted when that version is published.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

from bench.records.record import read_record
from bench.records.run import Run

V6 = Path(__file__).resolve().parents[2] / "v6"


def carry(folder: Path, runs: Path) -> None:
    """Copy one run: its record, plan and curve, and each score's predictions as a file."""
    run = Run(read_record(folder / "run.json"), folder)
    copied = Run(run.record, runs / folder.name)
    copied.folder.mkdir(parents=True)
    for name in ("run.json", "plan.toml", "curve.jsonl"):
        if (folder / name).exists():
            shutil.copy(folder / name, copied.folder)
    for score in run.scores:
        if score.predictions_sha256 is None:  # an average
            continue
        file = copied.predictions_file(score.key)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, allow_pickle=False, **run.predictions(score.key))


if __name__ == "__main__":
    runs = Path(sys.argv[1])
    for record in sorted(V6.glob("runs/*/run.json")):
        if not (runs / record.parent.name).exists():
            carry(record.parent, runs)
