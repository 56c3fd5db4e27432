"""IS-BERT: mutual information by loops, the convolutions, what is scored."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from harness import EIGHT as TEXTS
from harness import batch_of
from models import built

from bench.methods.is_bert import ISBert, information_loss


@pytest.fixture
def build(backbone: str, tmp_path: Path) -> Callable[..., ISBert]:
    return partial(built, ISBert, backbone, tmp_path, setting="unsupervised", channels=8)


def padded(
    tokens: np.ndarray, lengths: list[int], fill: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token vectors behind one another as (n, T, D) with ``fill`` at padding, and the mask."""
    local = torch.full((len(lengths), max(lengths), tokens.shape[1]), fill, dtype=torch.float64)
    mask = torch.zeros(local.shape[:2], dtype=torch.int64)
    for i, part in enumerate(np.split(tokens, np.cumsum(lengths)[:-1])):
        local[i, : len(part)], mask[i, : len(part)] = torch.tensor(part), 1
    return local, mask


def by_hand(
    local: torch.Tensor, mask: torch.Tensor, sentences: torch.Tensor
) -> tuple[float, np.ndarray, np.ndarray]:
    """The loss by loops over (token, sentence) pairs, and its gradients."""
    n, tokens = len(sentences), int(mask.sum())
    loss = 0.0
    grad_local = np.zeros(local.shape)
    grad_sentences = np.zeros(sentences.shape)
    for i, t in mask.nonzero().tolist():
        for j in range(n):
            r = float(local[i, t] @ sentences[j])
            if i == j:
                loss -= (math.log(2) - math.log1p(math.exp(-r))) / tokens
                slope = -1 / (1 + math.exp(r)) / tokens
            else:
                loss += (math.log1p(math.exp(r)) - math.log(2)) / (tokens * (n - 1))
                slope = 1 / (1 + math.exp(-r)) / (tokens * (n - 1))
            grad_local[i, t] += slope * sentences[j].numpy()
            grad_sentences[j] += slope * local[i, t].numpy()
    return loss, grad_local, grad_sentences


@pytest.mark.parametrize("lengths", [[3, 1, 4, 2], [7]])
@pytest.mark.parametrize("size", [0.5, 6.0])
def test_loss_and_gradients_agree_with_plain_loops(lengths: list[int], size: float) -> None:
    """With 6.0 some products are beyond 20, where torch's softplus is no longer exact."""
    rng = np.random.default_rng(len(lengths))
    local, mask = padded(size * rng.normal(size=(sum(lengths), 5)), lengths, fill=100.0)
    sentences = torch.tensor(rng.normal(size=(len(lengths), 5)))
    wanted, grad_local, grad_sentences = by_hand(local, mask, sentences)
    loss = information_loss(local.requires_grad_(), mask, sentences.requires_grad_())
    loss.backward()
    assert loss.item() == pytest.approx(wanted, abs=1e-10)
    np.testing.assert_allclose(local.grad, grad_local, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sentences.grad, grad_sentences, rtol=0, atol=1e-10)


def test_local_features_are_three_convolutions_over_each_sentence_alone(build):
    """Computed by hand, sentence by sentence: no padding, zeros beyond both ends."""
    method = build(dropout=0.0).double()
    (features,) = batch_of(method, TEXTS).columns
    means = []
    with torch.no_grad():
        found = method.local_features(features)
        for i, mask in enumerate(features["attention_mask"]):
            ids = features["input_ids"][i, mask.bool()][None]
            states = method.encoder(input_ids=ids).last_hidden_state[0].numpy()
            parts = []
            for convolution, width in zip(method.convolutions, (1, 3, 5), strict=True):
                weight, bias = convolution.weight.numpy(), convolution.bias.numpy()
                assert weight.shape[2] == width
                around = np.pad(states, ((width // 2, width // 2), (0, 0)))
                rows = [around[t : t + width] for t in range(len(states))]
                parts.append([np.einsum("th,cht->c", row, weight) + bias for row in rows])
            wanted = np.concatenate(parts, axis=1)
            np.testing.assert_allclose(found[i, : len(wanted)], wanted, rtol=0, atol=1e-10)
            means.append(wanted.mean(0))
        np.testing.assert_allclose(method.embed(features), np.stack(means), rtol=0, atol=1e-10)
        loss = method.train()(batch_of(method, TEXTS)).total.item()
    wanted_loss, _, _ = by_hand(found, features["attention_mask"], torch.tensor(np.stack(means)))
    assert loss == pytest.approx(wanted_loss, abs=1e-10)
