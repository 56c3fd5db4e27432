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

from bench.method.masks import whole_mask
from bench.methods.simcse import SimCSE
from bench.training import compiled as module
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


NEEDS_TRACER = pytest.mark.skipif(
    torch.__version__.startswith("2.6."), reason="torch 2.6 cannot trace transformers 5.4"
)


def tiny_encoder(family: str) -> Any:
    from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

    sizes: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 32, "vocab_size": 50, "max_position_embeddings": 40}
    if family == "bert":
        return BertModel(BertConfig(**sizes), add_pooling_layer=False)
    return RobertaModel(RobertaConfig(**sizes), add_pooling_layer=False)


def inputs(rows: int, length: int) -> dict[str, torch.Tensor]:
    """A batch as on a GPU: with a mask of four dimensions."""
    mask = torch.ones(rows, length, dtype=torch.long)
    mask[0, length // 2 :] = 0
    return {"input_ids": torch.full((rows, length), 7), "attention_mask": whole_mask(mask)}


@NEEDS_TRACER
@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_training_pass_is_one_graph(family: str) -> None:
    """With dropout, in bf16 as on a GPU, forward and backward; fullgraph refuses any break."""
    encoder = tiny_encoder(family).train()
    forward = torch.compile(encoder.forward, backend="aot_eager", fullgraph=True, dynamic=False)
    with torch.autocast("cpu", torch.bfloat16):
        states = forward(**inputs(3, 8)).last_hidden_state
    states.float().square().sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())


class Compilers:
    """A backend that counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graph: Any, examples: Any) -> Any:
        self.calls += 1
        assert all(isinstance(size, int) for one in examples for size in one.shape)
        return graph.forward


@NEEDS_TRACER
@pytest.mark.slow
def test_each_shape_is_compiled_once_and_no_more_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More shapes than torch's own limit of 8, each with fixed sizes; those above ours are eager
    and noted once.
    """
    monkeypatch.setattr(module, "SHAPES", 10)
    encoder, compiler, notes = tiny_encoder("bert").eval(), Compilers(), list[str]()
    plain = [encoder(**inputs(2, length)).last_hidden_state for length in range(8, 20)]
    use_backend(monkeypatch, compiler)
    is_compiled = compile_encoder(encoder, notes.append, by_shape=True)
    for _ in range(2):
        for length, wanted in zip(range(8, 20), plain, strict=True):
            found = encoder(**inputs(2, length)).last_hidden_state
            assert torch.allclose(found, wanted, atol=1e-6)
    assert compiler.calls == 10 and is_compiled()
    assert notes == ["compile: the encoder is compiled for 10 shapes; others are eager"]
