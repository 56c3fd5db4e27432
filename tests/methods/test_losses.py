"""Every loss and its gradients: plain loops on random input, and the laws that they keep. The
authors' values: tests/golden/test_parity.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from harness import double, leaves, same
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.methods.losses import energy_hinge, focal_info_nce, info_nce, nt_xent


@pytest.fixture
def z(reference: dict[str, Any]) -> list[torch.Tensor]:
    return leaves(reference["contrastive"]["inputs"], "z1", "z2", "z3")


@pytest.mark.parametrize("tau", [0.04, 0.1])
def test_nt_xent_is_that_of_the_baselines(reference, z, tau: float) -> None:
    wanted = reference["other_baselines"]["ntxent_2n_mean"][f"tau_{tau}"]
    same(nt_xent(*z[:2], temperature=tau), wanted)


def cosine_of(a, c) -> float:
    return (
        sum(x * y for x, y in zip(a, c, strict=True))
        / math.sqrt(sum(x * x for x in a))
        / math.sqrt(sum(y * y for y in c))
    )


def chained(anchors, candidates, pull) -> tuple[np.ndarray, np.ndarray]:
    """Gradients for anchors and candidates from pull[i, j] = d loss / d cos(a_i, c_j): d cos / d a
    = (c/|c| - cos a/|a|) / |a|.
    """
    grad_anchors, grad_candidates = np.zeros_like(anchors), np.zeros_like(candidates)
    for i, a in enumerate(anchors):
        for j, c in enumerate(candidates):
            cosine = cosine_of(a, c)
            size_a = np.linalg.norm(a)
            size_c = np.linalg.norm(c)
            grad_anchors[i] += pull[i, j] * (c / size_c - cosine * a / size_a) / size_a
            grad_candidates[j] += pull[i, j] * (a / size_a - cosine * c / size_c) / size_c
    return grad_anchors, grad_candidates


def softmax_loss(logits, own, slopes) -> tuple[float, np.ndarray]:
    """Mean surprise of column own[i] of each row, and its slope by cosine where logit k of row i
    has the slope slopes[i][k].
    """
    loss, pull = 0.0, np.zeros((len(logits), len(logits[0])))
    for i, row in enumerate(logits):
        total = sum(math.exp(x) for x in row)
        loss += (math.log(total) - row[own[i]]) / len(logits)
        for k, x in enumerate(row):
            pull[i, k] = (math.exp(x) / total - (k == own[i])) / len(logits) * slopes[i][k]
    return loss, pull


def info_nce_by_hand(anchors, positives, negatives, *, temperature, hard_negative_weight):
    candidates, logits = [*positives, *negatives], []
    for i, a in enumerate(anchors):
        row = [cosine_of(a, c) / temperature for c in candidates]
        if len(negatives):
            row[len(positives) + i] += hard_negative_weight
        logits.append(row)
    slopes = [[1 / temperature] * len(candidates)] * len(anchors)
    return softmax_loss(logits, list(range(len(anchors))), slopes)


def hinge_by_hand(anchors, positives, negatives, *, margin):
    candidates, loss = [*positives, *negatives], 0.0
    pull = np.zeros((len(anchors), len(candidates)))
    for i, a in enumerate(anchors):
        wrong = [(cosine_of(a, c), k) for k, c in enumerate(candidates) if k != i]
        hardest, column = max(wrong)
        hinge = margin - cosine_of(a, positives[i]) + hardest
        if hinge > 0:
            loss += hinge / len(anchors)
            pull[i, i] -= 1 / len(anchors)
            pull[i, column] += 1 / len(anchors)
    return loss, pull


def focal_by_hand(anchors, positives, _negatives, *, temperature, m):
    logits, slopes = [], []
    for i, a in enumerate(anchors):
        cosines = [(cosine_of(a, c), 0 if k == i else m) for k, c in enumerate(positives)]
        logits.append([s * (s + extra) / temperature for s, extra in cosines])
        slopes.append([(2 * s + extra) / temperature for s, extra in cosines])
    return softmax_loss(logits, list(range(len(anchors))), slopes)


@st.composite
def batches(draw, hard: bool | None = None) -> list[np.ndarray]:
    """Anchors, positives[, negatives]: random normal, of odd sizes, with further candidates."""
    B, D = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    C = B + draw(st.integers(0, 3))
    groups = 1 + (draw(st.booleans()) if hard is None else hard)
    return [rng.normal(size=(B, D)), *rng.normal(size=(groups, C, D))]


def agrees(loss: Callable, by_hand: Callable, rows: list[np.ndarray]) -> None:
    ours = [double(row).requires_grad_() for row in rows]
    found = loss(*ours)
    found.backward()
    wanted, pull = by_hand(rows[0], rows[1], rows[2] if len(rows) > 2 else [])
    grad_anchors, grad_candidates = chained(rows[0], np.concatenate(rows[1:]), pull)
    assert found.item() == pytest.approx(wanted, abs=1e-10)
    scale = max(1.0, np.abs(pull).max())  # vectors close to zero have large gradients
    np.testing.assert_allclose(ours[0].grad, grad_anchors, rtol=1e-9, atol=1e-10 * scale)
    np.testing.assert_allclose(
        torch.cat([one.grad for one in ours[1:]]), grad_candidates, rtol=1e-9, atol=1e-10 * scale
    )


BY_HAND: dict[str, tuple[Any, Any, bool | None, tuple[tuple[float, ...], ...]]] = {
    "info_nce": (info_nce, info_nce_by_hand, None, ((0.03, 0.05, 0.3, 1.0), (-2, 0, 0.5, 2))),
    "energy_hinge": (energy_hinge, hinge_by_hand, True, ((0.0, 0.2, 0.5, 2.5),)),
    "focal_info_nce": (focal_info_nce, focal_by_hand, False, ((0.05, 0.07, 1.0), (-0.5, 0, 0.9))),
}
NAMES = {"info_nce": ("temperature", "hard_negative_weight"), "energy_hinge": ("margin",)}
NAMES |= {"focal_info_nce": ("temperature", "m")}


@pytest.mark.parametrize("name", BY_HAND)
@settings(max_examples=30)
@given(data=st.data())
def test_a_loss_and_all_its_gradients_agree_with_a_plain_loop(name: str, data) -> None:
    loss, by_hand, hard, values = BY_HAND[name]
    given_ = dict(zip(NAMES[name], (data.draw(st.sampled_from(v)) for v in values), strict=True))
    rows = data.draw(batches(hard))
    agrees(partial(loss, **given_), partial(by_hand, **given_), rows)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(2, 7), st.integers(0, 99), st.sampled_from([0.04, 0.1, 1.0]))
def test_nt_xent_and_its_gradients_agree_with_a_plain_loop(B, D, seed, temperature):
    rows = np.random.default_rng(seed).normal(size=(2 * B, D))
    loss, gradient = 0.0, np.zeros_like(rows)
    for i in range(2 * B):
        others = [k for k in range(2 * B) if k != i]
        logits = [cosine_of(rows[i], rows[k]) / temperature for k in others]
        slopes = [[1 / temperature] * len(others)]
        mine, pull = softmax_loss([logits], [others.index((i + B) % (2 * B))], slopes)
        of_anchor, of_others = chained(rows[i : i + 1], rows[others], pull)
        loss += mine / (2 * B)
        gradient[i] += of_anchor[0] / (2 * B)
        gradient[others] += of_others / (2 * B)
    ours = double(rows).requires_grad_()
    found = nt_xent(ours[:B], ours[B:], temperature=temperature)
    found.backward()
    assert found.item() == pytest.approx(loss, abs=1e-10)
    np.testing.assert_allclose(ours.grad, gradient, rtol=1e-9, atol=1e-9)


def test_a_zero_vector_has_cosine_zero_and_a_finite_gradient() -> None:
    a = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    loss = info_nce(a, torch.eye(2, 3, dtype=torch.float64), temperature=0.05)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert torch.isfinite(a.grad).all()


@pytest.mark.parametrize(
    "loss",
    [
        lambda *z: info_nce(*z, temperature=0.05),
        lambda *z: focal_info_nce(*z[:2], temperature=0.05, m=0.3),
        lambda *z: nt_xent(*z[:2], temperature=0.05),
        lambda *z: energy_hinge(*z, margin=0.2),
    ],
)
@pytest.mark.usefixtures("bf16")
def test_half_precision_vectors_give_a_float32_loss(loss: Callable) -> None:
    z = [torch.randn(3, 8, generator=torch.manual_seed(seed)).bfloat16() for seed in range(3)]
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(*z)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, loss(*(one.float() for one in z)), rtol=0, atol=1e-5)
