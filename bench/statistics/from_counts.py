"""How far a score may move with other items of the same kind, told from its value and the number of items alone.

For where there are no predictions at hand, or too many runs to read them; ``bench.statistics.intervals`` is the better answer elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Z = 1.959963984540054  # of a normal distribution, 2.5 % on each side
CORRELATIONS = ("spearman", "spearman-bootstrap", "cosine_spearman")
PROPORTIONS = ("accuracy", "clustering-accuracy")


def standard_error(metric: str, value: float, n: int) -> float | None:
    """Of one score, in points (x 100); None for a metric of which nothing is known, or for too few items.

    Rank correlations: Bonett and Wright 2000 (Psychometrika 65), sqrt((1 + r^2 / 2) / (n - 3)) on Fisher's scale, brought back to r by
    its slope there. Accuracies: that of a proportion; of a mean over clusterings or draws of the same items it is a little too much.
    """
    share = value / 100
    if metric in CORRELATIONS and n > 3 and abs(share) <= 1:
        return 100 * (1 - share**2) * math.sqrt((1 + share**2 / 2) / (n - 3))
    if metric in PROPORTIONS and n > 0 and 0 <= share <= 1:
        return 100 * math.sqrt(share * (1 - share) / n)
    return None


def half_width(errors: Sequence[float]) -> float:
    """Half of the 95 % interval of the plain mean of independent scores with these standard errors. Raises ValueError for none."""
    if not errors:
        raise ValueError("no scores: their mean is undefined")
    return Z * math.sqrt(math.fsum(error**2 for error in errors)) / len(errors)
