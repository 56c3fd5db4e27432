"""From values under resampled items to draws of the value itself: items, seeds and repetitions put together.

Every seed of a method answers the same items, so that items and seeds are crossed, not nested: one draw of items is used for all
seeds. What the items contribute to the variance of a mean over seeds is taken from the resampling; of that, the part that each seed
has for itself (the mean variance of one seed less the mean covariance of two) is also in the spread over seeds, and is counted
there. Few seeds say little of their own spread. So the seed part is drawn from Student's t with S - 1 degrees of freedom, not by
drawing among three seeds with replacement, whose intervals would be too short by more than half. The sum of the two errs on the
safe side where both are of one size (with three seeds 2 to 3 false verdicts in 100 at alpha 0.05), and it holds far out in the
tails, where a correction for many cells looks; an approximation by one Student's t (Satterthwaite's) does not.

Repetitions are the ten k-means seeds, or the ten draws of few examples, within one run; they are treated as seeds are.

Legend: S seeds, R repetitions, B draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.statistics.cells import Floats


@dataclass(frozen=True)
class Side:
    """A mean over seeds that enters with a sign: a method; or, paired on seeds, the difference of two."""

    sign: int
    tables: tuple[Floats, ...]
    """Per task, (S, R) values on all items."""
    value_BS: Floats
    """Mean over tasks and repetitions, under draws of the items."""
    random: bool = True
    """False where the method has no seed: another run would give the same."""

    @property
    def value_S(self) -> Floats:
        found: Floats = np.mean([table.mean(axis=1) for table in self.tables], axis=0)
        return found


@dataclass(frozen=True)
class Part:
    """A variance in squared points, and the degrees of freedom of its estimate."""

    variance: float
    freedom: float


@dataclass(frozen=True)
class Drawn:
    """What is known of a value: ``value`` on the data, ``value_B`` draws around it, the standard error and its degrees of freedom."""

    value: float
    value_B: Floats
    error: float
    freedom: float
    seeds_vary: bool
    """Whether the spread over seeds is part of it."""
    rest_B: Floats
    """The draws without their largest part in ``largest``, which is known as a distribution; ``value_B`` where there is none."""
    largest: Part | None

    def quantiles(self, level: float) -> tuple[float, float]:
        low, high = np.quantile(self.value_B, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def drawn(sides: Sequence[Side], *, seed: int) -> Drawn:
    """Draws of the sum of the sides. Draws of the items that leave some value undefined are left out.

    A side with a single, random seed beside one with several is taken to vary over seeds as the other does (Crawford and Howell
    1998); where no side has several, the draws cover the items only.
    """
    value = float(sum(side.sign * side.value_S.mean() for side in sides))
    defined_B = ~np.isnan(sum(side.value_BS.sum(axis=1) for side in sides))
    sides = [Side(side.sign, side.tables, side.value_BS[defined_B], side.random) for side in sides]
    moved_B: Floats = sum((side.sign * side.value_BS.mean(axis=1) for side in sides), np.zeros(int(defined_B.sum()))) - value
    from_items = float(moved_B.var(ddof=1)) if len(moved_B) > 1 else 0.0
    parts, own = seed_parts(sides)
    main = max(0.0, from_items - own) if parts else from_items
    if from_items > 0:
        moved_B = moved_B * math.sqrt(main / from_items)
    seeds_vary = bool(parts)
    parts = sorted((part for part in parts + repetition_parts(sides) if part.variance > 0), key=lambda part: part.variance)
    rng = np.random.default_rng([seed, len(moved_B)])
    rest_B = value_B = value + moved_B
    for part in parts:
        rest_B, value_B = value_B, value_B + math.sqrt(part.variance) * _student(len(value_B), part.freedom, rng)
    total = main + sum(part.variance for part in parts)
    uncertain = sum(part.variance**2 / part.freedom for part in parts)
    freedom = total**2 / uncertain if uncertain > 0 else math.inf
    return Drawn(value, value_B, math.sqrt(total), freedom, seeds_vary, rest_B, parts[-1] if parts else None)


def seed_parts(sides: Sequence[Side]) -> tuple[list[Part], float]:
    """Variance of the sum that comes from seeds, per side; and how much of it the resampling of items shows as well."""
    several = [side for side in sides if len(side.value_S) > 1]
    parts, own = [], 0.0
    for side in sides:
        count = len(side.value_S)
        model = side if count > 1 else several[0] if several and side.random else None
        if model is None:
            continue
        freedom = len(model.value_S) - 1
        parts.append(Part(float(model.value_S.var(ddof=1)) / count, freedom))
        covariance_SS = np.cov(model.value_BS, rowvar=False)
        diagonal = float(np.trace(covariance_SS)) / (freedom + 1)
        beside = float(covariance_SS.sum() - np.trace(covariance_SS)) / (freedom * (freedom + 1))
        own += max(0.0, diagonal - beside) / count
    return parts, own


def repetition_parts(sides: Sequence[Side]) -> list[Part]:
    """Variance of the sum that comes from repetitions, per task; those of one number are paired, for their draws are the same.

    Where every side has several seeds, what a repetition does to one seed only is in the spread over seeds already.
    """
    parts = []
    tasks = len(sides[0].tables)
    for tables in zip(*(side.tables for side in sides), strict=True):
        repetitions = tables[0].shape[1]
        if repetitions < 2:
            continue
        signed_R = sum(side.sign * table.mean(axis=0) for side, table in zip(sides, tables, strict=True))
        variance = float(np.var(signed_R, ddof=1)) / repetitions
        if all(len(table) > 1 for table in tables):
            variance -= sum(_interaction(table) / table.size for table in tables)
        if variance > 0:
            parts.append(Part(variance / tasks**2, repetitions - 1))
    return parts


def _interaction(table_SR: Floats) -> float:
    """Residual variance of a table with one value per cell, rows and columns taken out."""
    rest_SR = table_SR - table_SR.mean(axis=0) - table_SR.mean(axis=1, keepdims=True) + table_SR.mean()
    return float((rest_SR**2).sum()) / ((table_SR.shape[0] - 1) * (table_SR.shape[1] - 1))


def _student(count: int, freedom: float, rng: np.random.Generator) -> Floats:
    """Student's t at evenly spaced probabilities, in random order: the tails are as they should be with few draws too."""
    from scipy.special import stdtrit

    found_B: Floats = stdtrit(freedom, (np.arange(count) + 0.5) / count)
    return rng.permutation(found_B)
