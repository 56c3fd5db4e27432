"""Focal-InfoNCE: its loss on a model's own vectors, its head, what trains, and the recipes of its paper."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from frozen import batch_in, batch_of, counts, step_of, trained, training
from models import built, sentences
from transformers import AutoModel

from bench.method import BenchError
from bench.run.recipes import merge
from methods.focal_infonce import FocalInfoNCE

BACKBONES = pytest.mark.parametrize("backbone", ["tiny", "tiny_roberta"])


def focal(folder: str, run: Path, **values: Any) -> FocalInfoNCE:
    return built(FocalInfoNCE, folder, run, setting="unsupervised", **values)


def by_hand(z: np.ndarray, tau: float, m: float) -> float:
    """Mean surprise of a row's own view where both views are ``z``: cosine 1 and logit 1 / tau on the diagonal."""
    total = 0.0
    for i, a in enumerate(z):
        s = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for b in z]
        logits = [x * x / tau if j == i else x * (x + m) / tau for j, x in enumerate(s)]
        total += math.log(sum(map(math.exp, logits))) - logits[i]
    return total / len(z)


@BACKBONES
@pytest.mark.parametrize(("tau", "m"), [(0.07, 0.3), (0.05, 0.3), (0.07, 0.0)])
def test_the_loss_is_the_focal_one_of_head_outputs(
    request: Any, backbone: str, tmp_path: Path, tau: float, m: float
) -> None:
    """Without dropout both views are one vector, so that the loss follows from the vectors alone."""
    method = focal(
        request.getfixturevalue(backbone), tmp_path, dropout=0.0, temperature=tau, hardness_m=m
    )
    texts = sentences(5, seed=1)
    with torch.no_grad():
        found = method(batch_of(method, texts)).total.item()
        z = method.head(torch.tensor(method.encode(texts))).double().numpy()
    assert found == pytest.approx(by_hand(z, tau, m), abs=1e-3)


def test_the_two_views_have_dropout_masks_of_their_own_in_one_pass(
    tiny: str, tmp_path: Path
) -> None:
    method = focal(tiny, tmp_path)
    passes, pooled = [], []
    method.encoder.register_forward_hook(
        lambda _m, _i, out: passes.append(len(out.last_hidden_state))
    )
    method.head.register_forward_hook(lambda _m, given, _o: pooled.append(given[0].detach()))
    with training(method):
        method(batch_of(method, sentences(5)))
    assert passes == [10]
    assert all(not torch.equal(a, b) for a, b in zip(*pooled[0].chunk(2), strict=True))


@BACKBONES
def test_encoder_and_head_train(request: Any, backbone: str, tmp_path: Path) -> None:
    folder = request.getfixturevalue(backbone)
    method = focal(folder, tmp_path, learning_rate=1e-2)
    encoder = AutoModel.from_pretrained(folder, add_pooling_layer=False)
    wanted = {f"encoder.{name}" for name, _ in encoder.named_parameters()} | {
        "head.dense.weight",
        "head.dense.bias",
    }
    assert set(trained(method)) == wanted
    assert step_of(method, batch_in(method, "unsupervised")) == wanted


def test_how_many_numbers_train_at_the_papers_sizes() -> None:
    assert counts(FocalInfoNCE, "bert", "base") == {"encoder": 108_891_648, "head": 590_592}
    assert counts(FocalInfoNCE, "roberta", "large")["head"] == 1_049_600


@BACKBONES
def test_a_checkpoint_gives_the_same_vectors(request: Any, backbone: str, tmp_path: Path) -> None:
    first, second = (
        focal(request.getfixturevalue(backbone), tmp_path, seed=seed, learning_rate=1e-2)
        for seed in (1, 2)
    )
    step_of(first, batch_in(first, "unsupervised"))
    first.save(tmp_path / "c")
    texts = sentences(9, seed=5)
    wanted = first.encode(texts)
    assert not np.array_equal(second.encode(texts), wanted)
    second.load(tmp_path / "c")
    assert np.array_equal(second.encode(texts), wanted)


@pytest.mark.parametrize("head_at_test", [False, True])
def test_the_head_is_scored_only_where_the_recipe_says_so(
    tiny: str, tmp_path: Path, head_at_test: bool
) -> None:
    method = focal(tiny, tmp_path, **({"head_at_test": True} if head_at_test else {}))
    texts = sentences(3)
    with torch.no_grad():
        wanted = method.encoder(**method.tokenize(texts)).last_hidden_state[:, 0]
        if head_at_test:
            wanted = torch.tanh(wanted @ method.head.dense.weight.T + method.head.dense.bias)
    np.testing.assert_allclose(method.encode(texts), wanted, rtol=0, atol=1e-6)


def test_sentences_alone_are_its_corpus_and_a_temperature_of_zero_is_refused() -> None:
    assert FocalInfoNCE.settings == ("unsupervised",)
    assert FocalInfoNCE.needs("unsupervised", merge(FocalInfoNCE, None, "", {}, trained=True)) == (
        "sentences",
    )
    with pytest.raises(BenchError, match="must be greater than 0"):
        FocalInfoNCE.check(merge(FocalInfoNCE, None, "", {"temperature": "0"}, trained=True), None)
