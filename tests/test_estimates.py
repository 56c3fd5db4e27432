"""The arithmetic of a plan, computed again by hand; memory: tests/training/test_memory_estimate.py."""

from __future__ import annotations

import pytest

from bench.backbones import SHAPES
from bench.run.estimates import STEP_SECONDS, known_steps, training_seconds
from bench.run.plugins import discover
from bench.run.recipes import merge

SIMCSE = discover()["simcse"].cls
BERT = SHAPES["bert-base-uncased"]


def test_the_time_of_unsupervised_simcse_by_hand() -> None:
    """BERT base has 85 million parameters in its layers; a million rows of two sentences, of 25.6 tokens each."""
    recipe = merge(SIMCSE, None, "", {"select_on": "last"}, trained=True)
    operations = 6 * 84_934_656 * 1_000_000 * 2 * 25.6
    assert training_seconds(SIMCSE, recipe, BERT, 1_000_000, 2, 1e14) == pytest.approx(
        operations / 1e14
    )
    assert training_seconds(
        SIMCSE, recipe, BERT, 1_000_000, 2, 1e18, STEP_SECONDS
    ) == pytest.approx(15_625 * 0.015), "the least"
    scored = merge(SIMCSE, None, "", {}, trained=True)  # 3,000 sentences every 125 steps
    assert training_seconds(SIMCSE, scored, BERT, 1_000_000, 2, 1e14) == pytest.approx(
        (operations + 125 * 2 * 84_934_656 * 3_000 * 25.6) / 1e14
    )
    assert training_seconds(SIMCSE, recipe, {}, 1_000_000, 2, 1e14) is None
    assert training_seconds(SIMCSE, recipe, BERT, None, 2, 1e14) is None


def test_the_last_batch_of_an_epoch_is_short_in_rows_and_whole_in_steps() -> None:
    recipe = merge(
        SIMCSE, None, "", {"batch_size": "64", "epochs": "2", "select_on": "last"}, trained=True
    )
    assert known_steps(recipe, 65) == 4
    assert training_seconds(SIMCSE, recipe, BERT, 65, 2, 1e12) == pytest.approx(
        6 * 84_934_656 * 130 * 2 * 25.6 / 1e12
    )
    assert known_steps(recipe, None) is None
    assert known_steps(merge(SIMCSE, None, "", {"max_steps": "7"}, trained=True), None) == 7
    for budget, rows, steps in (
        ("300steps", None, 300),
        ("1e6sentences", None, None),
        ("640sentences", 64, 10),
        ("10m", 64, None),
    ):
        assert (
            known_steps(merge(SIMCSE, None, "", {"budget": budget}, trained=True), rows) == steps
        ), budget
