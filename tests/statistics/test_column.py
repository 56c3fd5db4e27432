"""Columns of methods against textbook tests where one source of variation is alone, and the laws of verdicts and ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from bench.compare.statistics.column import (
    Column,
    Differences,
    adjust_p_values,
    column,
    critical,
    detectable,
    ranks,
    two_one_sided,
    verdicts,
)
from bench.compare.statistics.influence import influence
from bench.runs.predicted import Predicted


def of_items(covariance: np.ndarray) -> np.ndarray:
    return np.stack([covariance, covariance])


def only_seeds(values: list[list[float]]) -> Column:
    runs = sum(map(len, values))
    return Column(values, [True] * len(values), of_items(np.zeros((runs, runs))))


ALIKE = [[70.1, 70.9, 70.2], [71.0, 71.9, 71.3], [69.5, 70.2, 70.5], [72.9, 72.2, 73.1]]
"""Spreads that differ by no more than chance, so that they are pooled."""


def test_all_pairs_are_tukeys_of_statsmodels() -> None:
    multicomp = pytest.importorskip("statsmodels.stats.multicomp")
    values, names = np.concatenate(ALIKE), np.repeat(np.arange(4), 3)
    theirs = multicomp.pairwise_tukeyhsd(values, names)
    of = only_seeds(ALIKE)
    first, second, found = of.pairs()
    np.testing.assert_allclose(-found.value_P, theirs.meandiffs)
    np.testing.assert_allclose(found.freedom_P, theirs.df_total)
    np.testing.assert_allclose(
        found.error_P, theirs.std_pairs * math.sqrt(2)
    )  # theirs is of a mean, as the studentised range has it
    tukeys = scipy.stats.studentized_range.sf(
        math.sqrt(2) * np.abs(found.value_P) / found.error_P, 4, 8
    )
    np.testing.assert_allclose(tukeys, theirs.pvalues, atol=1e-4)
    single_step = np.minimum(1, 6 * found.p_P)
    assert (tukeys <= single_step + 1e-9).all(), (
        "Tukey's is the sharper of two that adjust in one step"
    )
    assert [bool(p < 0.05) for p in adjust_p_values(found.p_P)] == [
        bool(one) for one in theirs.reject
    ]


def test_two_methods_of_one_spread_are_students_test() -> None:
    a, b = [70.1, 70.9, 70.3], [71.0, 71.7, 71.3]
    found = only_seeds([a, b]).less(1)
    theirs = scipy.stats.ttest_ind(a, b)
    assert found.p_P[0] == pytest.approx(theirs.pvalue)
    interval = theirs.confidence_interval(0.95)
    assert found.value_P[0] - found.half_P(0.05)[0] == pytest.approx(interval.low)
    assert np.isnan(found.error_P[1]), "not with itself"


def test_one_method_is_students_interval() -> None:
    (half,), (covers,) = Column([[70.0, 71.0, 73.0]], [True]).half_widths()
    interval = scipy.stats.t.interval(0.95, 2, scale=scipy.stats.sem([70.0, 71.0, 73.0]))
    assert (half, covers) == (pytest.approx(interval[1]), "seeds")


def test_items_alone_are_a_normal_test_of_correlated_values() -> None:
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    found = Column([[70.0], [71.5]], [False, False], of_items(covariance)).less(1)
    assert found.error_P[0] == pytest.approx(math.sqrt(0.4))
    assert found.p_P[0] == pytest.approx(2 * scipy.stats.norm.sf(1.5 / math.sqrt(0.4)))
    assert np.isnan(found.chance_P[0]), "neither has seeds"


def test_what_each_seed_has_for_itself_is_counted_once() -> None:
    """Items: 0.5 for all seeds of a method, 0.3 for each seed alone; the latter is in the spread over seeds."""
    runs = np.kron(np.eye(2), np.full((3, 3), 0.5)) + 0.3 * np.eye(6)
    of = Column([[70.0, 71.0, 72.0], [70.0, 71.0, 72.0]], [True, True], of_items(runs))
    assert of.less(1).error_P[0] == pytest.approx(math.sqrt(2 * 0.5 + 2 * 1.0 / 3))
    (half, _), (covers, _) = of.half_widths()
    assert covers == "items and seeds"
    assert half == pytest.approx(
        math.sqrt(0.5 + 1 / 3) * scipy.stats.t.ppf(0.975, (0.5 + 1 / 3) ** 2 / ((1 / 3) ** 2 / 4))
    )


def test_all_seeds_are_tested_that_are_shown() -> None:
    """The case of unequal seeds: +0.59 over all, less over the common ones. The sign of the verdict is that of what is shown."""
    a, b = [70.0, 70.1, 72.0, 72.1, 72.05], [70.6, 70.7, 70.68]
    of = only_seeds([a, b])
    assert of.less(1).value_P[0] == pytest.approx(np.mean(a) - np.mean(b))
    said, _, _ = verdicts(of.less(1))
    assert said[0] in ("better", "unknown")


def test_a_single_seed_is_not_judged_unless_others_lend_their_spread() -> None:
    nobody = Column([[70.0], [72.0]], [True, True], of_items(0.01 * np.eye(2)))
    assert verdicts(nobody.less(1))[0] == [None, None]
    assert ranks(nobody)[0] == [(1, 2), (1, 2)]
    assert nobody.half_widths()[1] == ["items", "items"]
    one = Column([[70.0], [72.0, 72.1]], [True, True], of_items(0.01 * np.eye(3)))
    assert verdicts(one.less(1))[0] == [None, None], "one method's spread says nothing of another's"
    two = Column(
        [[70.0], [75.0, 75.1, 75.2], [75.0, 75.3, 75.2]], [True] * 3, of_items(0.001 * np.eye(7))
    )
    assert verdicts(two.less(1))[0][0] == "worse" and two.lent_M.tolist() == [True, False, False]
    encoder = Column([[70.0], [75.0, 75.1, 75.2]], [False, True], of_items(0.001 * np.eye(4)))
    assert verdicts(encoder.less(1))[0][0] == "worse" and not encoder.lent_M.any(), (
        "nothing in it is random: nothing is borrowed"
    )


def test_five_seeds_beside_one() -> None:
    values = [[70.0], *([71 + k + 0.1 * s for s in range(5)] for k in range(3))]
    found = only_seeds(values).less(0)
    assert (found.freedom_P[1:] <= 12).all() and not np.isnan(found.p_P[1:]).any()


def test_a_small_variance_is_drawn_up_to_the_mean_of_all_by_the_share_that_was_borrowed() -> None:
    """Whole where methods are alike; hardly where their own seeds say nearly all; and never down."""
    values = [[70.0, 70.1, 70.2], [70.0, 72.0, 74.0], [70.0, 71.0, 72.0], [70.0]]
    of, samples = only_seeds(values), [0.01, 4.0, 1.0]
    assert of.prior is not None and 0 < of.prior[1] < 10
    mean, prior, freedom = np.mean(samples), *of.prior
    for i, sample in enumerate(samples):
        own, share = (2 * sample + freedom * prior) / (2 + freedom), freedom / (2 + freedom)
        expected = (
            own if own > mean else math.exp(share * math.log(mean) + (1 - share) * math.log(own))
        )
        assert of.seed_M[i] == pytest.approx(expected) and of.seed_M[i] >= own
    assert of.seed_M[3] == pytest.approx(max(mean, prior)), "of a single seed all is borrowed"
    alike = only_seeds([[70.0, 71.0, 72.0], [70.0, 71.1, 72.2], [70.0, 70.9, 71.8]])
    assert np.ptp(alike.seed_M) == pytest.approx(0) and alike.seed_M[0] == pytest.approx(
        (1 + 1.21 + 0.81) / 3
    )


def test_a_method_that_varies_much_does_not_hide_what_others_differ_by() -> None:
    """Ten seeds and six, 1.85 points apart with deviations of 0.45, are told apart also beside one that varies by three points."""
    rng = np.random.default_rng(0)
    quiet = [
        (mean + 0.45 * scipy.stats.zscore(rng.normal(size=n), ddof=1)).tolist()
        for mean, n in ((60.67, 10), (58.82, 6), (60.9, 6), (58.2, 6))
    ]
    wild = (46 + 3.2 * scipy.stats.zscore(rng.normal(size=6), ddof=1)).tolist()
    for values in (quiet, [*quiet, wild]):
        said, *_ = verdicts(only_seeds(values).less(0))
        assert said[1] == "worse" and said[2] == "unknown" and said[3] == "worse"


def test_the_chance_of_one_new_run() -> None:
    found = only_seeds(ALIKE).less(0)
    pooled = np.mean([np.var(one, ddof=1) for one in ALIKE])
    t = (np.mean(ALIKE[3]) - np.mean(ALIKE[0])) / math.sqrt(pooled * 2 * (1 + 1 / 3))
    assert found.chance_P[3] == pytest.approx(scipy.stats.t.cdf(t, 8))


@pytest.mark.parametrize("how", ["holm", "bh", "none"])
def test_no_verdict_contradicts_its_interval(how: str) -> None:
    """One level for all intervals of a family: they leave zero out where, and only where, the adjusted p-value says so."""
    rng = np.random.default_rng(8)
    for _ in range(300):
        count = int(rng.integers(1, 12))
        found = Differences(
            rng.normal(scale=2, size=count),
            rng.uniform(0.1, 1, count),
            rng.uniform(2, 30, count),
            np.ones(count),
            np.ones(count),
        )
        said, p, alpha = verdicts(found, how=how)
        half = found.half_P(alpha)
        assert alpha == critical(found.p_P, how)
        for verdict, value, width, one in zip(said, found.value_P, half, p, strict=True):
            assert (abs(value) > width) == (one < 0.05)
            inside = abs(value) + width < 0.5
            sure = "better" if value > 0 else "worse"
            otherwise = "unknown" if one >= 0.05 else sure
            assert verdict in ((otherwise, "equivalent") if inside else (otherwise,))


def test_equivalence_is_tested_as_by_two_one_sided_tests() -> None:
    found = only_seeds(ALIKE).less(0)
    for value, error, freedom, p in zip(
        found.value_P[1:],
        found.error_P[1:],
        found.freedom_P[1:],
        found.equivalent_p_P(0.5)[1:],
        strict=True,
    ):
        assert p == pytest.approx(two_one_sided(value, error, freedom, 0.5))


def test_equal_predictions_are_equivalent() -> None:
    of = Column([[70.0], [70.0]], [False, False], of_items(np.ones((2, 2))))
    said, p, _ = verdicts(of.less(1))
    assert (said[0], p[0]) == ("equivalent", 1.0)
    assert np.isnan(detectable(of.less(1), 0.05)[0])


def test_what_is_detectable_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(9)
    found = Differences(np.zeros(1), np.array([0.7]), np.array([12.0]), np.ones(1), np.ones(1))
    least = float(detectable(found, 0.01)[0])
    t = (least / 0.7 + rng.normal(size=100_000)) / np.sqrt(rng.chisquare(12, 100_000) / 12)
    assert np.mean(t > scipy.stats.t.ppf(0.995, 12)) == pytest.approx(0.8, abs=0.02)


def test_seeds_that_would_settle_it() -> None:
    def seeds(gap: float, items: float, margin: float = 0.5) -> int | None:
        values = [
            [70 + gap, 71 + gap, 70.5 + gap],
            [70.0, 71.0, 70.5],
            [60.0, 61.0, 60.4],
            [50.0, 51.0, 50.6],
        ]
        runs = np.kron(items * np.eye(4), np.ones((3, 3)))
        return Column(values, [True] * 4, of_items(runs)).seeds_to_settle(0, 1, 0.05, margin)

    few, more = seeds(1.0, 0.0), seeds(0.7, 0.0)
    assert few is not None and more is not None and 3 < few < more
    assert seeds(0.7, 1.0) is None, "other items would have to be had"
    assert seeds(0.0, 0.0) == seeds(0.5, 0.0, margin=1e-9) != None  # noqa: E711 - to be found equal or to be found different
    between, near = seeds(0.25, 0.0), seeds(0.05, 0.0)
    assert between is not None and near is not None and between > near, (
        "halfway to the margin is the hardest"
    )


def test_ranks_hold_all_that_is_told_of_pairs() -> None:
    of = Column([[50.0], [60.0], [60.1], [70.0]], [False] * 4, of_items(0.5 * np.eye(4)))
    found, size = ranks(of)
    assert (found, size) == ([(4, 4), (2, 3), (2, 3), (1, 1)], 6)
    unknown = np.array([[np.nan] * 4] + [[np.nan, *row] for row in 0.5 * np.eye(3)])
    found, size = ranks(Column([[99.0], [60.0], [60.1], [70.0]], [False] * 4, of_items(unknown)))
    assert (found, size) == ([(1, 4), (2, 4), (2, 4), (1, 2)], 3), (
        "who is not tested may be anywhere"
    )


def test_columns_of_predictions_are_whatever_the_order() -> None:
    rng = np.random.default_rng(10)
    gold = rng.normal(size=200)
    cells = [
        Predicted("a", "spearman", (1, 2), gold + k * rng.normal(size=(2, 200)), gold)
        for k in (1, 2)
    ]
    answers = [[(p, influence(p))] for p in cells]
    values = [one[0][1].value_SR[:, 0].tolist() for one in answers]
    one, other = (
        column(answers, values, [True, True]),
        column(answers[::-1], values[::-1], [True, True]),
    )
    assert one.less(1).value_P[0] == pytest.approx(-other.less(1).value_P[0])
    assert one.less(1).error_P[0] == pytest.approx(other.less(1).error_P[0])
    part = column([None, answers[1]], values, [True, True])
    assert np.isnan(part.less(1).p_P[0]) and part.half_widths()[1] == ["seeds", "items and seeds"]
    elsewhere = Predicted("a", "spearman", (1, 2), cells[0].prediction_SN, gold[::-1])
    with pytest.raises(ValueError, match="different gold values"):
        column([answers[0], [(elsewhere, influence(elsewhere))]], values, [True, True])


def test_repetitions_that_all_share_are_paired() -> None:
    """Ten draws of few examples, some lucky for both methods: their difference does not vary by that."""
    lucky = np.linspace(-3, 3, 10)
    both = np.stack([70 + lucky, 69 + lucky + np.tile([0.1, -0.1], 5)])
    of = Column([[70.0], [69.0]], [False, False], of_items(0.01 * np.eye(2)), repeated=[both])
    own = np.var(both[0] - both[1], ddof=1) / 10
    assert of.less(1).error_P[0] == pytest.approx(math.sqrt(0.02 + own))
    assert of.half_widths()[0][0] > 1.0
