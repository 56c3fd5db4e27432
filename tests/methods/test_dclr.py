"""DCLR: weights, losses and noise against numbers made elsewhere; the teacher; what trains and is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fine_tuned import TEXTS, batch_of, check_checkpoint, check_resume, check_step
from models import built
from torch import Tensor

from bench.method import BenchError, TorchMethod
from methods.dclr import DCLR, debiased, instance_weights, uphill
from methods.losses import cosine_matrix

BACKBONES = ("tiny", "tiny_roberta")


@pytest.fixture(params=BACKBONES)
def folder(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def dclr(folder: str, tmp_path: Path, **values: Any) -> DCLR:
    return built(DCLR, folder, tmp_path, setting="unsupervised", **({"teacher": folder} | values))


def by_hand(cosines: np.ndarray, weights: np.ndarray, form: str, tau: float, m: float = 0.0) -> float:
    """The three losses as the formulas read, row by row."""
    n, C = cosines.shape
    w = np.concatenate([weights, np.ones((n, C - weights.shape[1]))], axis=1)
    if form == "code":
        e = np.exp(cosines / tau * w)
        p = e / e.sum(1, keepdims=True)
        return -np.mean([[np.log(p[i, j]) if i == j else np.log(1 - p[i, j]) for j in range(C)] for i in range(n)])
    logits = cosines / tau
    if form == "focal":
        logits = np.array([[s * (s + (0 if i == j else m)) for j, s in enumerate(row)] for i, row in enumerate(cosines)]) / tau
    return -np.mean([logits[i, i] - np.log((w[i] * np.exp(logits[i])).sum()) for i in range(n)])


def numeric_gradient(function: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    gradient = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        gradient[i] = (function(up) - function(down)) / (2 * step)
    return gradient


@pytest.fixture
def known(reference_b: dict[str, Any]) -> dict[str, Any]:
    inputs = reference_b["inputs"]
    z1, z2, noise, judged = (
        torch.tensor(x, dtype=torch.float64)
        for x in (inputs["v"], inputs["c_pos"], reference_b["dclr"]["noise"], reference_b["dclr"]["cos_of_fixed_model"])
    )
    return reference_b["dclr"] | {"z1": z1, "z2": z2, "noise": noise, "judged": judged}


def test_weights_losses_and_noise_equal_the_reference_values(known: dict[str, Any]) -> None:
    weights = instance_weights(known["judged"], known["phi"])
    assert torch.cat([weights, torch.ones(4, 3, dtype=torch.float64)], 1).tolist() == known["weights"]
    cosines = cosine_matrix(known["z1"], torch.cat([known["z2"], known["noise"]]))
    loss = partial(debiased, temperature=known["tau"])
    assert loss(cosines, weights, form="code").item() == pytest.approx(known["code_loss"], abs=1e-10)
    assert loss(cosines, weights, form="infonce").item() == pytest.approx(known["paper_style_loss_weight_outside_exp"], abs=1e-10)
    moved = uphill(
        known["noise"], known["z1"], cosines[:, :4], lambda s: loss(s, torch.ones_like(weights), form="infonce"), 1, 1e-3
    )
    np.testing.assert_allclose(moved, known["noise_after_one_step_1e-3"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", ["code", "infonce", "focal"])
def test_every_form_and_its_gradient_equal_the_formula(known: dict[str, Any], form: str) -> None:
    weights, noise = instance_weights(known["judged"], known["phi"]), known["noise"]

    def loss(z: np.ndarray) -> float:
        a = z / np.linalg.norm(z, axis=1, keepdims=True)
        b = torch.cat([known["z2"], noise]).numpy()
        return by_hand(a @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T, weights.numpy(), form, 0.05, 0.3)

    z1 = known["z1"].clone().requires_grad_()
    found = debiased(cosine_matrix(z1, torch.cat([known["z2"], noise])), weights, form=form, temperature=0.05, m=0.3)
    assert found.item() == pytest.approx(loss(known["z1"].numpy()), abs=1e-10)
    found.backward()
    np.testing.assert_allclose(z1.grad, numeric_gradient(loss, known["z1"].numpy()), rtol=0, atol=1e-6)


def test_a_dropped_pair_is_a_logit_of_zero_in_the_code_and_no_term_in_the_paper() -> None:
    cosines = torch.tensor([[0.9, 0.5, 0.1], [0.3, 0.8, 0.2]], dtype=torch.float64)
    weights = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    without = debiased(cosines[:1, [0, 2]], weights[:1, :1], form="infonce", temperature=0.05)
    assert debiased(cosines[:1], weights[:1], form="infonce", temperature=0.05).item() == pytest.approx(without.item(), abs=1e-12)
    zero = cosines.clone()
    zero[0, 1] = 0
    all_ones = torch.ones_like(weights)
    code = debiased(cosines, weights, form="code", temperature=0.05)
    assert code.item() == pytest.approx(debiased(zero, all_ones, form="code", temperature=0.05).item(), abs=1e-12)


@pytest.mark.parametrize("own", [1.0, -1.0])
def test_certainty_in_float32_is_no_infinity(own: float) -> None:
    """At temperature 0.05 a softmax value reaches 1 exactly, and log(1 - p) would be minus infinity, or NaN times 0."""
    cosines = torch.full((3, 3), -own).fill_diagonal_(own).requires_grad_()
    loss = debiased(cosines, torch.ones(3, 3), form="code", temperature=0.01)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(cosines.grad).all()
    assert (loss < 1e-6) == (own > 0)


def test_weights_of_a_later_rank_keep_its_own_columns() -> None:
    cosines = torch.tensor([[0.95, 0.1, 0.99, 0.2], [0.5, 0.91, 0.3, 0.97]])
    assert instance_weights(cosines, 0.9, offset=2).tolist() == [[0, 1, 1, 1], [1, 0, 1, 1]]
    judged = [[0.5, 0.9], [0.90001, 0.2]]
    assert instance_weights(torch.tensor(judged), 0.9).tolist() == [[1, 1], [0, 1]], "above phi, not at it"


def test_noise_climbs_by_steps_of_the_given_length_and_carries_no_gradient() -> None:
    torch.manual_seed(0)
    z, noise = torch.randn(4, 6, dtype=torch.float64, requires_grad=True), torch.randn(5, 6, dtype=torch.float64)
    cosines = cosine_matrix(z, z)

    def loss(s: Tensor) -> Tensor:
        return debiased(s, torch.ones(4, 4, dtype=torch.float64), form="infonce", temperature=0.05)

    values, before = [], noise
    for _ in range(4):
        after = uphill(before, z, cosines, loss, 1, 1e-3)
        np.testing.assert_allclose((after - before).norm(dim=1), 1e-3, rtol=1e-9)
        values.append(loss(torch.cat([cosines, cosine_matrix(z, after)], 1)).item())
        before = after
    assert values == sorted(values) and len(set(values)) == 4
    four = uphill(noise, z, cosines, loss, 4, 1e-3)
    np.testing.assert_allclose(four, before, rtol=0, atol=1e-15)
    assert not four.requires_grad
    flat = uphill(noise, z, cosines, lambda s: s.sum() * 0, 2, 1e-3)
    assert torch.equal(flat, noise), "where there is no slope it stays"


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["", "infonce", "focal"])
def test_the_loss_is_that_of_the_heads_vectors_the_teachers_weights_and_its_noise(
    folder: str, tmp_path: Path, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import methods.dclr

    cls = dclr(folder, tmp_path).encode(TEXTS).astype(float)
    judged = (cls @ cls.T) / np.linalg.norm(cls, axis=1) / np.linalg.norm(cls, axis=1)[:, None]
    phi = float(np.median(judged[~np.eye(8, dtype=bool)]) + 1e-4)
    weights = np.where((judged > phi) & ~np.eye(8, dtype=bool), 0.0, 1.0)
    assert 20 < weights.sum() < 60, "some are dropped and some stay"
    method = dclr(folder, tmp_path, variant=variant, dropout=0.0, phi=phi, noise_times=1.5)
    method.train()
    heads, moved = [], []
    method.head.register_forward_hook(lambda _m, _i, out: heads.append(out.detach().double().numpy()))
    monkeypatch.setattr(methods.dclr, "uphill", lambda *given: moved.append(uphill(*given)) or moved[-1])
    method.teacher.eval()  # its dropout is its own backbone's
    torch.manual_seed(3)
    total = method(batch_of(method)).total.item()
    assert moved[0].shape == (12, 32)
    h1, h2 = np.split(heads[0], 2)
    candidates = np.concatenate([h2, moved[0].double().numpy()])
    cosines = (h1 / np.linalg.norm(h1, axis=1, keepdims=True)) @ (
        candidates / np.linalg.norm(candidates, axis=1, keepdims=True)
    ).T
    wanted = by_hand(cosines, weights, variant or "code", 0.07 if variant == "focal" else 0.05, 0.3)
    assert total == pytest.approx(wanted, abs=1e-4)


def test_the_teacher_is_frozen_and_its_dropout_is_on_while_training(tiny: str, tmp_path: Path) -> None:
    method = dclr(tiny, tmp_path)
    assert not [p for p in method.teacher.parameters() if p.requires_grad]
    assert method.train().teacher.module.training and not method.eval().teacher.module.training


def test_faithful_attends_to_padding(folder: str, tmp_path: Path) -> None:
    """With the mask a longer neighbour changes no other row's vector; as the authors have it, it does."""
    found = {}
    for faithful in (False, True):
        method = dclr(folder, tmp_path, faithful=faithful)
        pooled: list[Tensor] = []
        method.head.register_forward_hook(lambda _m, given, _o, pooled=pooled: pooled.append(given[0].detach()))
        for texts in (TEXTS[:3], [*TEXTS[:2], " ".join(["guitar"] * 20)]):
            method(batch_of(method, texts))
        found[faithful] = (pooled[0][:2] - pooled[1][:2]).abs().max().item()
    assert found[False] < 1e-5 < 1e-3 < found[True]


