"""Finds items that depend on each other, and the variance over items that follows.

Two pairs that share a sentence are hard or easy together, also in different tasks. Their influences
are summed by sentence before they are squared; pairs that are the same, which share two, are then
counted once too often, and taken out once: the variance estimate for such data of Aronow, Samii and
Assenova 2015 (Cluster-robust variance estimation for dyadic data, Political Analysis 23). Nothing
is assumed of how sentences hang together over several pairs.

Legend: T tasks, N items of all tasks, K what an item may share with others (2: its sentences), R
runs, U units.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.records.predictions import Floats, Predicted
from bench.score.influence import Influence


class Items:
    """The items of a column: of one task, or of all tasks of an average, one after the other."""

    def __init__(self, tasks: Sequence[Predicted], influences: Sequence[Influence]) -> None:
        """Take the items from one method's cells; all methods have the same.

        ``influences``: of these cells; their weights are used.
        """
        ids = [np.arange(p.n_items)[:, None] if p.ids_NK is None else p.ids_NK for p in tasks]
        universes = [
            p.universe if p.shared_NK is not None and p.universe else f"items of {p.task}"
            for p in tasks
        ]
        width = max(int(ids_NK.max()) for ids_NK in ids) + 1
        offset = {name: width * i for i, name in enumerate(dict.fromkeys(universes))}
        # the first and the last thing of each item: the two sentences of a pair, or one text twice
        firsts = []
        lasts = []
        for name, ids_NK in zip(universes, ids, strict=True):
            firsts.append(offset[name] + ids_NK[:, 0])
            lasts.append(offset[name] + ids_NK[:, -1])
        one_N = np.concatenate(firsts).astype(np.int64)
        other_N = np.concatenate(lasts).astype(np.int64)
        _, unit_N = np.unique(np.stack([one_N, other_N]), return_inverse=True)
        self._units = unit_N.reshape(2, -1)
        # items that may share two things
        self._two_N: NDArray[np.bool_] = one_N != other_N
        pair_N = np.minimum(one_N, other_N) * (
            int(max(one_N.max(), other_N.max())) + 1
        ) + np.maximum(one_N, other_N)
        self._pair_N = np.unique(pair_N, return_inverse=True)[1]
        share_U = self._by_unit(
            np.concatenate([moved.weight_N / len(tasks) for moved in influences])
        )
        share_U = share_U / share_U.sum()
        # degrees of freedom of the variance: the number of independent units of equal size that
        # would say as much, minus one
        self.freedom = float(1 / (share_U**2).sum()) - 1

    def _by_unit(self, values_N: Floats) -> Floats:
        one_N, other_N = self._units
        two_N = self._two_N
        units = int(self._units.max()) + 1
        sum_U = np.bincount(one_N, values_N, units) + np.bincount(
            other_N[two_N], values_N[two_N], units
        )
        return sum_U.astype(np.float64, copy=False)

    def covariance(self, moved_RN: Floats) -> Floats:
        """Return (2, R, R) covariances of the runs' scores under resampling of items, in squared
        points: [0] with shared sentences taken into account, [1] with different pairs treated as
        independent. [1] is a lower bound for [0].

        Raises ValueError if all items are one unit.
        """
        if self.freedom <= 0:
            raise ValueError(
                "all items are connected: how far other items would move the score is not known"
            )
        scale = (self.freedom + 1) / self.freedom
        by_pair_RP = np.stack([np.bincount(self._pair_N, moved_N) for moved_N in moved_RN])
        least_RR = np.asarray(by_pair_RP @ by_pair_RP.T, dtype=np.float64)
        # a matrix of thousands of runs has megabytes: it is scaled in its place
        least_RR *= scale
        if not self._two_N.any():  # both are the same
            return np.broadcast_to(least_RR, (2, *least_RR.shape))
        by_unit_RU = np.stack([self._by_unit(moved_N) for moved_N in moved_RN])
        twice = np.stack(
            [np.bincount(self._pair_N[self._two_N], moved_N[self._two_N]) for moved_N in moved_RN]
        )
        connected_RR = by_unit_RU @ by_unit_RU.T
        connected_RR -= twice @ twice.T
        connected_RR *= scale
        return np.stack([connected_RR, least_RR])
