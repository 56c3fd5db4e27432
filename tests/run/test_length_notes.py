"""A plan's notes on a training shorter than its recipe, or with a warm-up that never ends."""

from __future__ import annotations

from typing import Any

import pytest

from bench.method import Recipe, Value
from bench.run.length import length_notes, with_typed_length

BASE: dict[str, Any] = {
    "epochs": 1100.0,
    "max_steps": 1000,
    "batch_size": 2,
    "drop_last": False,
    "warmup_steps": 0,
    "learning_rate": 5e-5,
    "budget": None,
}


def recipe_of(**changes: Any) -> Recipe:
    return Recipe({key: Value(value, "test") for key, value in (BASE | changes).items()})


def notes(rows: int = 2, requested: bool = True, **changes: Any) -> list[str]:
    return length_notes(recipe_of(**changes), rows, epochs_requested=requested)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ["max_steps=1000 ends the training before the 1100 epochs"]),
        ({"epochs": 1000.0}, []),
        ({"requested": False}, []),
        ({"rows": 10_000, "epochs": 0.2}, []),
        (
            {"epochs": None, "budget": "1100steps"},
            ["max_steps=1000 ends the training before the budget"],
        ),
        ({"epochs": None, "budget": "10m"}, []),
    ],
)
def test_a_limit_that_ends_what_was_asked_for(changes: dict[str, Any], said: list[str]) -> None:
    assert notes(**changes) == said


def test_a_warm_up_that_never_ends() -> None:
    assert notes(epochs=5.0, warmup_steps=4) == []
    (said,) = notes(epochs=5.0, warmup_steps=5)
    assert "the learning rate never reaches 5e-05" in said and "5" in said


@pytest.mark.parametrize(
    ("changes", "typed", "limit"),
    [
        ({"epochs": None, "budget": "4000steps"}, ["budget"], None),
        ({"epochs": None, "budget": "2200sentences"}, ["budget"], None),
        ({"epochs": None, "budget": "600s"}, ["budget"], None),
        ({"epochs": None, "budget": "4000steps"}, ["budget", "max_steps"], 1000),
        ({"epochs": None, "budget": "4000steps"}, [], 1000),
        ({}, ["epochs"], None),
    ],
)
def test_a_length_that_is_typed_wins_over_the_recipe_s_limit(
    changes: dict[str, Any], typed: list[str], limit: int | None
) -> None:
    assert with_typed_length(recipe_of(**changes), 2, typed).max_steps == limit
