"""The names of files in a run's folder, and of the data and predictions of its tasks."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

RECORD, LOCK = "run.json", ".lock"
OWN_DATA = "own"
"""The suite of a user's own data files."""
FOREIGN = ("mteb", OWN_DATA)
"""Suites with task names that others chose: mteb has an STS12, too."""
CHECKPOINT = "checkpoint"
CURVE = "curve.jsonl"
PLAN = "plan.toml"
"""What makes the run again: ``bench run --plan``."""


def data_key(task: str, text: str | None, suite: str = "") -> str:
    """Return a set's name in ``provenance.data``: "STS12", "STS12@raw", "mteb/STS12"; its
    predictions have the same name.
    """
    prefix = f"{suite}/" if suite in FOREIGN else ""
    return f"{prefix}{task}" if text in (None, "tokenised") else f"{prefix}{task}@{text}"


@lru_cache(maxsize=1 << 10)  # thousands of runs have the same few names
def predictions_name(task: str, text: str | None, suite: str = "") -> str:
    """Return the predictions of a task in a run's folder: "predictions/STS12@raw.npz"."""
    prefix = f"{suite}/" if suite in FOREIGN else ""
    return (
        f"predictions/{prefix}{quote(data_key(task, text), safe=' @', errors='surrogatepass')}.npz"
    )
