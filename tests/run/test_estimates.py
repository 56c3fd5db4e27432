"""The arithmetic of a plan, computed again by hand; memory:
tests/training/test_memory_estimate.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from models import built

from bench.backbones import Reference
from bench.data.corpora import Corpus
from bench.method import EncoderShape, TorchMethod, TrainingCost
from bench.run.cards import STEP_SECONDS
from bench.run.corpora import AbsentCorpus
from bench.run.estimates import (
    disk_bytes,
    encoding_seconds,
    estimate,
    known_steps,
    shape_of,
    training_seconds,
)
from bench.run.planned import PlannedRun
from bench.run.plugins import discover
from bench.run.recipes import merge_recipe

REGISTRY = discover()
SIMCSE = REGISTRY["simcse"].cls
LAYERS, WORDS = 84_934_656, 768 * 30_522  # BERT base's


def run_of(method: str = "simcse", rows: int = 1_000_000, **values: str) -> PlannedRun:
    corpus: Corpus = AbsentCorpus("text", ("sentence",), rows)
    plugin = REGISTRY[method]
    about: dict[str, Any] = {"variant": "", "setting": "unsupervised", "seed": 1}
    recipe = merge_recipe(plugin.cls, None, "", values, trained=True)
    backbone = Reference(name="bert-base-uncased", revision="unknown", path=None, hub=True)
    return PlannedRun(plugin=plugin, backbone=backbone, recipe=recipe, corpus=corpus, **about)


def seconds(run: PlannedRun, speed: float, rows: int, steps: int, chunk: int | None = None) -> Any:
    shape = shape_of(run)
    assert shape is not None
    return training_seconds(run, shape, rows, steps, speed, chunk)


def test_the_time_of_unsupervised_simcse_by_hand() -> None:
    """BERT base has 85 million parameters in its layers; a million rows of two sentences, of 25.6
    tokens each.
    """
    run, tokens = run_of(), 1_000_000 * 2 * 25.6
    assert seconds(run, 1e14, 1_000_000, 15_625) == pytest.approx(6 * LAYERS * tokens / 1e14)
    chunked = seconds(run, 1e14, 1_000_000, 15_625, chunk=16)
    assert chunked == pytest.approx(8 * LAYERS * tokens / 1e14)
    shape = shape_of(run)
    assert shape is not None
    assert encoding_seconds(run, shape, 3_000, 1e14) == pytest.approx(
        2 * LAYERS * 3_000 * 25.6 / 1e14
    )


def test_a_frozen_encoder_takes_four_operations_and_masked_copies_a_second_pass() -> None:
    tokens = 1_000_000 * 2 * 25.6
    frozen = seconds(run_of("promcse"), 1e14, 1_000_000, 15_625)
    assert frozen == pytest.approx(4 * LAYERS * tokens / 1e14)
    copies = seconds(run_of("promcse", mlm="true"), 1e14, 1_000_000, 15_625)
    assert copies == pytest.approx(2 * frozen)


COSTLY = [
    ("simcse", {}),
    ("simcse", {"mlm": True}),
    ("promcse", {}),
    ("promcse", {"prompt_length": 40}),
    ("promcse", {"mlm": True}),
    ("dcpcse", {"mlm": True, "freeze_lm_head": True}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), COSTLY)
def test_a_method_says_how_many_weights_it_holds(
    name: str, values: dict[str, Any], tmp_path: Path
) -> None:
    """Counted in the method as it is built; biases, layer norms and positions are not in the
    promise.
    """
    cls = REGISTRY[name].cls
    method = built(cls, "builtin", tmp_path, setting="unsupervised", **values)
    shape = EncoderShape.from_sizes(method.encoder.config.to_dict())
    assert shape is not None
    cost = cls.training_cost(method.recipe, shape, 1)
    trained = sum(p.numel() for p in method.parameters() if p.requires_grad)
    frozen = sum(p.numel() for p in method.parameters() if not p.requires_grad)
    assert cost.trained == pytest.approx(trained, rel=0.05)
    assert cost.frozen == pytest.approx(frozen, rel=0.05)
    assert cost.texts_per_row == (4 if method.recipe.mlm else 2)


def test_a_plugin_that_freezes_its_encoder_says_so_in_a_field() -> None:
    """Not in the text of ``trains``, which only readers read."""

    class Probe(TorchMethod):
        name, trains = "probe", "a head; the encoder is frozen"
        settings = ("unsupervised",)

    shape = EncoderShape(layers=2, hidden=8, inner=32, vocabulary=100)
    recipe = merge_recipe(Probe, None, "", {}, trained=True)
    assert Probe.training_cost(recipe, shape, 1).trained == shape.weights == 2 * (256 + 512) + 800
    Probe.encoder_is_frozen = True
    assert Probe.training_cost(recipe, shape, 3) == TrainingCost(3, trained=64, frozen=2_336)


def test_the_number_of_processes_counts_if_the_method_says_so() -> None:
    for name, values, depends in (
        ("simcse", {}, False),
        ("simcse", {"faithful": "true"}, True),
        ("whitening", {}, False),
    ):
        cls = REGISTRY[name].cls
        recipe = merge_recipe(cls, None, "", values, trained=True)
        assert cls.depends_on_processes(recipe) == depends, (name, values)


def test_a_card_gives_a_step_its_least_time_and_every_dev_score_its_own() -> None:
    steps, speed = 15_625, 0.20 * 312e12
    training = 6 * LAYERS * 1_000_000 * 2 * 25.6 / speed
    without = estimate(_half(run_of(select_on="last")), {}, "cuda:A100").seconds
    assert without == pytest.approx(max(training, steps * STEP_SECONDS))
    dev = 125 * 2 * LAYERS * 3_000 * 25.6 / speed
    assert estimate(_half(run_of()), {}, "cuda:A100").seconds == pytest.approx(without + dev)
    assert estimate(_half(run_of(rows=0)), {}, "cuda:A100").seconds is None


def _half(run: PlannedRun) -> PlannedRun:
    return replace(run, precision="bf16")


def test_the_disk_holds_two_checkpoints_two_states_and_one_that_is_written() -> None:
    """Checkpoints are float32; a state holds each trained number and AdamW's two moments."""
    whole = disk_bytes([run_of()])
    assert whole == (2 * 4 + 3 * 12) * (LAYERS + WORDS)
    head = disk_bytes([run_of(mlm="true")])
    assert head == whole + 44 * (WORDS + 768**2)
    prompt = disk_bytes([run_of("promcse")])
    assert prompt == 44 * (2 * 12 * 16 * 768 + 768**2)
    both = {"mlm": "true", "freeze_lm_head": "true"}
    assert disk_bytes([run_of("promcse", **both)]) == prompt
    five = disk_bytes([run_of()] * 5)
    assert five == whole + 4 * 4 * (LAYERS + WORDS), "of each run that is done a checkpoint stays"


def test_the_last_batch_of_an_epoch_is_short_in_rows_and_whole_in_steps() -> None:
    run = run_of(rows=65, batch_size="64", epochs="2", select_on="last")
    assert known_steps(run.recipe, 65) == 4
    assert seconds(run, 1e12, 65, 4) == pytest.approx(6 * LAYERS * 130 * 2 * 25.6 / 1e12)
    assert known_steps(run.recipe, None) is None
    assert known_steps(merge_recipe(SIMCSE, None, "", {"max_steps": "7"}, trained=True), None) == 7
    for budget, rows, steps in (
        ("300steps", None, 300),
        ("1e6sentences", None, None),
        ("640sentences", 64, 10),
        ("10m", 64, None),
    ):
        assert (
            known_steps(merge_recipe(SIMCSE, None, "", {"budget": budget}, trained=True), rows)
            == steps
        ), budget
