"""The methods of one column together: intervals and differences, over other items and other seeds.

A method's value is a mean over its seeds. Two things move it: other items and other seeds. The
covariance of the methods over items is given. Every seed answers the same items, so both are
crossed, not nested: an effect of the items that all seeds of a method share does not shrink with
their number. The effect of items on a single seed is part of the spread over seeds, and is counted
there.

The same seed gives two methods the same batches in the same order, if they train on the same text;
methods that build and compute alike share the first weights of a head and the masks of dropout,
too. So two methods of one text are compared seed by seed (``pairs.py``), others as independent
samples. Spreads over seeds are moderated: borrowed across the methods of the column, and spreads
of differences across the methods that are paired with the same one. A difference over its standard
error is taken to follow Student's t, with Satterthwaite's degrees of freedom (1946) of the parts.

Legend: M methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bench.compare.statistics.differences import Differences, satterthwaite, student_quantile
from bench.compare.statistics.items import Items
from bench.compare.statistics.pairs import Pairs, SeedPairs
from bench.compare.statistics.seed_variance import SeedVariances, seed_variances
from bench.records.predictions import Floats, Predicted, same_items
from bench.score.influence import Influence

LEVEL = 0.95


class Column:
    """The values of M methods on one task, or on an average of tasks."""

    def __init__(
        self,
        values: Sequence[Sequence[float]],
        random: Sequence[bool],
        covariance: Floats | None = None,
        *,
        seeds: Sequence[Sequence[int | None]] = (),
        texts: Sequence[str | None] = (),
        freedom: float = math.inf,
        repeated: Sequence[Floats] = (),
    ) -> None:
        """Compute means, variances and degrees of freedom.

        ``values``: the values of every method's runs, in points. ``random``: True if another run of
        the method may give another value. ``seeds``: of the runs. ``texts``: the training text
        of each method, None if nobody knows. Without both, no methods are paired.

        ``covariance``: (2, M, M) of the methods' means over items, with ``freedom`` degrees of
        freedom (``Items``); NaN for methods with unknown items. ``repeated``: per task (M, Q) means
        by repetition, the same for all methods (all have the same tenth draw of few examples), over
        the number of tasks.
        """
        self.runs_M = np.array([len(of_method) for of_method in values])
        starts = np.concatenate([[0], np.cumsum(self.runs_M)[:-1]])
        value_R = np.array([value for of_method in values for value in of_method])
        self.mean_M: Floats = np.add.reduceat(value_R, starts) / self.runs_M
        self.own_freedom_M = np.where(random, self.runs_M - 1.0, 0.0)
        """Degrees of freedom of a method's own seeds."""
        self.spread_M: Floats = np.add.reduceat(
            (value_R - np.repeat(self.mean_M, self.runs_M)) ** 2, starts
        ) / np.maximum(self.runs_M - 1, 1)
        """Sample variances over seeds; 0 with one seed."""
        self.random_M = random_M = np.asarray(random, dtype=bool)
        """Say if another run of the method may give another value."""
        self.seed_M = np.where(random_M, np.nan, 0.0)
        """Variance over seeds; NaN: not known."""
        self.seed_freedom_M = np.where(random_M, 0.0, math.inf)
        self.total_freedom = float(self.own_freedom_M.sum())
        """Degrees of freedom of all seeds, which are behind each method's variance."""
        self.borrowed: SeedVariances | None = None
        """How variances over seeds were moderated; None if no method has two seeds."""
        self._know_seeds()
        self._seed_pairs = SeedPairs(values, seeds, texts, random) if seeds and texts else None
        self.freedom = freedom
        self.items: Floats = np.full((2, len(values), len(values)), np.nan)
        if covariance is not None:
            self.items = covariance
        self.repeated_MM: Floats = np.zeros((len(values), len(values)))
        self.repeated_freedom = math.inf
        if repeated:
            for mean_MQ in repeated:
                self.repeated_MM += np.atleast_2d(np.cov(mean_MQ)) / mean_MQ.shape[1]
            self.repeated_freedom = sum(mean_MQ.shape[1] - 1 for mean_MQ in repeated)

    def _know_seeds(self) -> None:
        """Set the variances over seeds, as far as they are known."""
        if self.total_freedom == 0:
            return
        self.borrowed = seed_variances(self.spread_M, self.own_freedom_M)
        known_M = self.random_M & (self.borrowed.freedom_M > 0)
        self.seed_M[known_M] = self.borrowed.variance_M[known_M]
        self.seed_freedom_M[known_M] = self.borrowed.freedom_M[known_M]

    def over_items(self, other: int) -> tuple[Floats, Floats]:
        """Return (M,) variances over items, and over repetitions, of every method minus the one at
        ``other``; NaN if not known. All seeds of both are behind them."""
        items_M = _of_differences(self.items, other).max(axis=0)
        return items_M, _of_differences(self.repeated_MM, other)

    def pairs_with(self, other: int) -> Pairs | None:
        """Return every method minus the one at ``other``, seed by seed; None if there are no seeds
        to pair."""
        return None if self._seed_pairs is None else self._seed_pairs.minus(other)

    def differences(self, other: int) -> Floats:
        """Return (M,) every method minus the one at ``other``: of the seeds that both have, if they
        are paired."""
        difference_M: Floats = self.mean_M - self.mean_M[other]
        pairs = self.pairs_with(other)
        if pairs is None:
            return difference_M
        return np.where(pairs.paired_M, pairs.mean_M, difference_M)

    def over_seeds(self, other: int) -> tuple[Floats, Floats]:
        """Return (M,) variances over seeds of every method minus the one at ``other``, and their
        degrees of freedom.

        A variance has at most the freedom of all seeds that it is known from.
        """
        one_M = self.seed_M / self.runs_M
        other_M = np.full_like(one_M, one_M[other])
        freedom_M = satterthwaite(
            [(one_M, self.seed_freedom_M), (other_M, self.seed_freedom_M[other])]
        )
        freedom_M = np.where(
            np.isinf(freedom_M), freedom_M, np.minimum(freedom_M, self.total_freedom)
        )
        variance_M = one_M + other_M
        pairs = self.pairs_with(other)
        if pairs is None or not pairs.paired_M.any():
            return variance_M, freedom_M
        moderated = pairs.moderated()
        variance_M = np.where(pairs.paired_M, moderated.variance_M / pairs.seeds_M, variance_M)
        return variance_M, np.where(pairs.paired_M, moderated.freedom_M, freedom_M)

    def minus(self, other: int) -> Differences:
        """Return (M,) every method minus the one at ``other``; NaN at itself."""
        items_M, repeated_M = self.over_items(other)
        seeds_M, seeds_freedom_M = self.over_seeds(other)
        error_M = np.sqrt(items_M + repeated_M + seeds_M)
        error_M[other] = np.nan
        return Differences(
            self.differences(other),
            error_M,
            satterthwaite(
                [
                    (items_M, self.freedom),
                    (repeated_M, self.repeated_freedom),
                    (seeds_M, seeds_freedom_M),
                ]
            ),
        )

    def half_widths(self) -> tuple[Floats, Floats, list[str]]:
        """Return (M,) half of each method's interval and its standard error, NaN if nothing is
        known; and what they cover: "items and seeds", "items", "seeds".
        """
        items_M: Floats = np.diagonal(self.items, axis1=1, axis2=2).max(axis=0)
        repeated_M: Floats = np.where(np.isnan(items_M), 0.0, np.diagonal(self.repeated_MM))
        seeds_M: Floats = self.seed_M / self.runs_M
        here_M = np.maximum(np.nan_to_num(items_M), 0)
        there_M = np.nan_to_num(seeds_M)
        freedom_M = satterthwaite(
            [
                (here_M, self.freedom),
                (repeated_M, self.repeated_freedom),
                (there_M, self.seed_freedom_M),
            ]
        )
        error_M = np.sqrt(here_M + repeated_M + there_M)
        covers_items_M = np.isfinite(items_M)
        covers_seeds_M = np.isfinite(seeds_M) & np.isfinite(self.seed_freedom_M)
        covers = []
        for covers_items, covers_seeds in zip(covers_items_M, covers_seeds_M, strict=True):
            names = []
            if covers_items:
                names.append("items")
            if covers_seeds:
                names.append("seeds")
            covers.append(" and ".join(names))
        error_M = np.where([bool(cover) for cover in covers], error_M, np.nan)
        return student_quantile((1 + LEVEL) / 2, freedom_M) * error_M, error_M, covers


