"""Columns of methods against textbook tests, with one source of variation at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from one_method import influence

from bench.compare.statistics.column import Column, column
from bench.compare.statistics.differences import Differences
from bench.records.predictions import Predicted


def of_items(covariance: np.ndarray) -> np.ndarray:
    return np.stack([covariance, covariance])


def only_seeds(values: list[list[float]]) -> Column:
    return Column(values, [True] * len(values), of_items(np.zeros((len(values), len(values)))))


ALIKE = [[mean - 0.3, mean + 0.5, mean - 0.2] for mean in (70.4, 71.4, 70.1, 72.7)]
"""Rows of one spread: what each borrows is what it has, so that textbook tests with the pooled
variance are ours.
"""


def test_all_pairs_are_tukeys_of_statsmodels() -> None:
    multicomp = pytest.importorskip("statsmodels.stats.multicomp")
    values, names = np.concatenate(ALIKE), np.repeat(np.arange(4), 3)
    theirs = multicomp.pairwise_tukeyhsd(values, names)
    of = only_seeds(ALIKE)
    first, second = np.triu_indices(4, 1)
    less = [of.minus(other) for other in range(4)]
    value, error, freedom = (
        np.array([getattr(less[j], name)[i] for i, j in zip(first, second, strict=True)])
        for name in ("value_P", "error_P", "freedom_P")
    )
    np.testing.assert_allclose(-value, theirs.meandiffs)
    np.testing.assert_allclose(freedom, theirs.df_total)
    np.testing.assert_allclose(
        error, theirs.std_pairs * math.sqrt(2)
    )  # theirs is for a mean, as the studentised range has it
    tukeys = scipy.stats.studentized_range.sf(math.sqrt(2) * np.abs(value) / error, 4, 8)
    np.testing.assert_allclose(tukeys, theirs.pvalues, atol=1e-4)


def test_two_methods_of_one_spread_are_students_test() -> None:
    a, b = ALIKE[:2]
    found = only_seeds([a, b]).minus(1)
    theirs = scipy.stats.ttest_ind(a, b)
    assert found.p_P[0] == pytest.approx(theirs.pvalue)
    interval = theirs.confidence_interval(0.95)
    assert found.value_P[0] - found.half_P(0.05)[0] == pytest.approx(interval.low)
    assert np.isnan(found.error_P[1]), "not with itself"


def paired(values: list[list[float]], seeds: list[range], texts: list[str]) -> Column:
    items = of_items(np.zeros((len(values), len(values))))
    return Column(values, [True] * len(values), items, seeds=seeds, texts=texts)


SWAYS = [70.0, 74.0, 79.0, 71.0, 76.0]
"""Seeds far apart."""


def test_two_methods_of_one_text_are_students_test_of_pairs() -> None:
    """Of the seeds that both have, in whatever order."""
    row = [value + gain for value, gain in zip(SWAYS, (0.2, 0.5, 0.3, 0.6, 0.1), strict=True)]
    theirs = scipy.stats.ttest_rel(row, SWAYS)
    found = paired([row, [90.0, *SWAYS]], [range(1, 6), range(6)], ["a", "a"]).minus(1)
    assert found.value_P[0] == pytest.approx(0.34)
    assert found.p_P[0] == pytest.approx(theirs.pvalue)
    interval = theirs.confidence_interval(0.99)
    assert found.value_P[0] - found.half_P(0.01)[0] == pytest.approx(interval.low)
    other = paired([[90.0, *SWAYS], row], [range(6), range(1, 6)], ["a", "a"]).minus(1)
    assert other.value_P[0] == pytest.approx(-0.34)
    assert other.error_P[0] == pytest.approx(found.error_P[0])


@pytest.mark.parametrize(
    ("seeds", "texts"),
    [
        ([range(5), range(5)], ["a", "b"]),
        ([range(5), range(5)], ["a", ""]),
        ([range(5), range(3, 8)], ["a", "a"]),
    ],
    ids=["other text", "unknown text", "two seeds in common"],
)
def test_methods_with_too_little_in_common_are_independent_samples(
    seeds: list[range], texts: list[str]
) -> None:
    row = [value + 0.3 for value in SWAYS]
    found = paired([row, SWAYS], seeds, texts).minus(1)
    assert found.p_P[0] == pytest.approx(scipy.stats.ttest_ind(row, SWAYS).pvalue)


def test_variances_of_differences_are_moderated_as_those_of_rows_are() -> None:
    """Three rows differ from the last one as three rows of seeds differ from zero."""
    rng = np.random.default_rng(4)
    apart = rng.normal(0, [[0.2], [0.5], [1.0]], (3, 5))
    values = [*(apart + SWAYS).tolist(), SWAYS]
    found = paired(values, [range(5)] * 4, ["a"] * 4).minus(3)
    like = Column(
        [*apart.tolist(), [0.0]], [True, True, True, False], of_items(np.zeros((4, 4)))
    ).minus(3)
    for name in ("value_P", "error_P", "freedom_P"):
        np.testing.assert_allclose(getattr(found, name)[:3], getattr(like, name)[:3])


def test_a_method_without_randomness_is_paired_with_every_seed() -> None:
    fixed = Column(
        [[70.0], SWAYS],
        [False, True],
        of_items(np.zeros((2, 2))),
        seeds=[(None,), range(5)],
        texts=["a", "a"],
    ).minus(1)
    theirs = scipy.stats.ttest_1samp(SWAYS, 70.0)
    assert fixed.p_P[0] == pytest.approx(theirs.pvalue)


def test_items_alone_are_a_normal_test_of_correlated_values() -> None:
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    found = Column([[70.0], [71.5]], [False, False], of_items(covariance)).minus(1)
    assert found.error_P[0] == pytest.approx(math.sqrt(0.4))
    assert found.p_P[0] == pytest.approx(2 * scipy.stats.norm.sf(1.5 / math.sqrt(0.4)))


def test_both_sources_add_up() -> None:
    """Items, 0.6, and seeds."""
    items = of_items(0.6 * np.eye(2))
    of = Column([[70.0, 71.0, 72.0], [70.0, 71.0, 72.0]], [True, True], items)
    assert of.minus(1).error_P[0] == pytest.approx(math.sqrt(2 * 0.6 + 2 * 1.0 / 3))
    (half, _), (error, _), (covers, _) = of.half_widths()
    variance = 0.6 + 1 / 3
    assert covers == "items and seeds" and error == pytest.approx(math.sqrt(variance))
    assert half == pytest.approx(error * scipy.stats.t.ppf(0.975, variance**2 / ((1 / 3) ** 2 / 4)))


def test_a_single_seed_is_known_only_where_two_others_have_several() -> None:
    nobody = Column([[70.0], [72.0]], [True, True], of_items(0.01 * np.eye(2)))
    assert np.isnan(nobody.minus(1).p_P).all() and nobody.half_widths()[2] == ["items", "items"]
    one = Column([[70.0], [72.0, 72.1]], [True, True], of_items(0.01 * np.eye(2)))
    assert np.isnan(one.minus(1).p_P[0]), "one method's spread says nothing of another's"
    values = [[70.0], [75.0, 75.1, 75.2], [75.0, 75.3, 75.2]]
    assert Column(values, [True] * 3, of_items(0.001 * np.eye(3))).minus(1).p_P[0] < 0.01
    fixed = Column([[70.0], [75.0, 75.1, 75.2]], [False, True], of_items(0.001 * np.eye(2)))
    assert fixed.minus(1).p_P[0] < 0.01, "nothing in it is random: nothing is borrowed"


def test_a_detectable_difference_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(9)
    found = Differences(np.zeros(1), np.array([0.7]), np.array([12.0]))
    least = float(found.detectable_P(0.01)[0])
    t = (least / 0.7 + rng.normal(size=100_000)) / np.sqrt(rng.chisquare(12, 100_000) / 12)
    assert np.mean(t > scipy.stats.t.ppf(0.995, 12)) == pytest.approx(0.8, abs=0.02)


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
    assert one.minus(1).value_P[0] == pytest.approx(-other.minus(1).value_P[0])
    assert one.minus(1).error_P[0] == pytest.approx(other.minus(1).error_P[0])
    part = column([None, answers[1]], values, [True, True])
    assert np.isnan(part.minus(1).p_P[0]) and part.half_widths()[2] == ["seeds", "items and seeds"]
    elsewhere = Predicted("a", "spearman", (1, 2), cells[0].prediction_SN, gold[::-1])
    with pytest.raises(ValueError, match="different gold values"):
        column([answers[0], [(elsewhere, influence(elsewhere))]], values, [True, True])


def test_repetitions_that_all_share_are_paired() -> None:
    """Ten draws of few examples, some lucky for both methods: their difference does not vary by
    that.
    """
    lucky = np.linspace(-3, 3, 10)
    both = np.stack([70 + lucky, 69 + lucky + np.tile([0.1, -0.1], 5)])
    of = Column([[70.0], [69.0]], [False, False], of_items(0.01 * np.eye(2)), repeated=[both])
    own = np.var(both[0] - both[1], ddof=1) / 10
    assert of.minus(1).error_P[0] == pytest.approx(math.sqrt(0.02 + own))
    assert of.half_widths()[0][0] > 1.0
