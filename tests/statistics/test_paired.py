"""A against B: scipy's bootstrap, Williams's and Steiger's tests, statsmodels' McNemar, textbook limits, degenerate cases, laws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from bench.metrics.cxc import draws_with_replacement, sampled_spearman
from bench.statistics.cells import Predicted
from bench.statistics.paired import Comparison, compare, compare_average, mcnemar, verdict


def ranked(noise: float, seed: int, items: int = 150, seeds: tuple[int | None, ...] = (42,), task: str = "STS-B") -> Predicted:
    """``seed``: of the predictions; the gold values and a part of the predictions depend on the task alone."""
    rng = np.random.default_rng(len(task) + items)
    gold, common = np.round(rng.uniform(0, 5, items), 1), rng.normal(size=items)
    own = np.random.default_rng(seed).normal(size=(len(seeds), items))
    return Predicted(task, "spearman", seeds, gold + noise * (common + own), gold)


def answered(right: list[float], seed: int, items: int = 400, seeds: tuple[int | None, ...] | None = None) -> Predicted:
    rng = np.random.default_rng(seed)
    predicted = np.stack([rng.permutation(items) < round(share * items) for share in right]).astype(int)
    return Predicted("CR", "accuracy", seeds or tuple(range(len(right))), predicted, np.ones(items, dtype=int))


def test_one_seed_each_is_scipys_paired_bootstrap() -> None:
    a, b = ranked(1.0, 1), ranked(1.2, 2)
    found = compare(a, b, draws=4000)

    def difference(x, y, gold):
        return 100 * (scipy.stats.spearmanr(x, gold).statistic - scipy.stats.spearmanr(y, gold).statistic)

    theirs = scipy.stats.bootstrap((a.prediction_SN[0], b.prediction_SN[0], a.gold_N), difference, paired=True, vectorized=False,
                                   n_resamples=1000, method="percentile", rng=np.random.default_rng(0))  # fmt: skip
    noise = 4 * 2.7 * theirs.standard_error / np.sqrt(1000)
    assert found.difference == pytest.approx(difference(a.prediction_SN[0], b.prediction_SN[0], a.gold_N))
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), abs=noise)
    share = 2 * min((theirs.bootstrap_distribution <= 0).mean(), (theirs.bootstrap_distribution >= 0).mean())
    assert found.p == pytest.approx(share, abs=4 * 2 * math.sqrt(0.25 / 1000))
    assert (found.test, found.seeds, found.n_items, found.covers) == ("paired bootstrap", (42,), 150, "items")


def williams(r_a: float, r_b: float, r_ab: float, n: int) -> float:
    """t with n - 3 degrees of freedom for two correlations with one variable (Williams 1959, as in Steiger 1980, eq. 7)."""
    determinant = 1 - r_a**2 - r_b**2 - r_ab**2 + 2 * r_a * r_b * r_ab
    below = 2 * (n - 1) / (n - 3) * determinant + ((r_a + r_b) / 2) ** 2 * (1 - r_ab) ** 3
    return (r_a - r_b) * math.sqrt((n - 1) * (1 + r_ab) / below)


def steiger(r_a: float, r_b: float, r_ab: float, n: int) -> float:
    """z for the same question, by Fisher's transformation and the mean correlation (Steiger 1980, eq. 14)."""
    mean = (r_a + r_b) / 2
    covariance = (r_ab * (1 - 2 * mean**2) - mean**2 * (1 - 2 * mean**2 - r_ab**2) / 2) / (1 - mean**2) ** 2
    return (math.atanh(r_a) - math.atanh(r_b)) * math.sqrt((n - 3) / (2 - 2 * covariance))


@pytest.mark.parametrize("seed", range(4))
def test_on_normal_data_williams_and_steiger_agree(seed: int) -> None:
    """Ranks of normal values behave nearly as the values do: the standard error differs by a few per cent."""
    rng = np.random.default_rng(seed)
    n = 900
    gold, common = rng.normal(size=n), rng.normal(size=n)
    sides = [gold + 0.8 * common + noise * rng.normal(size=n) for noise in (0.5, 0.7)]
    a, b = (Predicted("normal", "spearman", (None,), side[None], gold) for side in sides)
    found = compare(a, b, draws=2000)
    r_a, r_b, r_ab = (scipy.stats.spearmanr(*two).statistic for two in ((sides[0], gold), (sides[1], gold), sides))
    t, z = williams(r_a, r_b, r_ab, n), steiger(r_a, r_b, r_ab, n)
    ours = found.difference / ((found.high - found.low) / (2 * 1.96))
    assert ours == pytest.approx(t, rel=0.15) and ours == pytest.approx(z, rel=0.15)
    assert (found.p < 0.05) == (2 * scipy.stats.t.sf(abs(t), n - 3) < 0.05)


