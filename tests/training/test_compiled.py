"""The choice of compiled kernels, with stand-ins for the compiler and for the clock: what is slow or wrong is not taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from models import Columns, built, sentences
from torch import nn

from bench.base.devices import choose_precision
from bench.base.errors import BenchError
from bench.method.torch_method import Batch
from bench.training.batches import batch_of
from bench.training.compiled import AS_IT_IS, WORTH_A_TRY, Choice, choose, use
from bench.training.loop import train
from bench.training.trainer import Trainer
from methods.promcse import PromCSE
from methods.simcse import SimCSE

COMPILED, GRAPHS = "compiled", "compiled, CUDA graphs"


class Compiler:
    """Makes the encoder take so many seconds a pass, on a clock of its own; ``broken`` ones raise, ``wrong`` ones shift states."""

    def __init__(self, plain: float, broken: str = "", wrong: str = "", **seconds: float) -> None:
        self.time, self.plain, self.seconds, self.broken, self.wrong = 0.0, plain, seconds, broken, wrong
        self.passes = 0

    def now(self) -> float:
        return self.time

    def watch(self, encoder: nn.Module) -> None:
        def passed(module: Any, inputs: Any, output: Any) -> None:
            self.passes += 1
            if "forward" not in vars(encoder):
                self.time += self.plain

        encoder.register_forward_hook(passed)

    def __call__(self, encoder: nn.Module, options: Mapping[str, Any]) -> None:
        key = "graphs" if options else "compiled"
        plain = encoder.forward

        def forward(**inputs: Any) -> Any:
            if key == self.broken:
                raise RuntimeError("no kernel for this\nand a long trace")
            self.time += self.seconds[key]
            made = plain(**inputs)
            if key == self.wrong:
                made.last_hidden_state = made.last_hidden_state + 1
            return made

        encoder.forward = forward


@pytest.fixture(params=[SimCSE, PromCSE])
def method(request: Any, tiny: str, tmp_path: Path) -> Any:
    made = built(request.param, tiny, tmp_path, setting="unsupervised")
    made.train()
    return made


def first_batch(method: Any, rows: int = 1) -> Batch:
    return batch_of(method, Columns(method.token_ids(sentences(rows))), 0, np.arange(rows), 0)


def chosen(method: Any, compiler: Compiler, steps: int | None = 100_000) -> Choice:
    compiler.watch(method.encoder)
    return choose_with(compiler, method, first_batch(method), steps=steps)


def choose_with(compiler: Compiler, method: Any, batch: Batch, **left: Any) -> Choice:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench.training.compiled._compile", compiler)
        patch.setattr("bench.training.compiled.time", SimpleNamespace(perf_counter=compiler.now))
        return choose(method, batch, **left)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "name"),
    [
        (Compiler(1.0, compiled=0.5, graphs=0.8), COMPILED),
        (Compiler(1.0, compiled=0.5, graphs=0.2), GRAPHS),
        (Compiler(1.0, compiled=0.99, graphs=1.5), AS_IT_IS),  # a gain that is noise
        (Compiler(1.0, compiled=0.5, graphs=0.2, broken="graphs"), COMPILED),
        (Compiler(1.0, compiled=0.1, graphs=0.5, wrong="compiled"), GRAPHS),
    ],
)
def test_the_fastest_that_is_right_is_taken_and_told(method: Any, compiler: Compiler, name: str) -> None:
    choice = chosen(method, compiler)
    assert choice.name == name and choice.line.startswith(f"{name} (")
    assert ("no kernel for this" in choice.line) == bool(compiler.broken) and "\n" not in choice.line
    assert ("gives other values" in choice.line) == bool(compiler.wrong)


def test_a_short_training_is_not_worth_compiling(method: Any) -> None:
    compiler = Compiler(1.0, compiled=0.1, graphs=0.1)
    assert chosen(method, compiler, steps=int(WORTH_A_TRY) - 1).name == AS_IT_IS
    assert compiler.time == compiler.passes  # nothing was compiled


def test_of_a_batch_in_slices_one_slice_is_measured_and_no_graph_is_tried(method: Any) -> None:
    compiler = Compiler(1.0, compiled=0.5, graphs=0.1)
    compiler.watch(method.encoder)
    seen: list[int] = []
    method.encoder.register_forward_hook(lambda _, inputs, output: seen.append(len(output.last_hidden_state)))
    steps = int(WORTH_A_TRY / 3) + 1  # of three slices each, of which two views go through the encoder
    choice = choose_with(compiler, method, first_batch(method, 5), steps=steps, chunk=2)
    assert choice.name == COMPILED and GRAPHS not in choice.line
    assert set(seen) == {2 * 2}


def test_little_time_is_not_worth_compiling(method: Any) -> None:
    compiler = Compiler(1.0, compiled=0.1, graphs=0.1)
    compiler.watch(method.encoder)
    choice = choose_with(compiler, method, first_batch(method), seconds=WORTH_A_TRY - 1)
    assert choice == Choice(AS_IT_IS, "not compiled: 599 seconds of training are less than compiling is worth")
    assert choose_with(compiler, method, first_batch(method), seconds=WORTH_A_TRY).name == COMPILED


def test_graphs_end_where_chunks_begin(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks: list[Any] = []

    def measured(method: Any, batch: Batch, *, chunk: int | None, **_: Any) -> Choice:
        chunks.append(chunk)
        return Choice(GRAPHS if chunk is None else COMPILED, "a note")

    monkeypatch.setattr("bench.training.trainer.choose", measured)
    monkeypatch.setattr("bench.training.trainer.use", lambda method, name: None)
    method = built(SimCSE, tiny, tmp_path, setting="unsupervised", batch_size=5, max_steps=9)
    trainer = Trainer(method, Columns(method.token_ids(sentences(7))), method.context)
    trainer.settle_kernels(first_batch(method))
    assert trainer.progress.kernels == GRAPHS
    trainer.progress.chunk = 2
    trainer.settle_kernels(first_batch(method))
    trainer.settle_kernels(first_batch(method))
    assert trainer.progress.kernels == COMPILED and chunks == [None, 2]


def test_looking_leaves_no_trace(method: Any) -> None:
    trained = {name: p.detach().clone() for name, p in method.named_parameters()}
    kept = torch.ones_like(method.head.dense.weight)
    method.head.dense.weight.grad = kept
    rng = torch.get_rng_state()
    chosen(method, Compiler(1.0, compiled=0.5, graphs=0.8))
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(torch.equal(p, trained[name]) for name, p in method.named_parameters())
    assert method.head.dense.weight.grad is kept and torch.equal(kept, torch.ones_like(kept))
    assert all(p.grad is None for name, p in method.named_parameters() if name != "head.dense.weight")
    assert method.training and method.encoder.training and "forward" not in vars(method.encoder)


@pytest.mark.slow
def test_what_is_scored_comes_from_the_encoder_as_it_is(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    method.encode_tokens = 8  # several batches
    before = method.encode(sentences(3))

    def backend(graph: Any, inputs: Any) -> Any:
        raise AssertionError("compiled while encoding")

    def compiler(encoder: nn.Module, options: Any) -> None:
        encoder.forward = torch.compile(encoder.forward, backend=backend)

    monkeypatch.setattr("bench.training.compiled._compile", compiler)
    use(method, COMPILED)
    torch.set_float32_matmul_precision("high")
    seen: list[str] = []
    hook = method.encoder.register_forward_hook(lambda *_: seen.append(torch.get_float32_matmul_precision()))
    try:
        assert np.array_equal(method.encode(sentences(3)), before)
        assert torch.get_float32_matmul_precision() == "high" and set(seen) == {"highest"}
    finally:
        torch.set_float32_matmul_precision("highest")
        hook.remove()
    assert "forward" in vars(method.encoder)
    names = set(method.state_dict())
    use(method, AS_IT_IS)
    assert "forward" not in vars(method.encoder) and set(method.state_dict()) == names


@pytest.mark.skipif(torch.__version__.startswith("2.6."), reason="torch 2.6 cannot trace transformers 5.4; a training says so and goes on")
@pytest.mark.slow
def test_torchs_compiler_gives_the_same_gradient(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its tracer and without code generation, which takes minutes where there is no compiler."""
    method = built(SimCSE, tiny, tmp_path, setting="unsupervised", batch_size=5)
    method.eval()  # no dropout, whose masks another tracing may draw in another order
    batch = batch_of(method, Columns(method.token_ids(sentences(5))), 0, np.arange(5), 0)

    def gradient() -> torch.Tensor:
        method.zero_grad()
        method(batch).total.backward()
        return torch.cat([p.grad.flatten() for p in method.parameters() if p.grad is not None])

    plain = gradient()

    def compiler(encoder: nn.Module, options: Any) -> None:
        encoder.forward = torch.compile(encoder.forward, backend="eager")

    monkeypatch.setattr("bench.training.compiled._compile", compiler)
    use(method, COMPILED)
    assert torch.allclose(gradient(), plain, atol=1e-6)


