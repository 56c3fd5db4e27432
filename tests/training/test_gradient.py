"""A batch in slices: the gradient of one pass, for every method, variant and loss, with the memory
of one slice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from live_memory import LiveBytes
from models import Toy, built, sentences, toy
from torch import Tensor

from bench.base.errors import BenchError
from bench.method import Batch, Loss, TorchMethod, features, passes
from bench.method.contract import how_fitted
from bench.method.features import Features
from bench.method.own_vectors import own_backbone
from bench.method.plugins import discover
from bench.method.recipes import merge_recipe
from bench.method.torch_method import is_split
from bench.run.planned import learns
from bench.training.gradient import backward

REGISTRY = discover()
COLUMNS = {
    "sentences": ("sentence",),
    "pairs": ("sent0", "sent1"),
    "triplets": ("sent0", "sent1", "hard_neg"),
    "labelled": ("sent0", "sent1", "label"),
    "graded": ("sent0", "sent1", "score"),
}
VALUES: dict[str, dict[str, Any]] = {
    "dclr": {"teacher": "builtin"},
    "rankcse": {"teacher_1": "builtin"},
    "guided-simcse": {"guide": "builtin"},
    "sg-opt": {"head_width": 24},
    "esimcse": {"queue_size": 11},
}


def goes(name: str, setting: str, variant: str) -> bool:
    cls = REGISTRY[name].cls
    if not issubclass(cls, TorchMethod) or how_fitted(cls) == "pass" or own_backbone(cls):
        return False
    if not learns(cls, setting):
        return False
    try:
        cls.needs(setting, merge_recipe(cls, None, variant, {}, trained=True))
    except BenchError:
        return False
    return True


CASES = [
    (name, setting, variant)
    for name in REGISTRY
    for setting in REGISTRY[name].cls.settings
    for variant in ("", *REGISTRY[name].cls.variants)
    if goes(name, setting, variant)
]


def made(case: tuple[str, str, str], backbone: str, folder: Path, **values: Any) -> TorchMethod:
    name, setting, variant = case
    values = VALUES.get(name, {}) | values
    method: TorchMethod = built(
        REGISTRY[name].cls, backbone, folder, setting=setting, variant=variant, **values
    )
    return method.double().train()


def batch_of(method: TorchMethod, setting: str, n: int, seed: int = 0) -> Batch:
    kind = method.needs(setting, method.recipe)[-1] if setting != "none" else "sentences"
    columns: dict[str, Any] = {}
    for i, name in enumerate(COLUMNS[kind]):
        texts = sentences(n, seed=10 * seed + i)
        columns[name] = texts if method.trains_on == "text" else method.backbone.ids(texts)
    if kind == "labelled":
        columns["label"] = [[i % 3] for i in range(n)]
    if kind == "graded":
        columns["score"] = [[i % 3 / 2] for i in range(n)]
    return Batch(method.collate(columns, np.arange(n), 0), step=seed)


def gradients(method: TorchMethod) -> dict[str, Tensor]:
    found = {name: p.grad.clone() for name, p in method.named_parameters() if p.grad is not None}
    trained = {name for name, p in method.named_parameters() if p.requires_grad}
    if method.name == "prompteol":  # layers above the one that it reads do not train
        assert found.keys() <= trained
    else:
        assert found.keys() == trained
    assert any(gradient.abs().max() > 1e-6 for gradient in found.values())
    return found


def in_slices(method: TorchMethod, batch: Batch, chunk: int) -> Loss:
    """The loss with every activation kept: the views of each slice, one after the other, then the
    loss.
    """
    method.prepare(batch)
    parts = []
    for i in range(0, batch.size, chunk):
        columns = tuple(features.slice_rows(column, i, i + chunk) for column in batch.columns)
        parts.append(method.views(Batch(columns, batch.step)))
    return method.loss(tuple(torch.cat(view) for view in zip(*parts, strict=True)), batch)


def keep_everything(function: Any, *inputs: Any, use_reentrant: bool) -> Any:
    """Keep a slice's activations instead of computing them a second time."""
    return function(*inputs)