@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (7, 7), (3, 12), (40, 15), (0, 30), (200, 260)])
def test_mcnemar_is_statsmodels_and_the_binomial_test(counts: tuple[int, int]) -> None:
    if sum(counts):
        assert mcnemar(*counts) == pytest.approx(scipy.stats.binomtest(counts[0], sum(counts), 0.5).pvalue)
    tables = pytest.importorskip("statsmodels.stats.contingency_tables", reason="pip install sentence-bench[dev]")
    theirs = tables.mcnemar([[50, counts[0]], [counts[1], 9]], exact=True).pvalue
    assert mcnemar(*counts) == pytest.approx(theirs if sum(counts) else 1.0)


def test_accuracy_of_one_run_each_is_mcnemars_test() -> None:
    a, b = answered([0.8], 1), answered([0.74], 2)
    found = compare(a, b, draws=3000)
    right_a, right_b = a.prediction_SN[0] == 1, b.prediction_SN[0] == 1
    only_a, only_b = int((right_a & ~right_b).sum()), int((~right_a & right_b).sum())
    assert (found.test, found.p) == ("exact McNemar", mcnemar(only_a, only_b))
    error = 100 * math.sqrt(only_a + only_b - (only_a - only_b) ** 2 / 400) / 400
    assert (found.low, found.high) == pytest.approx((6 - 1.96 * error, 6 + 1.96 * error), abs=0.4)
    assert found.detectable == pytest.approx((1.96 + 0.8416) * error, rel=0.05)


def test_accuracy_of_several_runs_is_bootstrapped() -> None:
    assert compare(answered([0.8, 0.8], 1), answered([0.7, 0.7], 2), draws=100).test == "paired bootstrap"
    few_shot = Predicted("MR-16", "accuracy", (1,), np.ones((1, 30, 10), dtype=int), np.ones(30, dtype=int))
    assert compare(few_shot, replace(few_shot), draws=100).test == "paired bootstrap"
    assert compare_average([(answered([0.8], 1), answered([0.7], 2))] * 2, draws=100).test == "paired bootstrap"


@pytest.mark.parametrize("seeds", [(None,), (42,), (1, 2, 3)])
def test_equal_predictions_do_not_differ(seeds: tuple[int | None, ...]) -> None:
    for a in (ranked(1.0, 1, seeds=seeds), answered([0.8] * len(seeds), 1, seeds=seeds)):
        found = compare(a, replace(a), draws=200)
        assert (found.difference, found.low, found.high, found.p, found.detectable) == (0, 0, 0, 1, None)
        assert verdict(found.difference, found.p) == "unknown"


def test_predictions_in_one_order_do_not_differ_though_their_values_do() -> None:
    a = ranked(1.0, 1)
    assert compare(a, replace(a, prediction_SN=np.exp(a.prediction_SN)), draws=200).p == 1


def test_equal_runs_with_other_seeds_or_without_do_not_differ() -> None:
    a = ranked(1.0, 1, seeds=(None,))
    found = compare(a, replace(a, seeds=(7,)), draws=200)
    assert (found.difference, found.p, found.seeds) == (0, 1, ())


def test_b_against_a_is_the_mirror_image() -> None:
    for seeds in ((42,), (1, 2, 3)):
        a, b = ranked(1.0, 1, seeds=seeds), ranked(1.3, 2, seeds=seeds)
        ab, ba = compare(a, b, draws=1500), compare(b, a, draws=1500)
        half = (ab.high - ab.low) / 2
        assert ab.difference == pytest.approx(-ba.difference)
        assert (ab.low, ab.high) == pytest.approx((-ba.high, -ba.low), abs=0.1 * half)
        assert ab.p == pytest.approx(ba.p, rel=0.1, abs=0.005)


def test_the_p_value_and_the_interval_say_the_same() -> None:
    said = set()
    for k, noise in enumerate(np.linspace(1.0, 1.6, 12)):
        for seeds in ((42,), (1, 2, 3)):
            found = compare(ranked(1.2, 90 + k, seeds=seeds), ranked(noise, k, seeds=seeds), draws=1000)
            if abs(found.p - 0.05) > 0.01:
                assert (found.p < 0.05) == (not found.low <= 0 <= found.high)
                said.add(found.p < 0.05)
    assert said == {True, False}


