"""The expected best of n trials against every outcome there is; and the sources of values."""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest
from factories import record
from msgspec import structs

from bench.records import HowExecuted
from bench.records.record import RecipeValue
from bench.records.searches import expected_best
from bench.records.value_sources import kind_of_values


@pytest.mark.parametrize(
    "scores",
    [[3.0], [1.0, 1.0, 2.0], [67.1, 61.0, 66.2, 66.2, 12.5]],
)
def test_expected_best_is_the_mean_over_all_draws(scores: list[float]) -> None:
    brute = [
        fmean(max(draw) for draw in itertools.product(scores, repeat=n))
        for n in range(1, len(scores) + 1)
    ]
    assert expected_best(scores) == pytest.approx(brute, abs=1e-9)


def test_a_trial_without_a_score_counts_as_the_lowest() -> None:
    assert expected_best([None, 5.0, 3.0]) == pytest.approx(expected_best([3.0, 5.0, 3.0]))
    assert expected_best([None, None]) == [] == expected_best([])


def test_a_record_says_where_its_values_come_from() -> None:
    def of(source: str, search: dict[str, object] | None = None) -> str:
        one = record()
        recipe = {**one.recipe, "learning_rate": RecipeValue(value=1e-5, source=source)}
        execution = HowExecuted(search=search or {})
        made = structs.replace(one.provenance, execution=execution)
        return kind_of_values(structs.replace(one, recipe=recipe, provenance=made))

    assert of("SimCSE repo README.md") == "paper" and of("--set") == "recipe"
    assert of("ours, for 5 M parameters: not searched") == "recipe"
    assert of("search x", {"trials": 12, "seeds": [901]}) == "tuned: 12 trials"
    assert of("search x", {"trials": "many", "seeds": 3}) == "tuned", (
        "what strangers write is no error"
    )