@pytest.mark.slow
@pytest.mark.matrix(every=16)
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_the_gradient_is_that_of_one_pass_over_the_same_draws(case, tiny, tmp_path, monkeypatch):
    """Seven rows, three at a time, twice: the second loss depends on what the method kept from the
    first batch.
    """
    one, other = made(case, tiny, tmp_path), made(case, tiny, tmp_path)
    batches = [batch_of(one, case[1], 7, seed) for seed in (0, 1)]
    torch.manual_seed(3)
    found = [backward(one, batch, chunk=3)["loss"].item() for batch in batches]
    after = torch.rand(1)

    monkeypatch.setattr(passes, "checkpoint", keep_everything)
    other._chunk = 3  # if the loss itself works in slices
    torch.manual_seed(3)
    wanted = []
    for batch in batches:
        loss = in_slices(other, batch, 3)
        loss.total.backward()
        wanted.append(loss.total.item())
    assert found == pytest.approx(wanted, abs=1e-10)
    assert torch.equal(after, torch.rand(1)), "the generator stands elsewhere"
    theirs = gradients(other)
    for name, ours in gradients(one).items():
        assert (ours - theirs[name]).abs().max() < 1e-6, name
    for name, tensor in one.state_dict().items():  # batch statistics, queues
        torch.testing.assert_close(tensor, other.state_dict()[name], rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [None, pytest.param(torch.bfloat16, marks=pytest.mark.nightly)])
def test_mixed_precision_and_a_scaled_loss(tiny, tmp_path, monkeypatch, dtype, request):
    """The second pass of a slice computes in the precision of the first; the scaler's factor
    reaches every parameter.
    """
    if dtype:
        request.getfixturevalue("bf16")
    one, other = (made(("simcse", "unsupervised", ""), tiny, tmp_path).float() for _ in range(2))
    batch = batch_of(one, "unsupervised", 7)
    autocast: Callable[[], Any] = (lambda: torch.autocast("cpu", dtype)) if dtype else nullcontext
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    torch.manual_seed(3)
    loss = backward(one, batch, chunk=3, autocast=autocast(), scaler=scaler)["loss"]
    monkeypatch.setattr(passes, "checkpoint", keep_everything)
    torch.manual_seed(3)
    with autocast():
        wanted = in_slices(other, batch, 3).total
    (8.0 * wanted).backward()
    assert loss.item() == wanted.item()
    theirs = gradients(other)
    for name, ours in gradients(one).items():
        rtol, atol = (1e-2, 1e-2) if dtype else (1e-4, 1e-5)
        torch.testing.assert_close(ours, theirs[name], rtol=rtol, atol=atol)


def peak(method: TorchMethod, batch: Batch, chunk: int | None) -> int:
    with LiveBytes() as live:
        backward(method, batch, chunk=chunk)
    method.zero_grad(set_to_none=True)
    return live.peak


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [("simcse", "unsupervised", "mlm")],
    ids=" ".join,
)
def test_memory_is_that_of_one_slice_whatever_the_batch(case, tiny, tmp_path):
    method = made(case, tiny, tmp_path)
    small, large = (batch_of(method, case[1], n) for n in (16, 64))
    backward(method, small)  # memory allocated once, as for gradients, is not compared
    whole = peak(method, large, None) - peak(method, small, None)
    cached = peak(method, large, 8) - peak(method, small, 8)
    assert whole > 5e6, "nothing was counted"
    assert cached < 0.15 * whole


class Whole(TorchMethod):
    name = "whole"

    def forward(self, batch: Batch) -> Loss:
        raise NotImplementedError


def test_a_loss_that_is_not_split_runs_whole_and_is_refused_in_slices(tmp_path: Path) -> None:
    method: Toy = toy(tmp_path)
    features: Features = method.assemble([[1], [2, 3], [4, 4, 1]])
    found = backward(method, Batch((features,)))
    assert method.dense.weight.grad is not None and found.keys() == {"loss", "half"}
    assert not is_split(Whole)
    with pytest.raises(BenchError, match="defines its loss as a whole") as error:
        backward(method, Batch((features,)), chunk=2)
    assert "--chunk" in str(error.value.hint)
