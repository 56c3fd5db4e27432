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
        ({"epochs": 1000.5}, ["max_steps=1000 ends the training before the 1000.5 epochs"]),
        ({"max_steps": None}, []),
        ({"requested": False}, []),
        ({"rows": 0}, []),
        ({"rows": 10_000, "epochs": 0.2}, []),
        (
            {"rows": 10_000, "epochs": 0.3},
            ["max_steps=1000 ends the training before the 0.3 epochs"],
        ),
        (
            {"epochs": None, "budget": "1100steps"},
            ["max_steps=1000 ends the training before the budget"],
        ),
        ({"epochs": None, "budget": "1000steps"}, []),
        (
            {"epochs": None, "budget": "2200sentences"},
            ["max_steps=1000 ends the training before the budget"],
        ),
        ({"epochs": None, "budget": "10m"}, []),
    ],
)
def test_a_limit_that_ends_what_was_asked_for(changes: dict[str, Any], said: list[str]) -> None:
    assert notes(**changes) == said


@pytest.mark.parametrize(
    ("warmup", "steps", "noted"), [(0, 5, False), (4, 5, False), (5, 5, True), (500, 5, True)]
)
def test_a_warm_up_that_never_ends(warmup: int, steps: int, noted: bool) -> None:
    said = notes(epochs=float(steps), warmup_steps=warmup)
    assert bool(said) == noted
    if noted:
        assert "the learning rate never reaches 5e-05" in said[0] and str(warmup) in said[0]


@pytest.mark.parametrize(
    ("changes", "typed", "limit"),
    [
        ({"epochs": None, "budget": "4000steps"}, ["budget"], None),
        ({"epochs": None, "budget": "1000steps"}, ["budget"], 1000),
        ({"epochs": None, "budget": "2200sentences"}, ["budget"], None),
        ({"epochs": None, "budget": "2000sentences"}, ["budget"], 1000),
        ({"epochs": None, "budget": "600s"}, ["budget"], None),
        ({"epochs": None, "budget": "4000steps"}, ["budget", "max_steps"], 1000),
        ({"epochs": None, "budget": "4000steps"}, [], 1000),
        ({}, ["epochs"], None),
        ({"epochs": 1000.0}, ["epochs"], 1000),
        ({}, [], 1000),
        ({"epochs": None, "budget": "4000steps", "max_steps": None}, ["budget"], None),
    ],
)
def test_a_length_that_is_typed_wins_over_the_recipe_s_limit(
    changes: dict[str, Any], typed: list[str], limit: int | None
) -> None:
    assert with_typed_length(recipe_of(**changes), 2, typed).max_steps == limit