def test_a_sitting_measures_once_and_a_later_one_goes_on_in_the_same_way(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    used: list[str] = []

    def measured(method: Any, batch: Batch, *, steps: int, seconds: None, chunk: int | None, autocast: Any) -> Choice:
        asked.append((steps, chunk))
        return Choice(COMPILED, "compiled (a note)")

    monkeypatch.setattr("bench.training.trainer.choose", measured)
    monkeypatch.setattr("bench.training.trainer.use", lambda method, name: used.append(name))
    method = built(SimCSE, tiny, tmp_path, setting="unsupervised", batch_size=5, max_steps=9, epochs=100)
    corpus = Columns(method.token_ids(sentences(7)))
    first = Trainer(method, corpus, method.context)
    first.settle_kernels(first_batch(method))
    later = Trainer(method, corpus, method.context)
    later.progress = first.progress
    later.settle_kernels(first_batch(method))
    assert (asked, used, first.settled) == ([(9, None)], [AS_IT_IS, COMPILED, COMPILED], True)
    assert later.progress.kernels == COMPILED


def test_tf32_is_for_training_alone(tiny: str, tmp_path: Path) -> None:
    method = built(SimCSE, tiny, tmp_path, setting="unsupervised", batch_size=5, max_steps=1)
    method.context = replace(method.context, precision="tf32")
    seen: list[str] = []
    method.head.register_forward_hook(lambda *_: seen.append(torch.get_float32_matmul_precision()))
    train(method, Columns(method.token_ids(sentences(7))), method.context)
    assert seen == ["high"] and torch.get_float32_matmul_precision() == "highest"


def test_tf32_needs_a_gpu_that_has_it() -> None:
    with pytest.raises(BenchError, match="NVIDIA"):
        choose_precision("tf32", "cpu")
    assert choose_precision("tf32", "cuda:1") == "tf32"
