"""How tests evaluate on the built-in captions, and their score without the code under test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

CHECK: dict[str, Any] = {"suites": ["check"], "progress": False, "device": "cpu"}
"""Options of ``bench.evaluate``."""
SUITE = ("--suite", "check", "--device", "cpu")
"""The same as options of a command."""


def captions_by_hand(encode: Callable[[list[str]], np.ndarray]) -> float:
    """Return Spearman x 100 of cosines on the built-in captions, by scipy."""
    from scipy.stats import spearmanr

    from bench.data.sets import DataFolder
    from bench.score.suites import suite

    (task,) = suite("check").tasks
    loaded: Any = task.load(DataFolder(None, offline=True))
    data = loaded.data
    first, second, gold = (list(column) for column in (data.sentences1, data.sentences2, data.gold))
    a, b = encode(first).astype(float), encode(second).astype(float)
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return float(100 * spearmanr(cosines, gold).statistic)
