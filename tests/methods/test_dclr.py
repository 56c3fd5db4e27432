"""DCLR: weights, losses and noise against numbers made elsewhere; the teacher; what trains and is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fine_tuned import TEXTS, batch_of, check_checkpoint, check_resume, check_step
from models import built
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.backbones import load, resolve
from bench.method import BenchError, TorchMethod, Value
from methods.dclr import DCLR, debiased, instance_weights, uphill
from methods.losses import cosine_matrix
from methods.simcse import SimCSE

BACKBONES = ("tiny", "tiny_roberta")


@pytest.fixture(params=BACKBONES)
def folder(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def dclr(folder: str, tmp_path: Path, **values: Any) -> DCLR:
    return built(DCLR, folder, tmp_path, setting="unsupervised", **({"teacher": folder} | values))


def by_hand(
    cosines: np.ndarray, weights: np.ndarray, form: str, tau: float, m: float = 0.0
) -> float:
    """The three losses as the formulas read, row by row."""
    n, C = cosines.shape
    w = np.concatenate([weights, np.ones((n, C - weights.shape[1]))], axis=1)
    if form == "code":
        e = np.exp(cosines / tau * w)
        p = e / e.sum(1, keepdims=True)
        return -np.mean(
            [
                [np.log(p[i, j]) if i == j else np.log(1 - p[i, j]) for j in range(C)]
                for i in range(n)
            ]
        )
    logits = cosines / tau
    if form == "focal":
        logits = (
            np.array(
                [
                    [s * (s + (0 if i == j else m)) for j, s in enumerate(row)]
                    for i, row in enumerate(cosines)
                ]
            )
            / tau
        )
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
    inputs = reference_b["inputs"]
    z1, z2, noise, judged = (
        torch.tensor(x, dtype=torch.float64)
        for x in (
            inputs["v"],
            inputs["c_pos"],
            reference_b["dclr"]["noise"],
            reference_b["dclr"]["cos_of_fixed_model"],
        )
    )
    return reference_b["dclr"] | {"z1": z1, "z2": z2, "noise": noise, "judged": judged}


def test_weights_losses_and_noise_equal_the_reference_values(known: dict[str, Any]) -> None:
    weights = instance_weights(known["judged"], known["phi"])
    assert (
        torch.cat([weights, torch.ones(4, 3, dtype=torch.float64)], 1).tolist() == known["weights"]
    )
    cosines = cosine_matrix(known["z1"], torch.cat([known["z2"], known["noise"]]))
    loss = partial(debiased, temperature=known["tau"])
    assert loss(cosines, weights, form="code").item() == pytest.approx(
        known["code_loss"], abs=1e-10
    )
    assert loss(cosines, weights, form="infonce").item() == pytest.approx(
        known["paper_style_loss_weight_outside_exp"], abs=1e-10
    )
    moved = uphill(
        known["noise"],
        known["z1"],
        cosines[:, :4],
        lambda s: loss(s, torch.ones_like(weights), form="infonce"),
        1,
        1e-3,
    )
    np.testing.assert_allclose(moved, known["noise_after_one_step_1e-3"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", ["code", "infonce", "focal"])
def test_every_form_and_its_gradient_equal_the_formula(known: dict[str, Any], form: str) -> None:
    weights, noise = instance_weights(known["judged"], known["phi"]), known["noise"]

    def loss(z: np.ndarray) -> float:
        a = z / np.linalg.norm(z, axis=1, keepdims=True)
        b = torch.cat([known["z2"], noise]).numpy()
        return by_hand(
            a @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T, weights.numpy(), form, 0.05, 0.3
        )

    z1 = known["z1"].clone().requires_grad_()
    found = debiased(
        cosine_matrix(z1, torch.cat([known["z2"], noise])),
        weights,
        form=form,
        temperature=0.05,
        m=0.3,
    )
    assert found.item() == pytest.approx(loss(known["z1"].numpy()), abs=1e-10)
    found.backward()
    np.testing.assert_allclose(
        z1.grad, numeric_gradient(loss, known["z1"].numpy()), rtol=0, atol=1e-6
    )


def test_a_dropped_pair_is_a_logit_of_zero_in_the_code_and_no_term_in_the_paper() -> None:
    cosines = torch.tensor([[0.9, 0.5, 0.1], [0.3, 0.8, 0.2]], dtype=torch.float64)
    weights = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    without = debiased(cosines[:1, [0, 2]], weights[:1, :1], form="infonce", temperature=0.05)
    assert debiased(
        cosines[:1], weights[:1], form="infonce", temperature=0.05
    ).item() == pytest.approx(without.item(), abs=1e-12)
    zero = cosines.clone()
    zero[0, 1] = 0
    all_ones = torch.ones_like(weights)
    code = debiased(cosines, weights, form="code", temperature=0.05)
    assert code.item() == pytest.approx(
        debiased(zero, all_ones, form="code", temperature=0.05).item(), abs=1e-12
    )


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
    assert instance_weights(torch.tensor(judged), 0.9).tolist() == [[1, 1], [0, 1]], (
        "above phi, not at it"
    )


def test_noise_climbs_by_steps_of_the_given_length_and_carries_no_gradient() -> None:
    torch.manual_seed(0)
    z, noise = (
        torch.randn(4, 6, dtype=torch.float64, requires_grad=True),
        torch.randn(5, 6, dtype=torch.float64),
    )
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
    method.head.register_forward_hook(
        lambda _m, _i, out: heads.append(out.detach().double().numpy())
    )
    monkeypatch.setattr(
        methods.dclr, "uphill", lambda *given: moved.append(uphill(*given)) or moved[-1]
    )
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


def test_the_teacher_is_frozen_and_its_dropout_is_on_while_training(
    tiny: str, tmp_path: Path
) -> None:
    method = dclr(tiny, tmp_path)
    assert not [p for p in method.teacher.parameters() if p.requires_grad]
    assert method.train().teacher.module.training and not method.eval().teacher.module.training


def test_faithful_attends_to_padding(folder: str, tmp_path: Path) -> None:
    """With the mask a longer neighbour changes no other row's vector; as the authors have it, it does."""
    found = {}
    folder = keeping(folder, tmp_path / "kept", 1)
    for faithful in (False, True):
        method = dclr(folder, tmp_path, faithful=faithful)
        pooled: list[Tensor] = []
        method.head.register_forward_hook(
            lambda _m, given, _o, pooled=pooled: pooled.append(given[0].detach())
        )
        for texts in (TEXTS[:3], [*TEXTS[:2], " ".join(["guitar"] * 20)]):
            method(batch_of(method, texts))
        found[faithful] = (pooled[0][:2] - pooled[1][:2]).abs().max().item()
    assert found[False] < 1e-5 < 1e-3 < found[True]


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
def test_faithful_is_the_authors_stack(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """simcse/models.py in numpy: no mask; the checkpoint's own pooling layer, then at base size the new head; the teacher judges by
    the head that it keeps. Measured beside their own function, run on the same weights: losses and gradients are 1e-15 apart."""
    import methods.dclr

    monkeypatch.setattr(methods.dclr, "BASE", 16 if large else 768)  # these are 32 wide
    start, teacher = (
        keeping(folder, tmp_path / "start", 1),
        keeping(folder, tmp_path / "teacher", 2),
    )
    method = built(
        DCLR,
        start,
        tmp_path,
        setting="unsupervised",
        teacher=teacher,
        faithful=True,
        dropout=0.0,
        noise_times=1.5,
    )
    method.train()
    method.teacher.eval()  # its dropout is its own backbone's
    noise: list[Tensor] = []
    monkeypatch.setattr(
        methods.dclr, "uphill", lambda *given: noise.append(uphill(*given)) or noise[-1]
    )
    (features,) = batch_of(method).columns
    with torch.no_grad():
        cls = (
            method.encoder(input_ids=features["input_ids"]).last_hidden_state[:, 0].double().numpy()
        )  # both encoders are alike

    def dense(x: np.ndarray, name: str, file: str) -> np.ndarray:
        kept = {
            key.split(".", 1)[1]: t.double().numpy()
            for key, t in load_file(Path(file) / "model.safetensors").items()
            if "pooler" in key
        }
        return np.tanh(x @ kept[f"{name}.weight"].T + kept[f"{name}.bias"])

    def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a @ b.T / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)

    judged, z = dense(cls, "pooler.dense", teacher), dense(cls, "pooler.dense", start)
    if not large:
        weight, bias = (
            p.detach().double().numpy() for p in (method.head.dense.weight, method.head.dense.bias)
        )
        z = np.tanh(z @ weight.T + bias)
    similar = cosines(judged, judged)
    phi = float(np.median(similar[~np.eye(8, dtype=bool)]) + 1e-4)
    method.recipe = type(method.recipe)(
        method.recipe.values_with_source() | {"phi": Value(phi, "test")}
    )
    total = method(batch_of(method)).total.item()
    weights = np.where((similar > phi) & ~np.eye(8, dtype=bool), 0.0, 1.0)
    assert 20 < weights.sum() < 60, "some are dropped and some stay"
    wanted = by_hand(
        cosines(z, np.concatenate([z, noise[0].double().numpy()])), weights, "code", 0.05
    )
    assert total == pytest.approx(wanted, abs=1e-5)
    check_step(method, frozen=["teacher.", "judge."])
    assert {name.split(".")[0] for name in method.trained_state()} == {"encoder"}


