"""Copy version 5's 162 runs of 100 steps into the folder of v6's runs, with their predictions::

    python leaderboards/designs/v6/carry.py RUNS

They become the tables "at 100 steps" of version 6. It is deleted with the archives beside it when
that version is published: then the runs are in its folder.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

from bench.records.record import read_record
from bench.records.run import Run

V5 = Path(__file__).resolve().parents[2] / "v5"
STEPS = 100


def carry(folder: Path, runs: Path) -> None:
    """Copy one run: its record, plan and curve, and each score's predictions as a file."""
    run = Run(read_record(folder / "run.json"), folder)
    copied = Run(run.record, runs / folder.name)
    copied.folder.mkdir(parents=True)
    for name in ("run.json", "plan.toml", "curve.jsonl"):
        shutil.copy(folder / name, copied.folder)
    for score in run.scores:
        if score.predictions_sha256 is None:  # an average
            continue
        file = copied.predictions_file(score.key)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, allow_pickle=False, **run.predictions(score.key))


if __name__ == "__main__":
    runs = Path(sys.argv[1])
    for record in sorted(V5.glob("runs/*/run.json")):
        training = read_record(record).training
        if training is not None and training.steps == STEPS:
            carry(record.parent, runs)
