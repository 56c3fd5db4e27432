"""The STS suite: what becomes of vectors, against a second computation on the real data."""

from __future__ import annotations

from typing import Any

import pytest
import scipy.stats
from stand_in import words_in

from bench.data.sets import DataFolder
from bench.data.sets.sts import STS_TASKS, read_sts
from bench.records.selection import known_sets
from bench.score.suites import suite
from bench.score.suites.sts import clean_dev_task, dev_task


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
