"""The record of a run, its predictions, and their folder: written whole, checked when read.

Not here: how a score is computed, or which runs may be compared.
"""

from __future__ import annotations

from bench.records.names import FOREIGN
from bench.records.record import (
    BackboneUsed,
    Checkout,
    Code,
    CorpusUsed,
    Cost,
    HowExecuted,
    Provenance,
    RecipeValue,
    RunRecord,
    Score,
    ScoreKey,
    Training,
)
from bench.records.run import Run
from bench.records.store import RunsFolder, default_runs

__all__ = [
    "FOREIGN",
    "BackboneUsed",
    "Checkout",
    "Code",
    "CorpusUsed",
    "Cost",
    "HowExecuted",
    "Provenance",
    "RecipeValue",
    "Run",
    "RunRecord",
    "RunsFolder",
    "Score",
    "ScoreKey",
    "Training",
    "default_runs",
]
