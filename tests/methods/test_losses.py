"""InfoNCE against the authors' values and against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from methods.losses import cosine_matrix, info_nce


def tensor(rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(
    ("key", "weight"),
    [("infonce_unsup", None), ("infonce_hard_negative_weight_0", 0.0), ("infonce_hard_negative_weight_1", 1.0)],
)
def test_info_nce_is_that_of_the_authors_code(reference, key: str, weight: float | None) -> None:
    inputs, wanted = reference["contrastive"]["inputs"], reference["contrastive"][key]
    z1 = tensor(inputs["z1"]).requires_grad_()
    negatives = {} if weight is None else {"negatives_BD": tensor(inputs["z3"]), "hard_negative_weight": weight}
    loss = info_nce(z1, tensor(inputs["z2"]), temperature=inputs["temperature"], **negatives)
    loss.backward()
    assert loss.item() == pytest.approx(wanted["loss"], abs=1e-10)
    np.testing.assert_allclose(z1.grad, wanted["grad_z1"], rtol=0, atol=1e-10)


def test_cosines_are_those_of_the_authors_code(reference) -> None:
    contrastive = reference["contrastive"]
    z1, z2, z3 = (tensor(contrastive["inputs"][name]) for name in ("z1", "z2", "z3"))
    np.testing.assert_allclose(cosine_matrix(z1, z2), contrastive["cosine_z1_z2"], rtol=0, atol=1e-11)
    np.testing.assert_allclose(cosine_matrix(z1, z3), contrastive["cosine_z1_z3"], rtol=0, atol=1e-11)


def by_hand(anchors, positives, negatives, temperature: float, weight: float):
    """Loss and gradients by loops: d cos(a, c) / d a = (c/|c| - cos a/|a|) / |a|, d loss / d logit = (softmax - one hot) / B."""
    candidates = [*positives, *(negatives if negatives is not None else [])]
    count, loss = len(anchors), 0.0
    grad_anchors, grad_candidates = np.zeros_like(anchors), np.zeros((len(candidates), anchors.shape[1]))
    for i, a in enumerate(anchors):
        size_a, logits, cosines = math.sqrt(sum(x * x for x in a)), [], []
        for j, c in enumerate(candidates):
            cosines.append(sum(x * y for x, y in zip(a, c, strict=True)) / size_a / math.sqrt(sum(y * y for y in c)))
            logits.append(cosines[-1] / temperature + (weight if j == count + i else 0.0))
        total = sum(math.exp(x) for x in logits)
        loss += (math.log(total) - logits[i]) / count
        for j, c in enumerate(candidates):
            pull = (math.exp(logits[j]) / total - (j == i)) / count / temperature
            size_c = np.linalg.norm(c)
            grad_anchors[i] += pull * (c / size_c - cosines[j] * a / size_a) / size_a
            grad_candidates[j] += pull * (a / size_a - cosines[j] * c / size_c) / size_c
    return loss, grad_anchors, grad_candidates


@pytest.mark.parametrize("with_negatives", [False, True])
@pytest.mark.parametrize(
    ("B", "D", "temperature", "weight"), [(1, 3, 1.0, 0.0), (5, 7, 0.05, 0.0), (7, 2, 0.3, 1.0), (3, 11, 0.1, -2.0)]
)
def test_info_nce_and_all_its_gradients_agree_with_a_plain_loop(
    B: int, D: int, temperature: float, weight: float, with_negatives: bool
) -> None:
    rng = np.random.default_rng(B * D)
    rows = [rng.normal(size=(B, D)) for _ in range(3 if with_negatives else 2)]
    loss, grad_anchors, grad_candidates = by_hand(rows[0], rows[1], rows[2] if with_negatives else None, temperature, weight)
    ours = [tensor(row).requires_grad_() for row in rows]
    found = info_nce(*ours, temperature=temperature, hard_negative_weight=weight)
    found.backward()
    assert found.item() == pytest.approx(loss, abs=1e-12)
    np.testing.assert_allclose(ours[0].grad, grad_anchors, rtol=0, atol=1e-10)
    np.testing.assert_allclose(torch.cat([one.grad for one in ours[1:]]), grad_candidates, rtol=0, atol=1e-10)


def test_the_weight_of_the_own_hard_negative_multiplies_its_term_by_its_exponential() -> None:
    z = [tensor(np.random.default_rng(3).normal(size=(1, 4))) for _ in range(3)]
    plain = [(z[0] @ other.T / z[0].norm() / other.norm()).item() for other in z[1:]]
    alpha = 2.0
    wanted = -math.log(math.exp(plain[0]) / (math.exp(plain[0]) + alpha * math.exp(plain[1])))
    assert info_nce(*z, temperature=1.0, hard_negative_weight=math.log(alpha)).item() == pytest.approx(wanted, abs=1e-12)


def test_a_zero_vector_has_cosine_zero_and_a_finite_gradient() -> None:
    a = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    loss = info_nce(a, torch.eye(2, 3, dtype=torch.float64), temperature=0.05)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert torch.isfinite(a.grad).all()


def test_cosines_are_computed_in_float32_at_least_under_autocast() -> None:
    a, b = torch.randn(3, 8, generator=torch.manual_seed(0)), torch.randn(4, 8)
    with torch.autocast("cpu", torch.bfloat16):
        found = cosine_matrix(a.bfloat16(), b.bfloat16())
    assert found.dtype == torch.float32
    wanted = torch.nn.functional.cosine_similarity(a.bfloat16().float()[:, None], b.bfloat16().float()[None], dim=-1)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("positives", "negatives"), [(3, None), (2, 3), (1, None)])
def test_rows_that_do_not_belong_together_are_refused(positives: int, negatives: int | None) -> None:
    with pytest.raises(ValueError, match="2 anchors"):
        info_nce(
            torch.ones(2, 4), torch.ones(positives, 4), None if negatives is None else torch.ones(negatives, 4), temperature=1.0
        )