def test_encoder_and_head_train_and_the_teacher_stays(folder: str, tmp_path: Path) -> None:
    check_step(dclr(folder, tmp_path), frozen=["teacher."])


def test_the_checkpoint_is_the_encoder_alone(folder: str, tmp_path: Path) -> None:
    def build(**values: Any) -> TorchMethod:
        return dclr(folder, tmp_path, learning_rate=1e-3, **values)

    check_checkpoint(build, tmp_path / "saved", absent=["head.", "teacher."])


def test_a_resumed_training_ends_like_one_that_was_not_stopped(tiny: str, tmp_path: Path) -> None:
    def build(**values: Any) -> TorchMethod:
        return dclr(tiny, tmp_path, learning_rate=1e-3, **values)

    check_resume(build, tmp_path, extra=["head"])


def test_what_is_scored_is_cls_without_the_head(folder: str, tmp_path: Path) -> None:
    method = dclr(folder, tmp_path)
    with torch.no_grad():
        wanted = method.encoder(**method.tokenize(TEXTS)).last_hidden_state[:, 0]
    np.testing.assert_allclose(method.encode(TEXTS), wanted, rtol=0, atol=1e-5)


def test_a_teacher_of_another_vocabulary_is_refused(tiny: str, tiny_roberta: str, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="different vocabularies"):
        dclr(tiny, tmp_path, teacher=tiny_roberta)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"teacher": None}, "needs a finished SimCSE model"),
        ({"loss": "bce"}, "loss=bce is unknown"),
        ({"noise_times": -1.0}, "noise_times"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused(tiny: str, tmp_path: Path, values: dict[str, Any], message: str) -> None:
    recipe = dclr(tiny, tmp_path).recipe
    changed = type(recipe)(
        recipe.values_with_source() | {k: type(recipe.values_with_source()["phi"])(v, "t") for k, v in values.items()}
    )
    with pytest.raises(BenchError, match=message):
        DCLR.check(changed, None)
