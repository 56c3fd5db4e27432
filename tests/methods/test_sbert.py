"""SBERT: its loss and gradient against numpy, and what trains and what is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from harness import batch_of
from models import built, sentences
from torch.nn.functional import cross_entropy

from bench.methods.sbert import SBERT, pair_features


@pytest.fixture
def method(backbone: str, tmp_path: Path) -> SBERT:
    return built(SBERT, backbone, tmp_path, setting="supervised", dropout=0.0)


def test_loss_and_gradient_of_the_classifier_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    u, v, W, b = (rng.normal(size=size) for size in ((4, 5), (4, 5), (3, 15), 3))
    labels = np.array([0, 2, 1, 2])
    x = np.concatenate([u, v, np.abs(u - v)], axis=1)
    logits = x @ W.T + b
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    wanted = -np.log(p[range(4), labels]).mean()
    error = (p - np.eye(3)[labels]) / 4  # d loss / d logits
    du, sign = error @ W[:, :5] + error @ W[:, 10:] * np.sign(u - v), np.sign(u - v)
    dv = error @ W[:, 5:10] - error @ W[:, 10:] * sign
    tu, tv, tW = (torch.tensor(a, requires_grad=True) for a in (u, v, W))
    loss = cross_entropy(pair_features(tu, tv) @ tW.T + torch.tensor(b), torch.tensor(labels))
    loss.backward()
    assert loss.item() == pytest.approx(wanted, abs=1e-12)
    for given, found in ((du, tu.grad), (dv, tv.grad), (error.T @ x, tW.grad)):
        np.testing.assert_allclose(found, given, rtol=0, atol=1e-12)


def test_the_loss_is_that_of_the_scored_vectors_and_the_labels(method: SBERT) -> None:
    labels, texts = [2, 0, 1, 1, 0], (sentences(5, seed=1), sentences(5, seed=2, longest=20))
    with torch.no_grad():
        found = method(batch_of(method, *texts, labels=labels)).total.item()
    u, v = (method.encode(one).astype(float) for one in texts)
    W, b = (p.detach().double().numpy() for p in (method.classifier.weight, method.classifier.bias))
    logits = np.concatenate([u, v, np.abs(u - v)], axis=1) @ W.T + b
    wanted = np.mean(np.log(np.exp(logits).sum(1)) - logits[range(5), labels])
    assert found == pytest.approx(wanted, abs=1e-5)
