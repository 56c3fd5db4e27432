"""DCLR: losses by hand; the teacher; what trains and is kept. The authors' values:
tests/golden/test_parity.py.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import EIGHT as TEXTS
from harness import batch_of
from models import built
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.method import Value
from bench.method.torch_method import trained_state
from bench.methods.dclr import DCLR, debiased, instance_weights, uphill
from bench.methods.losses import cosine_matrix

OTHERS = ~np.eye(8, dtype=bool)


def dclr(backbone: str, tmp_path: Path, **values: Any) -> DCLR:
    values = {"teacher": backbone} | values
    return built(DCLR, backbone, tmp_path, setting="unsupervised", **values)


def by_hand(
    cosines: np.ndarray, weights: np.ndarray, form: str, tau: float, m: float = 0.0
) -> float:
    """The three losses as the formulas read, row by row."""
    n, C = cosines.shape
    w = np.concatenate([weights, np.ones((n, C - weights.shape[1]))], axis=1)
    own = np.eye(n, C, dtype=bool)
    if form == "code":
        e = np.exp(cosines / tau * w)
        p = e / e.sum(1, keepdims=True)
        return -np.mean(np.where(own, np.log(p), np.log(1 - p)))
    logits = cosines * (cosines + m * ~own if form == "focal" else 1) / tau
    return -np.mean([logits[i, i] - np.log((w[i] * np.exp(logits[i])).sum()) for i in range(n)])


def numeric_gradient(
    function: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-6
) -> np.ndarray:
    gradient = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        gradient[i] = (function(up) - function(down)) / (2 * step)
    return gradient


@pytest.fixture
def known(reference_b: dict[str, Any]) -> dict[str, Any]:
    known, inputs = reference_b["dclr"], reference_b["inputs"]
    given = {"z1": inputs["v"], "z2": inputs["c_pos"], "noise": known["noise"]}
    given |= {"judged": known["cos_of_fixed_model"]}
    return known | {key: torch.tensor(x, dtype=torch.float64) for key, x in given.items()}


@pytest.mark.parametrize("form", ["code", "infonce", "focal"])
def test_every_form_and_its_gradient_equal_the_formula(known: dict[str, Any], form: str) -> None:
    weights, noise = instance_weights(known["judged"], known["phi"]), known["noise"]

    b = torch.cat([known["z2"], noise]).numpy()
    b /= np.linalg.norm(b, axis=1, keepdims=True)

    def loss(z: np.ndarray) -> float:
        cosines = z / np.linalg.norm(z, axis=1, keepdims=True) @ b.T
        return by_hand(cosines, weights.numpy(), form, 0.05, 0.3)

    z1 = known["z1"].clone().requires_grad_()
    cosines = cosine_matrix(z1, torch.cat([known["z2"], noise]))
    found = debiased(cosines, weights, form=form, temperature=0.05, m=0.3)
    assert found.item() == pytest.approx(loss(known["z1"].numpy()), abs=1e-10)
    found.backward()
    wanted = numeric_gradient(loss, known["z1"].numpy())
    np.testing.assert_allclose(z1.grad, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("own", [1.0, -1.0])
def test_certainty_in_float32_is_no_infinity(own: float) -> None:
    """At temperature 0.05 a softmax value reaches 1 exactly, and log(1 - p) would be minus
    infinity, or NaN times 0.
    """
    cosines = torch.full((3, 3), -own).fill_diagonal_(own).requires_grad_()
    loss = debiased(cosines, torch.ones(3, 3), form="code", temperature=0.01)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(cosines.grad).all()
    assert (loss < 1e-6) == (own > 0)


def test_a_negative_near_the_anchor_counts_nothing() -> None:
    judged = [[0.5, 0.9], [0.90001, 0.2]]
    assert instance_weights(torch.tensor(judged), 0.9).tolist() == [[1, 1], [0, 1]], "not at phi"


def unit_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)


def weights_of(similar: np.ndarray) -> tuple[float, np.ndarray]:
    """A phi at which some pairs are dropped and some stay, and the weights."""
    phi = float(np.median(similar[OTHERS]) + 1e-4)
    weights = np.where((similar > phi) & OTHERS, 0.0, 1.0)
    assert 20 < weights.sum() < 60
    return phi, weights


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Record the result of every call of ``uphill``."""
    made: list[Tensor] = []
    monkeypatch.setattr("bench.methods.dclr.uphill", lambda *a: made.append(uphill(*a)) or made[-1])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["", "infonce", "focal"])