def test_what_a_teacher_keeps_is_found_in_a_folder_and_in_a_run(
    folder: str, tmp_path: Path
) -> None:
    """A run of simcse keeps its head beside the encoder; without either a faithful teacher cannot judge."""
    kept = resolve(keeping(folder, tmp_path / "kept", 3))
    weight, bias = load(kept).pooling_layer()
    wanted = load_file(tmp_path / "kept" / "model.safetensors")
    assert torch.equal(
        weight, next(t for name, t in wanted.items() if name.endswith("pooler.dense.weight"))
    ) and bias.shape == (32,)
    simcse = built(SimCSE, folder, tmp_path, setting="unsupervised")
    simcse.save(tmp_path / "run" / "checkpoint")
    trained = tmp_path / "run" / "checkpoint" / "trained.safetensors"
    weight, bias = load(replace(kept, trained=trained)).pooling_layer()
    assert torch.equal(weight, simcse.head.dense.weight) and torch.equal(
        bias, simcse.head.dense.bias
    )
    bare = {name: t for name, t in wanted.items() if "pooler" not in name}
    save_file(bare, tmp_path / "kept" / "model.safetensors", metadata={"format": "pt"})
    assert load(kept).pooling_layer() is None
    with pytest.raises(BenchError, match="keeps no head, by which"):
        dclr(str(tmp_path / "kept"), tmp_path, faithful=True)


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


def test_a_teacher_of_another_vocabulary_is_refused(
    tiny: str, tiny_roberta: str, tmp_path: Path
) -> None:
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
def test_a_recipe_that_cannot_work_is_refused(
    tiny: str, tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    recipe = dclr(tiny, tmp_path).recipe
    changed = type(recipe)(
        recipe.values_with_source()
        | {k: type(recipe.values_with_source()["phi"])(v, "t") for k, v in values.items()}
    )
    with pytest.raises(BenchError, match=message):
        DCLR.check(changed, None)
