"""MNTP, Pcc-tuning, AnglE-LLaMA and LLM2Vec's SimCSE step against plain loops and formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from every_family import EVERY
from harness import batch_of, training
from models import built, sentences

from bench.method import Recipe, Value
from bench.methods.angle import complex_similarity, in_batch
from bench.methods.angle_llama import AnglELLaMA
from bench.methods.cosent import order_loss, pair_cosines
from bench.methods.mntp import MNTP
from bench.methods.pcc_tuning import PccTuning, correlation
from bench.methods.simcse import SimCSE
from bench.run.length import length_notes

SCORES = [0.0, 0.5, 1.0, 0.2]


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> str:
    return EVERY["qwen3"](tmp_path_factory.mktemp("trained") / "qwen")


def test_mntp_predicts_a_masked_token_from_the_state_before_it(qwen: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    values: dict[str, Any] = {"setting": "unsupervised", "dropout": 0.0, "mask_probability": 0.5}
    method = built(MNTP, qwen, tmp_path, **values).double()
    batch = batch_of(method, sentences(5, seed=1))
    with training(method):
        torch.manual_seed(3)
        masked, labels = method.masked(batch.columns[0])
        torch.manual_seed(3)
        loss = method(batch).total.item()
    assert not (labels[:, 0] != -100).any(), "nothing stands before the first token"
    model = AutoModelForCausalLM.from_pretrained(qwen, dtype=torch.float64).eval()
    each = []
    for row in range(len(masked)):
        length = int(batch.columns[0]["attention_mask"][row].sum())
        with torch.no_grad():
            logits = model(input_ids=masked[row : row + 1, :length]).logits[0]
        for place in range(1, length):
            if labels[row, place] != -100:
                each.append(-logits[place - 1].log_softmax(0)[labels[row, place]].item())
    assert len(each) > 5 and loss == pytest.approx(np.mean(each), abs=1e-6)
    assert (masked == method.mask_id).any()


def test_mntp_masks_all_that_are_chosen(qwen: str, tmp_path: Path) -> None:
    method = built(MNTP, qwen, tmp_path, setting="unsupervised", variant="all-masked")
    (features,) = batch_of(method, sentences(20, seed=1)).columns
    masked, labels = method.masked(features)
    chosen = labels != -100
    assert (masked[chosen] == method.mask_id).all()
    assert torch.equal(masked[~chosen], features["input_ids"][~chosen])
    assert method.backbone.tokenizer.decode([method.mask_id]) == "_"


def test_the_correlation_is_pearsons_and_flat_numbers_have_none() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=9), rng.normal(size=9)
    found = correlation(torch.tensor(a), torch.tensor(b)).item()
    assert found == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-12)
    flat = torch.ones(4, requires_grad=True)
    result = correlation(flat * 1.0, torch.tensor([1.0, 2, 3, 4]))
    result.backward()
    assert result.item() == 0 and not flat.grad.any()  # type: ignore[union-attr]


@pytest.mark.parametrize("faithful", [False, True])
def test_pcc_tuning_correlates_cosines_with_scores(
    qwen: str, faithful: bool, tmp_path: Path
) -> None:
    values: dict[str, Any] = {"setting": "supervised", "dropout": 0.0, "faithful": faithful}
    method = built(PccTuning, qwen, tmp_path, clean_at_test="none", **values).double()
    x, y = sentences(4, seed=1), sentences(4, seed=2)
    loss = method(batch_of(method, x, y, scores=SCORES)).total.item()
    a, b = torch.from_numpy(method.encode(x)), torch.from_numpy(method.encode(y))
    cosines = torch.nn.functional.cosine_similarity(a, b).numpy()
    r = np.corrcoef(cosines, SCORES)[0, 1]
    if faithful:
        products = (cosines - cosines.mean()) * (np.array(SCORES) - np.mean(SCORES))
        r = products.mean() / (cosines.std(ddof=1) * np.std(SCORES, ddof=1))
    assert loss == pytest.approx(1 - r, abs=1e-5)


def test_angle_llama_has_the_three_losses_of_angle(qwen: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"setting": "supervised", "dropout": 0.0, "clean_at_test": "none"}
    method = built(AnglELLaMA, qwen, tmp_path, **values).double()
    x, y = sentences(4, seed=1), sentences(4, seed=2)
    total = method(batch_of(method, x, y, scores=SCORES)).total.item()
    a = torch.from_numpy(method.encode(x)).double()
    b = torch.from_numpy(method.encode(y)).double()
    scores = torch.tensor(SCORES, dtype=torch.float64)
    expected = order_loss(pair_cosines(a, b), scores, 20.0)
    expected = expected + 35 * in_batch(a, b, scores >= 1, 20.0)
    expected = expected + order_loss(complex_similarity(a, b), scores, 1.0)
    assert total == pytest.approx(expected.item(), rel=1e-4)


def test_the_schedule_may_be_longer_than_the_training(qwen: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"setting": "unsupervised", "pooling": "avg", "learning_rate": 1.0}
    method = built(SimCSE, qwen, tmp_path, schedule_steps=23438, **values)
    assert method.learning_rate(1000, 1000) == pytest.approx(1 - 1000 / 23438)
    plain = built(SimCSE, qwen, tmp_path, **values)
    assert plain.learning_rate(1000, 1000) == 0
    short = Recipe(method.recipe.values_with_source() | {"schedule_steps": Value(5, "test")})
    (note,) = length_notes(short, 640, epochs_requested=False)
    assert "schedule_steps=5 ends before the training of 10 steps" in note
