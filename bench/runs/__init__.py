"""Run records and the folder that holds them."""

from __future__ import annotations

from bench.runs.record import Cost, Provenance, RecipeValue, RunRecord, Score, Training
from bench.runs.store import RunsFolder, default_runs

__all__ = ["Cost", "Provenance", "RecipeValue", "RunRecord", "RunsFolder", "Score", "Training", "default_runs"]
