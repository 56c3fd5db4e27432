"""The methods of one column together: intervals and differences, over other items and other seeds.

A method's value is a mean over its seeds. Two things move it: other items and other seeds. The
covariance of all runs over items is given. Every seed answers the same items, so both are crossed,
not nested: an effect of the items that all seeds of a method share does not shrink with their
number. The spread over seeds is moderated: borrowed across the methods of the column. The effect of
items on a single seed is part of that spread, and is counted there. Methods are compared unpaired
over seeds: two methods with the same seed share only its number, while weights and batches differ.
A difference over its standard error is taken to follow Student's t, with Satterthwaite's degrees of
freedom (1946) of the parts.

Legend: M methods, R runs of all methods, P pairs of methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bench.compare.statistics.differences import Differences, satterthwaite, student_quantile
from bench.compare.statistics.items import Items
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
        freedom: float = math.inf,
        repeated: Sequence[Floats] = (),
    ) -> None:
        """Compute means, variances and degrees of freedom.

        ``values``: the values of every method's runs, in points. ``random``: True if another run of
        the method may give another value.

        ``covariance``: (2, R, R) of all runs in that order over items, or (2, M, M) of the methods'
        means, with ``freedom`` degrees of freedom (``Items``); NaN for runs with unknown items.
        ``repeated``: per task (R, Q) values by repetition, the same for all methods (all have the
        same tenth draw of few examples), over the number of tasks.
        """
        self.runs_M = np.array([len(seeds) for seeds in values])
        self._starts = np.concatenate([[0], np.cumsum(self.runs_M)[:-1]])
        value_R = np.array([value for of_method in values for value in of_method])
        self.mean_M: Floats = np.add.reduceat(value_R, self._starts) / self.runs_M
        self.own_freedom_M = np.where(random, self.runs_M - 1.0, 0.0)
        """Degrees of freedom of a method's own seeds."""
        self.spread_M: Floats = np.add.reduceat(
            (value_R - np.repeat(self.mean_M, self.runs_M)) ** 2, self._starts
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
        self.freedom = freedom
        self.items = self._of_means(covariance)
        self.repeated_MM: Floats = np.zeros((len(values), len(values)))
        self.repeated_freedom = math.inf
        if repeated:
            for values_RQ in repeated:
                by_method = np.add.reduceat(values_RQ, self._starts, axis=0) / self.runs_M[:, None]
                self.repeated_MM += np.atleast_2d(np.cov(by_method)) / values_RQ.shape[1]
            self.repeated_freedom = sum(values_RQ.shape[1] - 1 for values_RQ in repeated)

    def _of_means(self, covariance: Floats | None) -> Floats:
        """Return (2, M, M) covariances of the methods' means over items; NaN if not known.
        ``covariance``: as for ``__init__``.
        """
        shape = (2, len(self.runs_M), len(self.runs_M))
        if covariance is None:
            return np.full(shape, np.nan)
        if covariance.shape == shape:
            return covariance
        sums = np.add.reduceat(np.add.reduceat(covariance, self._starts, 1), self._starts, 2)
        return np.asarray(sums / np.multiply.outer(self.runs_M, self.runs_M), dtype=np.float64)

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
        ``other``; NaN if not known."""
        items_M = _of_differences(self.items, other).max(axis=0)
        return items_M, _of_differences(self.repeated_MM, other)

    def seeds_freedom(self, other: int) -> Floats:
        """Return (M,) degrees of freedom of the variance over seeds of every method minus the one
        at ``other``.

        A sum of two moderated variances has at most the freedom of all seeds that they are known
        from.
        """
        one_M = self.seed_M / self.runs_M
        other_M = np.full_like(one_M, one_M[other])
        of_two_M = satterthwaite(
            [(one_M, self.seed_freedom_M), (other_M, self.seed_freedom_M[other])]
        )
        return np.where(np.isinf(of_two_M), of_two_M, np.minimum(of_two_M, self.total_freedom))

    def minus(self, other: int) -> Differences:
        """Return (M,) every method minus the one at ``other``; NaN at itself."""
        items_M, repeated_M = self.over_items(other)
        one_M = self.seed_M / self.runs_M
        other_M = np.full_like(one_M, one_M[other])
        error_M = np.sqrt(items_M + repeated_M + one_M + other_M)
        error_M[other] = np.nan
        return Differences(
            self.mean_M - self.mean_M[other],
            error_M,
            satterthwaite(
                [
                    (items_M, self.freedom),
                    (repeated_M, self.repeated_freedom),
                    (one_M + other_M, self.seeds_freedom(other)),
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


MANY = 1000
"""Runs of a column above which the runs of each method are averaged before their covariances are
taken, which gives the same but for the last digits: the covariances of ten thousand runs would fill
the memory."""

Answers = Sequence[tuple[Predicted, Influence]]
"""One method's answers to each task of a column, with the same seeds."""


def column(
    answers: Sequence[Answers | None],
    values: Sequence[Sequence[float]],
    random: Sequence[bool],
) -> Column:
    """Make the column of methods scored on the same items. None: this method's predictions are
    missing. ``values`` are the recorded ones.

    Raises ValueError if items differ, or if nothing can be said about other items.
    """
    known = [answer for answer in answers if answer is not None]
    if not known:
        return Column(values, random)
    first = known[0]
    for answer in known[1:]:
        for (a, _), (b, _) in zip(first, answer, strict=True):
            same_items(a, b)
    items = Items([p for p, _ in first], [moved for _, moved in first])
    moved = []
    here = []
    many = sum(map(len, values)) > MANY
    for of_method, own in zip(answers, values, strict=True):
        units = 1 if many else len(own)
        here += [of_method is not None] * units
        if of_method is None:
            continue
        moved_by_task = [influence.moved_SN for _, influence in of_method]
        moved_SN = np.concatenate(moved_by_task, axis=1) / len(of_method)
        moved.append(moved_SN.mean(axis=0, keepdims=True) if many else moved_SN)
    known_RR = items.covariance(np.concatenate(moved))
    if all(here):
        covariance = known_RR
    else:
        covariance = np.full((2, len(here), len(here)), np.nan)
        covariance[:, np.outer(here, here)] = known_RR.reshape(2, -1)
    repeated = []
    if len(known) == len(answers):
        for by_task in zip(*known, strict=True):
            values_RQ = np.concatenate([influence.value_SR for _, influence in by_task])
            if values_RQ.shape[1] > 1:
                repeated.append(values_RQ / len(first))
    return Column(
        values,
        random,
        covariance,
        freedom=items.freedom,
        repeated=repeated,
    )
