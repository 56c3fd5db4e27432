"""The contract of every suite: bad vectors are refused, scores follow from predictions, averages,
names.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from stand_in import every_suite, sts_pairs, words_in

from bench.base.errors import RunFailed
from bench.records import Score
from bench.score.suites import average, rescore, suite

LOADED = every_suite()


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name", LOADED)
def test_vectors_that_cannot_be_scored_name_the_task_and_the_sentence(name: str) -> None:
    loaded, task = LOADED[name], name.split(",")[0]
    odd = loaded.sentences[2]

    def with_odd(value: float, dtype: Any = np.float32) -> Any:
        def vectors(sentences: Any) -> np.ndarray:
            rows = [[value if s == odd else 1, len(s), i] for i, s in enumerate(sentences)]
            return np.array(rows, dtype)

        return vectors

    kinds = [(np.nan, np.float32), (np.inf, np.float32)]
    kinds += [(1e200, np.float64)] if task in ("Tweet", "CR") else []  # they compute in float32
    for value, dtype in kinds:
        with pytest.raises(RunFailed, match=f"^{task}: .* vectors hold NaN.*'{odd}'"):
            loaded.score(with_odd(value, dtype))
    with pytest.raises(RunFailed, match=f"^{task}: all .* vectors are constant.*'"):
        loaded.score(lambda s: np.ones((len(s), 4), np.float32))
    shapes = (np.ones((2, 4), np.float32), np.ones(len(loaded.sentences), np.float32))
    for bad in (*shapes, np.ones((len(loaded.sentences), 4), int)):
        with pytest.raises(RunFailed, match=f"^{task}: vectors of"):
            loaded.score(lambda s, bad=bad: bad)


@pytest.mark.parametrize("gold", [(3, 3, 3), (1, np.nan, 2)])
def test_ratings_that_rank_nothing_are_refused_and_no_model_is_blamed(gold: Any) -> None:
    with pytest.raises(RunFailed, match="^STS12: .*the gold side") as caught:
        sts_pairs(["a b", "b c", "c"], ["a", "c d", "e"], gold).score(words_in)
    assert "no model" in str(caught.value.hint)


@pytest.mark.parametrize("name", LOADED)
def test_scoring_again_from_the_predictions_gives_the_same_number(name: str) -> None:
    result = LOADED[name].score(lambda s: words_in(s) + np.arange(64, dtype=np.float32))
    json.dumps(result.detail)
    again = rescore((result.suite, result.task, result.protocol), result.predictions)
    assert again is not None
    assert (again.value, again.n, again.std) == (result.value, result.n, result.std)
    assert {key: result.detail[key] for key in again.detail} == again.detail


def results(name: str, values: Any, **changes: Any) -> list[Score]:
    of = suite(name).tasks[0]
    one = Score(
        suite=name,
        task="",
        protocol=of.protocol,
        metric=of.metric.name,
        value=0,
        n=10,
        predictions_sha256="0" * 64,
    )
    tasks = zip(suite(name).average or (), values, strict=False)
    return [replace(one, task=task, value=value, **changes) for task, value in tasks]


def test_an_average_rounds_as_the_papers_print() -> None:
    """SimCSE's table prints each task with two decimals and averages the printed values."""
    values = [68.40499, 82.41499, 74.38499, 80.91499, 78.55499, 76.84499, 72.23499]
    averaged = average(results("sts", values))
    assert averaged is not None and (averaged.task, averaged.n) == ("Avg.", 70)
    printed = (68.40 + 82.41 + 74.38 + 80.91 + 78.55 + 76.84 + 72.23) / 7
    assert averaged.value == round(printed, 2) == 76.25 and averaged.predictions_sha256 is None
    clusters = average(results("clustering", [60.004 + i for i in range(8)], std=1.0))
    assert clusters is not None and (clusters.value, clusters.std, clusters.n) == (63.5, None, 80)


@pytest.mark.parametrize("name", ["sts", "clustering"])
def test_no_average_over_missing_tasks_or_two_protocols(name: str) -> None:
    whole = results(name, range(70, 78))
    assert average(whole) is not None
    assert average(whole[:-1]) is None and average([]) is None
    assert average([*whole[:-1], replace(whole[-1], protocol="other/1")]) is None
