"""Methods that have seeds and the training text in common, compared seed by seed.

How much two methods share by a seed is not assumed: the variance of their differences says it.

Legend: M methods, R runs of all methods, S seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.compare.statistics.seed_variance import SeedVariances, seed_variances
from bench.compare.statistics.table import FEWEST_SEEDS
from bench.records.predictions import Floats


@dataclass(frozen=True)
class Pairs:
    """Every method minus another one, over the seeds that both have."""

    paired_M: NDArray[np.bool_]
    """Methods that are compared seed by seed."""
    seeds_M: NDArray[np.intp]
    """How many seeds both have; 1 if they are not paired."""
    mean_M: Floats
    """Of the differences."""
    other_mean_M: Floats
    """Of the other one, over these seeds."""
    spread_M: Floats
    """Sample variances of the differences; 0 if they are not paired."""

    @property
    def own_freedom_M(self) -> Floats:
        """Degrees of freedom of a method's own differences."""
        return self.seeds_M.astype(np.float64) - 1

    def moderated(self) -> SeedVariances:
        """Return the variances of one difference, borrowed across the paired methods."""
        return seed_variances(self.spread_M, self.own_freedom_M)


class SeedPairs:
    """The runs of a column's methods, by seed."""

    def __init__(
        self,
        values: Sequence[Sequence[float]],
        seeds: Sequence[Sequence[int | None]],
        texts: Sequence[str | None],
        random: Sequence[bool],
    ) -> None:
        """Take the arguments of :class:`Column`."""
        place: dict[int | None, int] = {}
        for of_method in seeds:
            for seed in of_method:
                place.setdefault(seed, len(place))
        self._count_S = len(place)
        self._value_R = np.array([value for of_method in values for value in of_method])
        self._seed_R = np.array([place[seed] for of_method in seeds for seed in of_method])
        self._method_R = np.repeat(np.arange(len(values)), [len(own) for own in values])
        known = [text for text, moves in zip(texts, random, strict=True) if text and moves]
        number = {text: i for i, text in enumerate(dict.fromkeys(known))}
        self._text_M = np.full(len(values), -1)
        for method, (text, moves) in enumerate(zip(texts, random, strict=True)):
            if text and moves:
                self._text_M[method] = number[text]

    def minus(self, other: int) -> Pairs:
        """Return every method minus the one at ``other``.

        Two methods are paired if both are random, trained on one text, and have three seeds in
        common: fewer say too little about the spread of their differences.
        """
        of_other_R = self._method_R == other
        value_S = np.full(self._count_S, np.nan)
        value_S[self._seed_R[of_other_R]] = self._value_R[of_other_R]
        apart_R = self._value_R - value_S[self._seed_R]
        same_text_M = (self._text_M == self._text_M[other]) & (self._text_M >= 0)
        same_text_M[other] = False
        shared_R = same_text_M[self._method_R] & ~np.isnan(apart_R)
        seeds_M = np.bincount(self._method_R[shared_R], minlength=len(same_text_M))
        paired_M = seeds_M >= FEWEST_SEEDS
        seeds_M = np.where(paired_M, seeds_M, 1)
        shared_R &= paired_M[self._method_R]
        method_R, apart_R = self._method_R[shared_R], apart_R[shared_R]
        mean_M = np.bincount(method_R, apart_R, len(paired_M)) / seeds_M
        other_R = value_S[self._seed_R[shared_R]]
        other_mean_M = np.bincount(method_R, other_R, len(paired_M)) / seeds_M
        squares_R = (apart_R - mean_M[method_R]) ** 2
        spread_M = np.bincount(method_R, squares_R, len(paired_M)) / np.maximum(seeds_M - 1, 1)
        return Pairs(paired_M, seeds_M, mean_M, other_mean_M, spread_M)
