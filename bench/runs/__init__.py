"""Run records and the folder that holds them."""

from __future__ import annotations

from bench.base.package import make_callable
from bench.runs.record import Cost, Provenance, RecipeValue, RunRecord, Score, Training
from bench.runs.store import FOREIGN, RunsFolder, default_runs

__all__ = [
    "FOREIGN",
    "Cost",
    "Provenance",
    "RecipeValue",
    "RunRecord",
    "RunsFolder",
    "Score",
    "Training",
    "default_runs",
]

make_callable(__name__)