def _of_differences(matrix: Floats, other: int) -> Floats:
    """Return (..., M) variances of every method minus the one at ``other``, from covariances (...,
    M, M).
    """
    own = np.diagonal(matrix, axis1=-2, axis2=-1)
    return np.maximum(own + own[..., other, None] - 2 * matrix[..., other], 0)


Answers = Sequence[tuple[Predicted, Influence]]
"""One method's answers to each task of a column, with the same seeds."""


def column(
    answers: Sequence[Answers | None],
    values: Sequence[Sequence[float]],
    random: Sequence[bool],
    seeds: Sequence[Sequence[int | None]] = (),
    texts: Sequence[str | None] = (),
) -> Column:
    """Make the column of methods scored on the same items. None: this method's predictions are
    missing. ``values`` are the recorded ones; ``seeds`` and ``texts`` as for ``Column``.

    Raises ValueError if items differ, or if nothing can be said about other items.
    """
    known = [answer for answer in answers if answer is not None]
    if not known:
        return Column(values, random, seeds=seeds, texts=texts)
    first = known[0]
    for answer in known[1:]:
        for (a, _), (b, _) in zip(first, answer, strict=True):
            same_items(a, b)
    items = Items([p for p, _ in first], [moved for _, moved in first])
    # of the methods' means: the influence of an item on a mean is the mean of its influences
    moved = []
    for answer in known:
        of_tasks = [influence.moved_SN.mean(axis=0) for _, influence in answer]
        moved.append(np.concatenate(of_tasks) / len(answer))
    covariance = items.covariance(np.stack(moved))
    repeated = []
    if len(known) == len(answers):
        for by_task in zip(*known, strict=True):
            means_MQ = np.stack([influence.value_SR.mean(axis=0) for _, influence in by_task])
            if means_MQ.shape[1] > 1:
                repeated.append(means_MQ / len(first))
    else:
        here_M = np.array([answer is not None for answer in answers])
        whole = np.full((2, len(answers), len(answers)), np.nan)
        whole[:, np.outer(here_M, here_M)] = covariance.reshape(2, -1)
        covariance = whole
    return Column(
        values,
        random,
        covariance,
        seeds=seeds,
        texts=texts,
        freedom=items.freedom,
        repeated=repeated,
    )
