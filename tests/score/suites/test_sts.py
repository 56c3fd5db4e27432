"""The STS suite: what becomes of vectors, against a second computation on the real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from stand_in import words_in

from bench.data.sets import DataFolder
from bench.data.sets.sts import STS_TASKS, read_sts
from bench.records.selection import known_sets
from bench.score.suites import suite
from bench.score.suites.sts import clean_dev_task, dev_task


@pytest.mark.slow
@pytest.mark.parametrize("name", ["STS12", pytest.param("SICK-R", marks=pytest.mark.nightly)])
def test_a_task_agrees_with_scipy_on_the_real_pairs(shared, name):
    data = DataFolder(shared / "data")
    result = suite("sts").task(name).load(data).score(words_in)
    pairs = read_sts(data, name)
    a, b = (words_in(side).astype(float) for side in (pairs.sentences1, pairs.sentences2))
    with np.errstate(invalid="ignore"):  # a zero vector's cosine is 0, as in the papers' code
        sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cosine = np.nan_to_num((a * b).sum(1) / sizes)
    cosine[np.array(pairs.sentences1) == np.array(pairs.sentences2)] = 1.0
    stored = result.predictions
    found, gold = stored["prediction"], pairs.gold
    assert found.dtype == np.float32 and found == pytest.approx(cosine, abs=1e-7)

    def spearman(rows: Any = slice(None)) -> float:
        return float(100 * scipy.stats.spearmanr(found[rows], gold[rows]).statistic)

    assert result.value == pytest.approx(spearman(), abs=1e-9)
    each, sizes = [], []
    for subset in dict.fromkeys(pairs.subset):
        rows = np.array(pairs.subset) == subset
        pearson = 100 * scipy.stats.pearsonr(found[rows], gold[rows]).statistic
        about = result.detail["subsets"][subset]
        wanted = pytest.approx((spearman(rows), pearson, rows.sum()), abs=1e-9)
        assert (about["spearman"], about["pearson"], about["n"]) == wanted
        each.append(about["spearman"])
        sizes.append(about["n"])
    assert result.detail["mean"] == pytest.approx(np.mean(each), abs=1e-9)
    assert result.detail["wmean"] == pytest.approx(np.average(each, weights=sizes), abs=1e-9)
    about = result.n, result.protocol, result.metric
    assert about == (len(pairs), "senteval-all/1", "spearman")


def test_sick_is_also_scored_over_all_its_pairs(shared, tmp_path):
    loaded = suite("sts:senteval-all-raw/1").task("SICK-R").load(DataFolder(shared / "data"))
    result = loaded.score(words_in)
    assert result.n == len(result.predictions["prediction"]) == 4927
    whole = read_sts(DataFolder(shared / "data"), "SICK-R", text="raw", split="all")
    assert result.detail["all_splits"]["n"] == len(whole) == 9927
    want = scipy.stats.spearmanr(result.predictions["all_splits_prediction"], whole.gold).statistic
    assert result.detail["all_splits"]["spearman"] == pytest.approx(100 * want, abs=1e-9)
    assert set(whole.sentences1 + whole.sentences2) == set(loaded.sentences)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["tokenised", pytest.param("raw", marks=pytest.mark.nightly)])
def test_the_clean_dev_set_has_no_scored_pair(shared, form):
    """Told apart by a second computation: sets of letters, over all seven test splits."""
    data = DataFolder(shared / "data")

    def keys(one: Any) -> list[frozenset[str]]:
        return list(map(letters, one.sentences1, one.sentences2))

    tested = {key for name in STS_TASKS for key in keys(read_sts(data, name, text=form))}
    clean = clean_dev_task(data, form)
    pairs = [key for part in clean.parts for key in keys(part)]
    assert len(pairs) == clean.n == 849 and not tested & set(pairs)
    assert [len(part) for part in clean.parts] == [363, 486]
    assert clean.sha256 == known_sets()["dev"][f"sts-dev-clean, {form}"]
    among = [key in tested for key in keys(dev_task(data, form).data)]
    assert sum(among) == 1137, "what STS-B dev has"


def letters(first: str, second: str) -> frozenset[str]:
    return frozenset("".join(c for c in one.lower() if c.isalnum()) for one in (first, second))
