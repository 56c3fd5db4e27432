"""A against B on the same items: difference, interval, p-value, verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.statistics.accuracy_resampling import right_answers
from bench.statistics.cells import Predicted, same_items
from bench.statistics.intervals import DRAWS, LEVEL
from bench.statistics.resampling import resample_all
from bench.statistics.sides import difference, paired_seeds, recorded, shared_seeds, side
from bench.statistics.variation import Drawn, drawn

Verdict = Literal["better", "worse", "unknown"]
ALPHA = 0.05
POWER = 0.8
FEW = 10
"""Draws beyond zero; fewer are not counted, see ``p_value``."""
LEAST = 1e-16


@dataclass(frozen=True)
class Comparison:
    """A less B, in points (x 100)."""

    difference: float
    low: float
    high: float
    """95 % interval of the difference, not adjusted for other cells."""
    p: float
    """Two-sided, not adjusted for other cells."""
    detectable: float | None
    """The true difference that these items and seeds would have shown in 4 of 5 repetitions (alpha 0.05, two-sided, not adjusted).
    None where A and B differ nowhere, for then the data say nothing of it."""
    test: str
    """"paired bootstrap" or "exact McNemar"."""
    seeds: tuple[int | None, ...]
    """Training seeds on which A and B were paired; empty where they were not paired on seeds."""
    n_items: int
    """Over all tasks."""
    covers: str = "items"
    """"items and seeds", or "items" where neither side has two seeds."""
    n_seeds: tuple[int, int] = (1, 1)
    """Seeds of A and of B that took part."""
    level: float = LEVEL


def compare(a: Predicted, b: Predicted, *, draws: int = DRAWS, seed: int = 0) -> Comparison:
    """Paired on items; on training seeds too where A and B share at least two (then the others are left out).

    Accuracy of one run each: exact McNemar. Everything else: paired bootstrap.
    Raises ValueError where task, metric or gold values differ.
    """
    return compare_average([(a, b)], draws=draws, seed=seed)


def compare_average(pairs: Sequence[tuple[Predicted, Predicted]], *, draws: int = DRAWS, seed: int = 0) -> Comparison:
    """The plain average over tasks (the papers' Avg.), in one test: items are drawn within each task, tasks are not.

    Raises ValueError where gold values differ, and where the tasks of one side have no seed in common.
    """
    for a, b in pairs:
        same_items(a, b)
    resample_all([p for pair in pairs for p in pair], draws=draws, seed=seed)  # together, so that draws are made once
    cells_a, cells_b = [a for a, _ in pairs], [b for _, b in pairs]
    seeds_a, seeds_b = shared_seeds(cells_a), shared_seeds(cells_b)
    both = paired_seeds(seeds_a, seeds_b)
    seeds_a, seeds_b = (both, both) if both else (seeds_a, seeds_b)
    side_a = side(1, cells_a, seeds_a, draws=draws, seed=seed)
    side_b = side(-1, cells_b, seeds_b, draws=draws, seed=seed)
    found = drawn([difference(side_a, side_b)] if both else [side_a, side_b], seed=seed)
    low, high = found.quantiles(LEVEL)
    printed_a, printed_b = recorded(cells_a, seeds_a), recorded(cells_b, seeds_b)
    shift = 0.0 if printed_a is None or printed_b is None else printed_a - printed_b - found.value
    answers = _one_answer_each(pairs, seeds_a, seeds_b)
    return Comparison(
        difference=found.value + shift, low=low + shift, high=high + shift,
        p=p_value(found) if answers is None else mcnemar(*answers), detectable=_detectable(found, (high - low) / 2),
        test="paired bootstrap" if answers is None else "exact McNemar", seeds=both, n_items=sum(a.n_items for a in cells_a),
        covers="items and seeds" if found.seeds_vary else "items", n_seeds=(len(seeds_a), len(seeds_b)),
    )  # fmt: skip


def p_value(found: Drawn) -> float:
    """Two-sided: twice the share of the draws on the far side of zero.

    It agrees with the interval: below 0.05 where the 95 % interval leaves zero out. Where a part of the draws is Student's t, its
    share beyond zero is computed, not counted. Where hardly a draw of the items is left to count, the normal distribution with the
    standard error of the draws serves, so that a correction for hundreds of cells is not decided by the number of draws. Never
    below 1e-16: no resampling says more.
    """
    from scipy.special import ndtr, stdtr

    draws = len(found.value_B)
    few = 2 * (FEW + 1) / (draws + 1)
    normal = max(LEAST, 2 * float(ndtr(-abs(found.value) / found.error))) if found.error > 0 else 0.0
    if found.largest is not None:
        scaled_B = found.rest_B / math.sqrt(found.largest.variance)
        below, above = (float(stdtr(found.largest.freedom, sign * scaled_B).mean()) for sign in (-1, 1))
        share = min(1.0, 2 * min(below, above))
        return share if share >= few else min(few, max(share, normal))  # what the items may do, where seeds hardly vary
    beyond = min(int((found.value_B <= 0).sum()), int((found.value_B >= 0).sum()))
    if beyond >= FEW or found.error == 0:
        return min(1.0, 2 * (beyond + 1) / (draws + 1))
    return min(normal, few, 1.0)


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p-value where A alone is right ``only_a`` times and B alone ``only_b`` times; 1 where they never differ.

    Source: McNemar 1947, by the binomial distribution with probability 1/2.
    """
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def _one_answer_each(
    pairs: Sequence[tuple[Predicted, Predicted]], seeds_a: tuple[int | None, ...], seeds_b: tuple[int | None, ...]
) -> tuple[int, int] | None:
    """How often A alone and B alone are right, where both gave one answer to every item of one task; None elsewhere."""
    (a, b), *more = pairs
    if more or len(seeds_a) > 1 or len(seeds_b) > 1:
        return None
    a, b = a.of_seeds(seeds_a), b.of_seeds(seeds_b)
    if a.metric != "accuracy" or a.prediction_SN.ndim == 3 or b.prediction_SN.ndim == 3 or a.units is not None:
        return None
    right_a, right_b = right_answers(a)[0].astype(bool), right_answers(b)[0].astype(bool)
    return int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())


def _detectable(found: Drawn, half_width: float) -> float | None:
    """Half of the interval, and as much again as keeps the estimate above that with the wanted probability."""
    from scipy.special import ndtri, stdtrit

    if found.error == 0:
        return None
    return half_width + found.error * float(ndtri(POWER) if math.isinf(found.freedom) else stdtrit(found.freedom, POWER))


def verdict(difference: float, p_adjusted: float, alpha: float = ALPHA) -> Verdict:
    """Is A better than B? "unknown" where the data do not tell."""
    if not p_adjusted < alpha or difference == 0:
        return "unknown"
    return "better" if difference > 0 else "worse"
