"""Judges if as many new runs as the paper had would give the printed value, from numbers alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import variance

from bench.papers import UNKNOWN, ReferenceResult, half_unit
from bench.score.metrics.metric import metric_named

LEVEL = 0.95

WITHIN = "within"
BELOW = "below"
ABOVE = "above"
NOT_TESTED = "not tested"


@dataclass(frozen=True, kw_only=True)
class PrintVerdict:
    """The verdict on one printed value."""

    verdict: str  # our score is WITHIN, BELOW or ABOVE what agrees with the print; or NOT_TESTED
    difference: float | None = None  # ours minus the print, as printed
    expected: float | None = None  # the middle of the prediction interval
    half: float | None = None  # of its width
    sd: float | None = None  # over seeds, pooled; 0.0 if nothing is random
    freedom: float | None = None  # its degrees of freedom; None if nothing is random
    reason: str = ""  # of NOT_TESTED


def pooled_sd(samples: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Pool the SD over seeds and its degrees of freedom over rows; (0.0, 0) if no row has two
    seeds. ``samples``: values by row."""
    several = [values for values in samples if len(values) > 1]
    freedom = sum(len(values) - 1 for values in several)
    squares = math.fsum(variance(values) * (len(values) - 1) for values in several)
    return (math.sqrt(squares / freedom), freedom) if freedom else (0.0, 0)


def judge_print(
    mean: float, seeds: int, cell: ReferenceResult, spread: tuple[float, float], why_not: str = ""
) -> PrintVerdict:
    """Compare a printed value with the mean of our seeds.

    ``spread``: the pooled SD and its degrees of freedom, infinite if nothing is random; without
    any, the paper's own SD. ``why_not``: the reason why our run is not meant to be the paper's. The
    best of n runs is expected above their mean.
    """
    from scipy.special import stdtrit

    places = metric_named(cell.metric).decimals
    difference = round(round(mean, places) - cell.value, places)
    if cell.protocol == UNKNOWN:
        why_not = why_not or "the paper's protocol is not known"
    sd, freedom = spread if spread[1] else printed_spread(cell)
    if why_not or not freedom:
        return PrintVerdict(
            verdict=NOT_TESTED,
            difference=difference,
            reason=why_not or "one seed: how far seeds vary is not known",
        )
    count, best = printed_runs(cell)
    above, share = best_of(count) if best else (0.0, 1 / count)
    half = sd and float(stdtrit(freedom, (1 + LEVEL) / 2)) * sd * math.sqrt(1 / seeds + share)
    expected = mean + above * sd
    verdict = WITHIN
    if abs(cell.value - expected) > half + half_unit(cell.printed) + 1e-9:
        verdict = BELOW if expected < cell.value else ABOVE
    return PrintVerdict(
        verdict=verdict,
        difference=difference,
        expected=expected,
        half=half,
        sd=sd,
        freedom=freedom if math.isfinite(freedom) else None,
    )


def verdict_text(judged: PrintVerdict, cell: ReferenceResult) -> str:
    """Return "within: 76.10 ± 1.52", "below by 2.31: 73.94 ± 1.52", "above by ...", or "not
    tested: one seed: ...".
    """
    if judged.expected is None or judged.half is None:
        return f"{NOT_TESTED}: {judged.reason}"
    places = metric_named(cell.metric).decimals
    text = judged.verdict
    if judged.verdict != WITHIN:
        text += f" by {abs(cell.value - judged.expected):.{places}f}"
    text += f": {judged.expected:.{places}f} ± {judged.half:.{places}f}"
    count, best = printed_runs(cell)
    return f"{text}, as the best of {count}" if best else text


def printed_runs(cell: ReferenceResult) -> tuple[int, bool]:
    """Return the number of runs behind a printed value, and True if it is the best of them.

    One run if nothing is said; "several" counts as two.
    """
    stated = re.match(r"(mean|best) of (\d+|several)", cell.runs)
    if stated is None:
        return 1, False
    is_best = stated[1] == "best"
    if stated[2] == "several":
        return 2, is_best
    return max(int(stated[2]), 1), is_best


def printed_spread(cell: ReferenceResult) -> tuple[float, int]:
    """Return the number that a paper prints after ±, if it is over seeds and not over draws of the
    protocol; else (0.0, 0)."""
    count, best = printed_runs(cell)
    if cell.std is None or count < 2 or best:
        return 0.0, 0
    return cell.std, count - 1


@cache
def best_of(count: int) -> tuple[float, float]:
    """Return (mean, variance) of the largest of ``count`` standard normal values."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    def density(x: float) -> float:
        return float(count * ndtr(x) ** (count - 1) * math.exp(-x * x / 2)) / math.sqrt(2 * math.pi)

    mean, square = (quad(lambda x, p=p: x**p * density(x), -12, 12)[0] for p in (1, 2))
    return float(mean), float(square - mean**2)