def test_a_difference_far_from_zero_survives_a_correction_for_hundreds_of_cells() -> None:
    found = compare(ranked(0.3, 1, items=600), ranked(2.0, 2, items=600), draws=500)
    assert 1e-16 <= found.p < 1e-9
    nearly = compare(
        answered([0.99], 1), Predicted("CR", "accuracy", (9,), np.zeros((1, 400), dtype=int), np.ones(400, dtype=int))
    )
    assert 0 < nearly.p < 1e-9


def test_seeds_that_say_nearly_the_same_leave_the_p_value_of_the_items() -> None:
    """Student's t of seeds that hardly vary has no tail to speak of; the items have theirs."""
    rng, items = np.random.default_rng(0), 400
    right = [rng.permutation(items) < 320, rng.permutation(items) < 260]
    a, b = (
        Predicted("CR", "accuracy", tuple(range(6)), np.stack([one] * 6).astype(int), np.ones(items, dtype=int)) for one in right
    )
    b.prediction_SN[5, 0] ^= 1
    found, single = compare(a, b, draws=2000), compare(a.of_seeds((0,)), b.of_seeds((0,)), draws=2000)
    assert found.covers == "items and seeds" and 0.1 < found.p / single.p < 10 and found.p < 1e-4


SHARES_A, SHARES_B = [0.70, 0.78, 0.80, 0.85], [0.66, 0.76, 0.75, 0.83]


def test_seeds_that_differ_far_more_than_items_make_it_the_t_test() -> None:
    """Paired by seed where both have it; else of two samples, each with its own variance."""
    a, b = answered(SHARES_A, 1, 5000, seeds=(1, 2, 3, 4)), answered(SHARES_B, 2, 5000, seeds=(1, 2, 3, 4))
    paired = compare(a, b, draws=2000)
    theirs = scipy.stats.ttest_rel(SHARES_A, SHARES_B)
    assert paired.p == pytest.approx(theirs.pvalue, rel=0.1)
    low, high = (100 * end for end in theirs.confidence_interval())
    assert (paired.low, paired.high) == pytest.approx((low, high), rel=0.1)
    assert (paired.seeds, paired.covers, paired.n_seeds) == ((1, 2, 3, 4), "items and seeds", (4, 4))
    apart = compare(a, replace(b, seeds=(5, 6, 7, 8)), draws=2000)
    welch = scipy.stats.ttest_ind(SHARES_A, SHARES_B, equal_var=False).confidence_interval()
    assert apart.seeds == () and apart.difference == pytest.approx(paired.difference)
    rng, spreads = np.random.default_rng(0), [100 * scipy.stats.sem(shares) for shares in (SHARES_A, SHARES_B)]
    behrens_fisher = sum(spread * rng.standard_t(3, 200_000) for spread in spreads)
    low, high = np.quantile(behrens_fisher, [0.025, 0.975])
    assert apart.high - apart.low == pytest.approx(high - low, rel=0.06)
    assert apart.high - apart.low > 100 * (welch.high - welch.low)  # the approximation is the narrower one


def test_only_seeds_of_both_are_paired() -> None:
    a, b = answered(SHARES_A, 1, seeds=(1, 2, 3, 4)), answered(SHARES_B, 2, seeds=(4, 9, 2, 8))
    found = compare(a, b, draws=200)
    assert found.seeds == (2, 4) and found.n_seeds == (2, 2)
    assert found.difference == pytest.approx(100 * ((0.78 + 0.85) - (0.75 + 0.66)) / 2)


def test_a_method_without_seeds_has_no_variation_of_its_own_and_one_run_has_the_others() -> None:
    a, b = answered(SHARES_A, 1, 5000, seeds=(1, 2, 3, 4)), answered([0.75], 2, 5000, seeds=(None,))
    fixed, single = compare(a, b, draws=2000), compare(a, replace(b, seeds=(42,)), draws=2000)
    theirs = scipy.stats.ttest_1samp(SHARES_A, 0.75).confidence_interval()
    assert fixed.high - fixed.low == pytest.approx(100 * (theirs.high - theirs.low), rel=0.05)
    one_more = scipy.stats.t.ppf(0.975, 3) * np.std(SHARES_A, ddof=1) * math.sqrt(1 + 1 / 4)  # of a single further run
    assert single.high - single.low > 2 * 100 * one_more * 0.95
    assert single.covers == "items and seeds" and single.n_seeds == (4, 1) and single.seeds == ()


