"""SG-OPT: loss and gradient against the reference and by loops, the distance, the frozen copy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import EIGHT as TEXTS
from harness import batch_of
from models import built

from bench.methods.sg_opt import SGOpt, self_guided


@pytest.fixture
def build(backbone: str, tmp_path: Path) -> Callable[..., SGOpt]:
    return partial(built, SGOpt, backbone, tmp_path, setting="unsupervised", head_width=64)


def by_hand(
    cls: np.ndarray, layers: np.ndarray, temperature: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """The loss as the paper writes it, by loops, and its gradients."""
    (B, K, _), loss = layers.shape, 0.0
    grad_cls, grad_layers = np.zeros_like(cls), np.zeros_like(layers)
    for i in range(B):
        cosine = [
            [cls[i] @ h / np.linalg.norm(cls[i]) / np.linalg.norm(h) for h in layers[j]]
            for j in range(B)
        ]
        foreign = 0.0
        for j in range(B):
            if j != i:
                foreign += sum(np.exp(c / temperature) for c in cosine[j])
        pull = np.zeros((B, K))
        for k in range(K):
            own = np.exp(cosine[i][k] / temperature)
            loss -= np.log(own / (own + foreign)) / (B * K)
            pull[i, k] -= foreign / (own + foreign)
            for j in range(B):
                if j != i:
                    pull[j] += np.exp(np.array(cosine[j]) / temperature) / (own + foreign)
        for j in range(B):
            for m in range(K):
                h = layers[j, m]
                size = np.linalg.norm(cls[i])
                other = np.linalg.norm(layers[j, m])
                weight = pull[j, m] / (B * K * temperature)
                grad_cls[i] += weight * (h / other - cosine[j][m] * cls[i] / size) / size
                grad_layers[j, m] += weight * (cls[i] / size - cosine[j][m] * h / other) / other
    return loss, grad_cls, grad_layers


def test_the_loss_is_that_of_the_authors_code(reference: dict[str, Any]) -> None:
    z1, z2, z3 = (
        torch.tensor(reference["contrastive"]["inputs"][z], dtype=torch.float64)
        for z in ("z1", "z2", "z3")
    )
    loss = self_guided(z1, torch.stack([z2, z3], dim=1), temperature=0.1)
    wanted = reference["other_baselines"]["sg_opt"]["tau_0.1"]
    assert loss.item() == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize(
    ("B", "K", "D", "temperature"), [(2, 1, 3, 1.0), (5, 3, 4, 0.1), (4, 13, 7, 0.05)]
)
def test_loss_and_gradients_agree_with_plain_loops(B, K, D, temperature):
    rng = np.random.default_rng(B)
    cls, layers = (
        torch.tensor(rng.normal(size=size), requires_grad=True) for size in ((B, D), (B, K, D))
    )
    loss = self_guided(cls, layers, temperature=temperature)
    loss.backward()
    given = cls.detach().numpy(), layers.detach().numpy()
    wanted, grad_cls, grad_layers = by_hand(*given, temperature)
    assert loss.item() == pytest.approx(wanted, abs=1e-10)
    np.testing.assert_allclose(cls.grad, grad_cls, rtol=0, atol=1e-10)
    np.testing.assert_allclose(layers.grad, grad_layers, rtol=0, atol=1e-10)


def test_the_loss_follows_from_the_two_copies_and_the_head(build: Callable[..., SGOpt]) -> None:
    method = build(dropout=0.0, temperature=0.1).double()
    batch = batch_of(method, TEXTS[:4])
    with torch.no_grad():
        for parameter in method.encoder.encoder.parameters():
            parameter += 0.01 * torch.randn_like(parameter)
        mask = batch.columns[0]["attention_mask"].numpy()[:, :, None]
        cls = method.encoder(**batch.columns[0]).last_hidden_state[:, 0]
        layers = method.start.module(**batch.columns[0], output_hidden_states=True).hidden_states
        assert len(layers) == 3  # the embedding layer and both others
        means = np.stack([(layer.numpy() * mask).sum(1) / mask.sum(1) for layer in layers], axis=1)
        w1, b1, w2, b2 = (p.numpy() for p in method.head.parameters())
        erf = np.vectorize(math.erf)

        def head(x: np.ndarray) -> np.ndarray:
            for w, b in ((w1, b1), (w2, b2)):
                x = x @ w.T + b
                x = x * 0.5 * (1 + erf(x / 2**0.5))
            return x

        contrast, _, _ = by_hand(head(cls.numpy()), head(means), 0.1)
        copies = method.encoder.parameters(), method.start.module.parameters()
        distance = sum(((a - b) ** 2).sum().item() for a, b in zip(*copies, strict=True))
        found = method.train()(batch)
    assert found.parts["contrast"].item() == pytest.approx(contrast, abs=1e-10)
    assert distance > 0 and found.parts["distance"].item() == pytest.approx(distance, rel=1e-12)
    assert found.total.item() == pytest.approx(contrast + 0.1 * distance, abs=1e-10)
