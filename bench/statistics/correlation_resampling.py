"""Spearman's correlation under many drawings of the same items at once: resampling without sorting anything again.

Drawing an item c times is giving it the weight c. Both sides are sorted once; then the mean rank of a value is the weight below
it plus half of its own, a running sum over the sorted items, and one pass over the items serves all draws of a block: each row is a
vector over draws. Ties are exact, those of the data and those that drawing makes.

With W- and W+ the weight below a value and up to it, and n all weight, W- + W+ - n is twice its centred mean rank. For groups of
equal values of weight g the weighted sum of its squares is (n^3 - sum g^3) / 3, so that only the product of the sides needs a pass.

Legend: N items, G distinct gold values, B draws of a block, T tied items.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.statistics.cells import Floats

Rows = NDArray[np.int64]
CHUNK = 64  # rows that are cubed at once
MOST_IN_INT32 = 32767
"""Items whose sums, at most 2 n^2, fit into 32 bits: half the memory to move, twice the speed."""


class Gold:
    """The gold values of a task, sorted once. ``weight_N``: of items that are not all equally heavy."""

    def __init__(self, gold_N: ArrayLike, weight_N: Floats | None = None) -> None:
        values_N = np.asarray(gold_N, dtype=np.float64)
        self.order: Rows = np.argsort(values_N, kind="stable")
        """Item of every row of a block."""
        self.place: Rows = np.empty_like(self.order)
        """Row of every item."""
        self.place[self.order] = np.arange(len(self.order))
        self.bounds = _groups(values_N[self.order])
        self.group_N: Rows = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))
        """Group of equal gold values of every row."""
        self.weight_N = None if weight_N is None else weight_N[self.order]
        """Of every row."""
        whole = weight_N is None and len(values_N) <= MOST_IN_INT32
        self.dtype: type[np.int32] | type[np.float64] = np.int32 if whole else np.float64


class Run:
    """The predictions of one run, sorted once: rows of a block in their order, and where groups of equal values begin and end."""

    def __init__(self, prediction_N: ArrayLike, gold: Gold) -> None:
        values_N = np.asarray(prediction_N, dtype=np.float64)
        order_N = np.argsort(values_N, kind="stable")
        self.rows: list[int] = gold.place[order_N].tolist()
        self.bounds: list[int] = _groups(values_N[order_N]).tolist()


class Block:
    """How often every item was drawn, in each draw of a block, and all that does not depend on predictions."""

    def __init__(self, gold: Gold, count_NB: NDArray[np.uint8]) -> None:
        """``count_NB``: rows in the order of ``gold.order``."""
        self.gold, self.count_NB = gold, count_NB
        draws = count_NB.shape[1]
        self.cubes_B: Floats = np.zeros(draws)
        """Sum over items of the cubed weight."""
        for start in range(0, len(count_NB), CHUNK):
            weight = self.weights(slice(start, start + CHUNK))
            self.cubes_B += np.einsum("nb,nb->b", weight * weight, weight)
        bounds = gold.bounds.tolist()
        group_GB = np.stack([self.summed(slice(*pair)) for pair in zip(bounds[:-1], bounds[1:], strict=True)])
        upto_GB = np.cumsum(group_GB, axis=0, dtype=np.float64)
        self.total_B: Floats = upto_GB[-1].copy()
        self.rank_GB: Floats = 2 * upto_GB - group_GB - self.total_B
        """Twice the centred mean rank of every gold value."""
        self.variance_B = _variance(self.total_B, (group_GB.astype(np.float64) ** 3).sum(axis=0))

    def weights(self, rows: slice | list[int]) -> NDArray[Any]:
        """(T, B) of some rows."""
        found: NDArray[Any] = self.count_NB[rows].astype(self.gold.dtype)
        return found if self.gold.weight_N is None else found * self.gold.weight_N[rows, None]

    def summed(self, rows: slice) -> NDArray[Any]:
        """(B,) weight of some rows together."""
        if self.gold.weight_N is None:
            return np.add.reduce(self.count_NB[rows], axis=0, dtype=self.gold.dtype)
        return np.add.reduce(self.weights(rows), axis=0)

    def spearman(self, run: Run) -> Floats:
        """(B,) rank correlation x 100; NaN where a draw leaves one side constant."""
        gold, count_NB, draws = self.gold, self.count_NB, len(self.total_B)
        group_N, weight_N = gold.group_N.tolist(), None if gold.weight_N is None else gold.weight_N.tolist()
        # twice the rank (W- + W+) of every item times its weight, summed within each group of equal gold values
        ranks_GB = np.zeros((len(self.rank_GB), draws), dtype=gold.dtype)
        twice_B, weight_B, product_B = (np.zeros(draws, dtype=gold.dtype) for _ in range(3))
        cubes_B = self.cubes_B.copy()
        for start, stop in zip(run.bounds[:-1], run.bounds[1:], strict=True):
            row = run.rows[start]
            if stop - start == 1:
                if weight_N is None:
                    np.copyto(weight_B, count_NB[row])
                else:
                    np.multiply(count_NB[row], weight_N[row], out=weight_B)
                np.add(twice_B, weight_B, out=twice_B)
                np.multiply(weight_B, twice_B, out=product_B)
                of_gold_B = ranks_GB[group_N[row]]
                np.add(of_gold_B, product_B, out=of_gold_B)
                np.add(twice_B, weight_B, out=twice_B)
            else:
                rows = run.rows[start:stop]
                tied_TB = self.weights(rows)
                tie_B = np.add.reduce(tied_TB, axis=0)
                twice_B += tie_B
                for row, own_B in zip(rows, tied_TB, strict=True):
                    ranks_GB[group_N[row]] += own_B * twice_B
                twice_B += tie_B
                cubes_B += tie_B.astype(np.float64) ** 3 - np.einsum("tb,tb->b", tied_TB * tied_TB, tied_TB)
        product_B = np.einsum("gb,gb->b", self.rank_GB, ranks_GB)  # the centre of one side suffices
        squares_B = self.variance_B * _variance(self.total_B, cubes_B)
        with np.errstate(invalid="ignore", divide="ignore"):
            value_B: Floats = np.clip(100 * product_B / np.sqrt(squares_B), -100.0, 100.0)
        value_B[squares_B <= 0] = np.nan
        return value_B


def _groups(sorted_N: Floats) -> Rows:
    """Where groups of equal values begin, and the end."""
    return np.concatenate([[0], np.flatnonzero(np.diff(sorted_N)) + 1, [len(sorted_N)]])


def _variance(total_B: Floats, cubes_B: Floats) -> Floats:
    """Weighted sum of squares of twice the centred mean ranks; 0 where all weight is on one value."""
    found_B = (total_B**3 - cubes_B) / 3
    found_B[found_B <= 1e-12 * total_B**3] = 0.0  # weights that are not whole leave rounding noise
    return found_B