def test_a_seed_that_both_have_is_not_paired_alone() -> None:
    a, b = answered(SHARES_A, 1, seeds=(1, 2, 3, 4)), answered([0.75], 2, seeds=(2,))
    found = compare(a, b, draws=100)
    assert found.seeds == () and found.difference == pytest.approx(100 * (np.mean(SHARES_A) - 0.75))


def test_the_average_is_one_test_with_items_drawn_in_each_task() -> None:
    sizes = (100, 250, 400)
    pairs = [(ranked(1.0, 1, n, task=f"STS{n}"), ranked(1.1, 2, n, task=f"STS{n}")) for n in sizes]
    parts, found = [compare(a, b, draws=3000) for a, b in pairs], compare_average(pairs, draws=3000)
    assert found.difference == pytest.approx(np.mean([part.difference for part in parts]))
    widths = [part.high - part.low for part in parts]
    assert found.high - found.low == pytest.approx(math.sqrt(sum(w * w for w in widths)) / 3, rel=0.06)
    assert found.n_items == 750


def test_repetitions_are_paired_by_number() -> None:
    """Few-shot draws: both methods had the same examples, so that a hard draw is hard for both."""
    rng = np.random.default_rng(0)
    hard, items = rng.uniform(0.6, 0.9, 10), 3000
    sides = []
    for k, gain in enumerate((0.02, 0.0)):
        right = np.stack([np.random.default_rng((k, r)).permutation(items) < (hard[r] + gain) * items for r in range(10)], axis=1)
        sides.append(Predicted("MR-16", "accuracy", (1,), right[None].astype(int), np.ones(items, dtype=int)))
    found = compare(*sides, draws=1000)
    assert found.difference == pytest.approx(2, abs=0.05)
    assert found.high - found.low < 3  # the draws themselves differ by 30 points


def test_images_are_drawn_and_the_protocols_own_draws_show_the_same_spread() -> None:
    """A draw of half the images, one pair of each, has sqrt(2) times the error of all images, and some more for the pair."""
    rng = np.random.default_rng(5)
    query = np.repeat(np.arange(900), 2)
    gold, common = rng.uniform(0, 5, 1800), np.repeat(rng.normal(size=900), 2)
    a, b = (
        Predicted(
            "CxC-STS", "spearman-bootstrap", (1,), (gold + noise * (common + rng.normal(size=1800)))[None], gold, query_N=query
        )
        for noise in (1.0, 1.4)
    )
    found = compare(a, b, draws=1500)
    drawn = list(draws_with_replacement(query, draws=300))
    each = sampled_spearman(a.prediction_SN[0], gold, drawn) - sampled_spearman(b.prediction_SN[0], gold, drawn)
    assert found.difference == pytest.approx(each.mean(), abs=0.3)
    error = (found.high - found.low) / (2 * 1.96)
    assert error < each.std() / math.sqrt(2) * 1.1 and error > each.std() / 2 * 0.8


def test_recorded_values_are_what_is_subtracted() -> None:
    a, b = ranked(1.0, 1), ranked(1.2, 2)
    plain = compare(a, b, draws=200)
    moved = compare(replace(a, score_S=np.array([80.0])), replace(b, score_S=np.array([79.0])), draws=200)
    assert moved.difference == pytest.approx(1.0)
    assert moved.high - moved.low == pytest.approx(plain.high - plain.low) and moved.p == plain.p


def test_the_same_seed_gives_the_same() -> None:
    def once(seed: int) -> Comparison:
        return compare(ranked(1.0, 1, seeds=(1, 2, 3)), ranked(1.2, 2, seeds=(4, 5)), draws=300, seed=seed)

    assert once(0) == once(0) != once(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gold_N": np.arange(150.0)}, "STS-B: the two runs have different gold values"),
        ({"task": "STS12"}, "STS-B by spearman and STS12 by spearman are not one task"),
        ({"metric": "spearman-bootstrap", "query_N": np.arange(150)}, "are not one task"),
        ({"unit_N": np.arange(150)}, "STS-B: the two runs have different units"),
    ],
)
def test_what_was_not_asked_the_same_is_not_compared(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(ranked(1.0, 1), replace(ranked(1.0, 2), **change), draws=10)


def test_verdicts() -> None:
    assert [verdict(1.0, 0.01), verdict(-1.0, 0.01), verdict(1.0, 0.05), verdict(0.0, 0.0)] == [
        "better",
        "worse",
        "unknown",
        "unknown",
    ]
    assert verdict(1.0, 0.08, alpha=0.1) == "better" and verdict(1.0, float("nan")) == "unknown"
