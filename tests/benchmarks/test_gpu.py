"""benchmarks/gpu_right.py: its comparisons, against imitated rounding and real mistakes.

All on the CPU: what a GPU computes was seen by none of these tests."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
MODULES = ("gpu_models", "gpu_right")


class Rounded(TorchDispatchMode):
    """The inputs of all float32 matrix products, forwards and backwards, rounded to TF32's 10
    bits.
    """

    PRODUCTS = {getattr(torch.ops.aten, name).default for name in ("mm", "addmm", "bmm", "baddbmm")}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in self.PRODUCTS:
            args = tuple(
                self.cut(one) if isinstance(one, torch.Tensor) and one.ndim > 1 else one
                for one in args
            )
        return function(*args, **(kwargs or {}))

    @staticmethod
    def cut(given: torch.Tensor) -> torch.Tensor:
        bits = given.contiguous().view(torch.int32)
        return ((bits + 0x1000) & ~0x1FFF).view(torch.float32).view(given.shape)


@pytest.fixture
def right(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu_models
    import gpu_right

    place = gpu_models.Place("cpu", True, tmp_path)
    yield SimpleNamespace(right=gpu_right, models=gpu_models, place=place, steps=gpu_right.STEPS)
    for name in MODULES:
        sys.modules.pop(name, None)


def case_of(right: Any, entry: str, setting: str, variant: str = "") -> Any:
    return right.models.Case(right.models.methods_of(entry)[0], setting, variant)


def training(right: Any, case: Any, precision: str = "fp32", seed: int = 1, **values: Any) -> Any:
    made = right.models.built(
        case,
        right.place,
        **({"batch_size": 8, "max_steps": right.steps, "max_grad_norm": 0.0} | values),
    )
    method = right.models.copied(made, right.place, "cpu", precision)
    method.context = replace(method.context, seed=seed)
    return method


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("entry", "setting", "variant"),
    [
        ("simcse", "unsupervised", ""),
        ("dcpcse", "unsupervised", "mlm"),
        ("diffcse", "unsupervised", ""),
        ("flow", "none", ""),
    ],
)
def test_imitated_rounding_is_within_the_bounds(right, entry, setting, variant):
    """dcpcse+mlm and diffcse are the most sensitive of all to rounding."""
    case = case_of(right, entry, setting, variant)
    reference = training(right, case)
    corpus = right.models.corpus_of(case, reference, 48)

    def steps(method: Any) -> Any:
        return right.right.trained(method, corpus, right.steps)

    exact = steps(reference)
    assert right.right.apart(exact, exact) == (0.0, 0.0) and exact.losses[0] != exact.losses[-1]
    with Rounded():
        found = {"tf32": right.right.apart(exact, steps(training(right, case)))}
    found["fp32"] = right.right.apart(steps(training(right, case).double()), exact)
    if right.place.bf16_works:
        found["bf16"] = right.right.apart(exact, steps(training(right, case, "bf16")))
    for precision, seen in found.items():
        assert max(seen) > 0, precision
        for one, bound in zip(seen, right.right.BOUNDS[precision], strict=True):
            assert one <= bound / 2, (precision, found)


@pytest.mark.parametrize("mistake", ["temperature", "other masks", "no dropout"])
def test_a_mistake_is_outside_every_bound(right, mistake, monkeypatch):
    case = case_of(right, "simcse", "unsupervised")
    reference = training(right, case)
    corpus = right.models.corpus_of(case, reference, 48)
    exact = right.right.trained(reference, corpus, 5)
    values = {"temperature": {"temperature": 0.1}, "no dropout": {"dropout": 0.0}}
    other = training(right, case, **values.get(mistake, {}))
    if mistake == "other masks":
        drawn = right.right.DrawnOnCpu
        real = drawn._dropout
        turned = staticmethod(lambda x, *a, **k: real(x.flip(0), *a, **k).flip(0))
        monkeypatch.setattr(drawn, "_dropout", turned)
    losses, gradients = right.right.apart(exact, right.right.trained(other, corpus, 5))
    largest = [max(bounds) for bounds in zip(*right.right.BOUNDS.values(), strict=True)]
    assert losses > largest[0] or gradients > largest[1]