def test_the_loss_is_that_of_the_heads_vectors_the_teachers_weights_and_its_noise(
    backbone, tmp_path, variant, noise
):
    cls = dclr(backbone, tmp_path).encode(TEXTS).astype(float)
    phi, weights = weights_of(unit_product(cls, cls))
    values = {"variant": variant, "dropout": 0.0, "phi": phi, "noise_times": 1.5}
    method, heads = dclr(backbone, tmp_path, **values), []
    method.train()
    method.head.register_forward_hook(lambda _m, _i, out: heads.append(out.detach().double()))
    method.teacher.eval()  # its dropout is its own backbone's
    torch.manual_seed(3)
    total = method(batch_of(method, TEXTS)).total.item()
    assert noise[0].shape == (12, 32)
    h1, h2 = (h.numpy() for h in heads[0].chunk(2))
    cosines = unit_product(h1, np.concatenate([h2, noise[0].double().numpy()]))
    wanted = by_hand(cosines, weights, variant or "code", 0.07 if variant == "focal" else 0.05, 0.3)
    assert total == pytest.approx(wanted, abs=1e-4)


def keeping(folder: str, place: Path, seed: int) -> str:
    """The model of a folder with a pooling layer that its checkpoint keeps, drawn anew."""
    shutil.copytree(folder, place)
    tensors = load_file(place / "model.safetensors")
    drawn = torch.Generator().manual_seed(seed)
    family = next(iter(tensors)).split(".")[0]
    tensors |= {
        f"{family}.pooler.dense.weight": torch.randn(32, 32, generator=drawn) * 0.3,
        f"{family}.pooler.dense.bias": torch.randn(32, generator=drawn) * 0.3,
    }
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    return str(place)


@pytest.mark.parametrize("large", [False, True])
def test_faithful_is_the_authors_stack(backbone, tmp_path, monkeypatch, noise, large):
    """simcse/models.py in numpy: no mask; the checkpoint's own pooling layer, then at base size the
    new head; the teacher judges by the head that it keeps. The authors' own function, run on the
    same weights, gave losses and gradients within 1e-15.
    """
    monkeypatch.setattr("bench.methods.dclr.BASE", 16 if large else 768)  # these are 32 wide
    start, teacher = (keeping(backbone, tmp_path / str(seed), seed) for seed in (1, 2))
    values = {"teacher": teacher, "faithful": True, "dropout": 0.0, "noise_times": 1.5}
    method = dclr(start, tmp_path, **values)
    method.train()
    method.teacher.eval()  # its dropout is its own backbone's
    (features,) = batch_of(method, TEXTS).columns
    with torch.no_grad():  # both encoders are alike
        states = method.encoder(input_ids=features["input_ids"]).last_hidden_state
    cls = states[:, 0].double().numpy()

    def pooled(file: str) -> np.ndarray:
        tensors = load_file(Path(file) / "model.safetensors").items()
        weight, bias = (
            next(t.double().numpy() for name, t in tensors if name.endswith(f"pooler.dense.{part}"))
            for part in ("weight", "bias")
        )
        return np.tanh(cls @ weight.T + bias)

    judged, z = pooled(teacher), pooled(start)
    if not large:
        weight, bias = (p.detach().double().numpy() for p in method.head.dense.parameters())
        z = np.tanh(z @ weight.T + bias)
    phi, weights = weights_of(unit_product(judged, judged))
    recipe = method.recipe.values_with_source() | {"phi": Value(phi, "test")}
    method.recipe = type(method.recipe)(recipe)
    total = method(batch_of(method, TEXTS)).total.item()
    cosines = unit_product(z, np.concatenate([z, noise[0].double().numpy()]))
    assert total == pytest.approx(by_hand(cosines, weights, "code", 0.05), abs=1e-5)
    assert not [name for name in trained_state(method) if not name.startswith("encoder.")]
    method(batch_of(method, TEXTS)).total.backward()
    kept = [p for name, p in method.named_parameters() if name.startswith(("teacher.", "judge."))]
    assert kept and not any(p.requires_grad for p in kept)
