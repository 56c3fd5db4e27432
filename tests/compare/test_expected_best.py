"""The expected best of n trials against every outcome there is; and what searches say in captions,
true and false.
"""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest
from factories import record
from msgspec import structs

from bench.compare.grouping import chosen_on
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


def test_a_record_says_where_its_values_come_from_and_what_chose_them() -> None:
    def of(source: str, search: dict[str, object] | None = None) -> str:
        one = record()
        recipe = {**one.recipe, "learning_rate": RecipeValue(value=1e-5, source=source)}
        one = structs.replace(
            one,
            recipe=recipe,
            provenance=structs.replace(one.provenance, execution=HowExecuted(search=search or {})),
        )
        return kind_of_values(one) + (f" | {chosen_on(one)}" if chosen_on(one) else "")

    assert of("SimCSE repo README.md") == "paper" and of("--set") == "recipe" == of(
        "ours, for 5 M parameters: not searched"
    )
    assert (
        of("search x", {"trials": 12, "select_on": "STS-B dev", "seeds": [901]})
        == "tuned: 12 trials"
    )
    assert of("search x", {"trials": 12, "select_on": "STS-B"}) == "tuned: 12 trials | STS-B"
    assert (
        of(
            "search x",
            {"name": "s", "trials": 12, "select_on": "STS-B dev", "seeds": [record().seed]},
        )
        == "tuned: 12 trials | a seed of s"
    )
    assert of("search x", {"trials": "many", "seeds": 3, "select_on": 4}) == "tuned | 4", (
        "what strangers write is no error"
    )
