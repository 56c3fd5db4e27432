"""``--set compile=true``: training's encoder is compiled, what is scored is not, and a compiler
that fails ends no training; tf32 and precisions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import Columns, built, sentences

from bench.methods.simcse import SimCSE
from bench.training.batches import batch_of
from bench.training.compiled import compile_encoder


@pytest.fixture
def method(tiny: str, tmp_path: Path) -> SimCSE:
    return built(SimCSE, tiny, tmp_path, setting="unsupervised", batch_size=5, max_steps=2)


def use_backend(patch: pytest.MonkeyPatch, backend: Any) -> None:
    """Use torch's tracer without its code generation, which takes minutes if there is no C++
    compiler.
    """
    patch.setattr(torch, "compile", partial(torch.compile, backend=backend))


def fails_with(error: Exception) -> Callable[..., Any]:
    def backend(graph: Any, inputs: Any) -> Any:
        raise error

    return backend


def gradient(method: SimCSE) -> torch.Tensor:
    method.eval()  # no dropout, because another tracing may draw its masks in another order
    batch = batch_of(method, Columns(method.token_ids(sentences(5))), 0, np.arange(5), 0)
    method.zero_grad()
    method(batch).total.backward()
    return torch.cat([p.grad.flatten() for p in method.parameters() if p.grad is not None])


@pytest.mark.skipif(
    torch.__version__.startswith("2.6."),
    reason="torch 2.6 cannot trace transformers 5.4; a training says so and goes on",
)
@pytest.mark.slow
def test_the_compiled_encoder_gives_the_same_gradient(method, monkeypatch):
    plain, notes = gradient(method), list[str]()
    names = set(method.state_dict())
    use_backend(monkeypatch, "eager")
    is_compiled = compile_encoder(method.encoder, notes.append)
    assert torch.allclose(gradient(method), plain, atol=1e-6) and notes == [] and is_compiled()
    assert set(method.state_dict()) == names


def test_a_compiler_that_fails_is_noted_once_and_training_goes_on(method, monkeypatch):
    plain, notes = gradient(method), list[str]()
    use_backend(monkeypatch, fails_with(RuntimeError("no C++ compiler")))
    compile_encoder(method.encoder, notes.append)
    assert torch.equal(gradient(method), plain) and torch.equal(gradient(method), plain)
    assert len(notes) == 1 and notes[0].startswith("compile: ")
