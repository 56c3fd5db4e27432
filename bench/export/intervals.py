"""How far a rank correlation would move with other items: a percentile interval from resampled pairs, for the model card."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

DRAWS = 500


def spearman_interval(predicted: np.ndarray, gold: np.ndarray, *, draws: int = DRAWS, seed: int = 0) -> tuple[float, float]:
    """95 % interval of Spearman x 100 of two (N,) arrays: pairs drawn with replacement, ranked anew, 2.5 and 97.5 percent points.

    Draws in which one side is constant are left out. Raises ValueError where no draw is left.
    """
    import numpy as np

    from bench.metrics.correlation import spearman

    rng = np.random.default_rng(seed)
    values = []
    for _ in range(draws):
        rows = rng.integers(len(gold), size=len(gold))
        if np.ptp(gold[rows]) and np.ptp(predicted[rows]):
            values.append(spearman(predicted[rows], gold[rows]))
    if not values:
        raise ValueError("one side is constant in every draw")
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
