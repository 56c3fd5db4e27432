"""Scores, averages, intervals and verdicts of the newest version, as ``bench compare`` prints them,
against a computation from the predictions that imports nothing of bench (``recomputed.py``).
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import recomputed
from published_rows import NEWEST, compared
from recomputed_scores import answer, answer_sts, arrays_of

TRAINED_HERE = ("--setting", "unsupervised,none", "--backbone", "builtin")
OF_A_DIFFERENCE = ("difference", "se", "ci_low", "ci_high", "ci_level", "equal_within")
# suites whose scores follow from predictions, without a draw
SCORED = ("sts", "transfer", "clustering", "fewshot")


def test_each_row_of_the_first_table_comes_out_again() -> None:
    """Nightly, the rows of every table."""
    tables = compared(str(NEWEST / "runs"), "--suite", "sts", *TRAINED_HERE)
    (first,) = [table for table in tables if not table["budget"] and judged(table)]
    assert len(first["rows"]) > 20
    assert_comes_out_again(first)


@pytest.fixture(scope="module")
def tables() -> list[dict[str, Any]]:
    """All tables of the version."""
    return compared(str(NEWEST / "runs"))


@pytest.mark.nightly
@pytest.mark.slow(seconds=60)
def test_each_verdict_comes_out_again() -> None:
    of_one_setting = compared(str(NEWEST / "runs"), *TRAINED_HERE)
    unsupervised = [one for one in of_one_setting if one["setting"] == "unsupervised"]
    with_verdicts = [one for one in unsupervised if judged(one)]
    assert {"sts", "transfer", "clustering", "cxc"} <= {one["suite"] for one in with_verdicts}
    for table in with_verdicts:
        assert_comes_out_again(table)


@pytest.mark.nightly
@pytest.mark.slow(seconds=60)
def test_the_supervised_verdicts_come_out_again(tables: list[dict[str, Any]]) -> None:
    supervised = [one for one in tables if one["setting"] == "supervised" and judged(one)]
    assert supervised
    for table in supervised:
        assert_comes_out_again(table)


def assert_comes_out_again(table: dict[str, Any]) -> None:
    place = tuple(table[key] for key in ("suite", "protocol", "setting", "budget"))
    said = {recomputed.name_of(row): row["against"] for row in table["rows"]}
    found = recomputed.compared(NEWEST, table)
    assert {one for one, here in found.items() if here["verdict"]} == judged(table), place
    for one, here in found.items():
        if said[one] is None:
            continue
        assert here["verdict"] == said[one]["verdict"], (place, one)
        for key in OF_A_DIFFERENCE:
            assert here[key] == pytest.approx(said[one][key], abs=1e-6), (place, one, key)
        assert here["df"] == pytest.approx(said[one]["df"], rel=1e-5), (place, one)
        if here["p"] is None:
            assert said[one]["p"] is None, (place, one)
        else:
            assert here["p"] == pytest.approx(said[one]["p"], rel=1e-5, abs=1e-12), (place, one)


def judged(table: dict[str, Any]) -> set[str]:
    """The rows that were tested."""
    return {
        recomputed.name_of(row)
        for row in table["rows"]
        if row["against"] and row["against"]["verdict"]
    }


@pytest.mark.nightly
@pytest.mark.slow(seconds=30)
def test_each_score_average_and_spread_comes_out_again(tables: list[dict[str, Any]]) -> None:
    """Of every row of every table, also of those that nobody trained here."""
    scored = [one for one in tables if one["suite"] in SCORED]
    assert {one["setting"] for one in scored} == {"unsupervised", "supervised", "none"}
    checked = 0
    for table in scored:
        tasks = [task for task in table["columns"] if task != "Avg."]
        for row in table["rows"]:
            averages = []
            for place, run in enumerate(row["runs"]):
                suite = table["suite"], table["protocol"]
                values = [float(answer(NEWEST, run, *suite, one).values_Q.mean()) for one in tasks]
                said = [row["cells"][task]["values"][place] for task in tasks]
                assert values == pytest.approx(said, abs=0.006), (suite, run)
                averages.append(recomputed.average(values))
            assert row["cells"]["Avg."]["values"] == pytest.approx(averages, abs=1e-9)
            assert row["mean"] == pytest.approx(np.mean(averages), abs=1e-9)
            if len(averages) > 1:
                assert row["sd"] == pytest.approx(np.std(averages, ddof=1), abs=1e-9)
            checked += len(averages)
    assert checked > 200


@pytest.mark.nightly
def test_a_value_of_cxc_is_near_the_correlation_that_its_draws_estimate(
    tables: list[dict[str, Any]],
) -> None:
    """The mean of 1,000 draws, and one correlation with equal weight for each query."""
    of_cxc = [one for one in tables if one["suite"] == "cxc"]
    assert len(of_cxc) > 1
    for table in of_cxc:
        for row in table["rows"]:
            values = row["cells"]["CxC-STS"]["values"]
            for run, value in zip(row["runs"], values, strict=True):
                found = answer(NEWEST, run, "cxc", table["protocol"], "CxC-STS")
                assert float(found.values_Q[0]) == pytest.approx(value, abs=0.1)


@pytest.mark.nightly
@pytest.mark.slow(seconds=90)
def test_every_score_of_the_version_follows_from_its_predictions() -> None:
    """As the command for it says."""
    words = [sys.executable, "-m", "bench", "verify", str(NEWEST)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


# what recomputed.py does in a quick way, once in the slow one


def test_ranks_by_sums_over_lower_items_are_those_by_all_comparisons() -> None:
    run = min(path.name for path in (NEWEST / "runs").glob("simcse-builtin-*"))
    task = "STS16"
    arrays = arrays_of(NEWEST, f"runs/{run}/predictions/{task}.npz")
    found = answer_sts(arrays, task)
    score, moved_N = by_all_comparisons(arrays["prediction"], arrays["gold"])
    assert found.values_Q[0] == pytest.approx(score, abs=1e-9)
    np.testing.assert_allclose(found.moved_N, moved_N, rtol=0, atol=1e-9)


def by_all_comparisons(x_N: np.ndarray, y_N: np.ndarray) -> tuple[float, np.ndarray]:
    """``spearman`` of recomputed_scores.py from (N, N) comparisons of two items."""
    n = len(x_N)
    x_NN, y_NN = (np.sign(one[:, None] - one[None, :].astype(float)) for one in (x_N, y_N))
    # twice the centred rank, as a share
    u, v = x_NN.mean(axis=1), y_NN.mean(axis=1)
    a, b, c = (u * v).mean(), (u * u).mean(), (v * v).mean()
    of_a = u * v + x_NN.T @ v / n + y_NN.T @ u / n - 3 * a
    of_b = u * u + 2 * x_NN.T @ u / n - 3 * b
    of_c = v * v + 2 * y_NN.T @ v / n - 3 * c
    rho = a / np.sqrt(b * c)
    return 100 * rho, 100 / n * (of_a / np.sqrt(b * c) - rho / 2 * (of_b / b + of_c / c))


def test_items_that_share_a_sentence_are_those_found_pair_by_pair() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.integers(12, size=(40, 2))
    pairs[:2] = [[3, 3], [5, 4]]
    pairs[2] = [4, 5]
    moved_RN = rng.normal(size=(3, 40))
    near, equal = np.zeros((3, 3)), np.zeros((3, 3))
    for i, one in enumerate(pairs.tolist()):
        for j, other in enumerate(pairs.tolist()):
            product = np.outer(moved_RN[:, i], moved_RN[:, j])
            near += product * bool({*one} & {*other})
            equal += product * (sorted(one) == sorted(other))
    for found, wanted in zip(recomputed.over_items(moved_RN, pairs), (near, equal), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
