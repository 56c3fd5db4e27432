"""Whether compiled kernels pay: measured at the start of a training on a GPU, and said. On a CPU nothing is compiled.

What is compiled is the encoder's forward, which is all that costs time, and only while training: vectors that are scored come
from the encoder as it is. Each way of compiling is tried on the first batch: it must give the same values as the encoder as it
is, up to rounding, and be faster. One that fails is named with its error, and is not used.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bench.features import Features
from bench.torch_method import Batch, TorchMethod
from bench.training.gradient import cut

AS_IT_IS = "not compiled"
GRAPHS = "compiled, CUDA graphs"
WAYS: dict[str, dict[str, Any]] = {"compiled": {}, GRAPHS: {"mode": "reduce-overhead"}}
WORTH_A_TRY = 600.0  # seconds that a training must have before it: compiling and measuring take one or two minutes
GAIN = 1.05  # how many times as fast it must be
WARM_UP, TIMED = 3, 7  # passes
CLOSE = 0.03  # largest difference of a state, as a share of the largest state: rounding in bf16

Compile = Callable[[nn.Module, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Choice:
    """The name of a way (``AS_IT_IS`` or one of ``WAYS``), and a line for the user that says why."""

    name: str
    line: str


def choose(
    method: TorchMethod, batch: Batch, *, steps: int | None, chunk: int | None = None,
    autocast: Callable[[], AbstractContextManager[Any]] = nullcontext, compile: Compile | None = None,
    now: Callable[[], float] = time.perf_counter,
) -> Choice:  # fmt: skip
    """The fastest way to compute the encoder's part of a step on ``batch``, of which ``steps`` are left (None: not known).

    Measured on the batch's first column, or as many rows of it as ``chunk`` says go through the encoder at once. A graph keeps
    its output in one place, which the next slice of a batch would overwrite: with ``chunk`` there are none. Afterwards weights,
    gradients, random generators and the encoder are as before.
    """
    column: Features = cut(batch.columns[0], 0, chunk or batch.size)
    parts = -(-batch.size // (chunk or batch.size))
    seconds: dict[str, float] = {}
    problems: dict[str, str] = {}
    with untouched(method):
        seconds[AS_IT_IS] = _seconds_per_pass(method, column, autocast, now)
        if steps is not None and steps * parts * seconds[AS_IT_IS] < WORTH_A_TRY:
            return Choice(AS_IT_IS, f"{AS_IT_IS}: {steps} steps take less than compiling is worth")
        expected = _states(method, column, autocast)
        for name in (way for way in WAYS if chunk is None or way != GRAPHS):
            use(method, name, compile)
            try:
                if not _close(_states(method, column, autocast), expected):
                    problems[name] = "gives other values"
                    continue
                seconds[name] = _seconds_per_pass(method, column, autocast, now)
            except Exception as error:  # a compiler fails in many ways, and none of them ends the training
                problems[name] = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
            finally:
                use(method, AS_IT_IS)
    fastest = min(seconds, key=seconds.__getitem__)
    chosen = fastest if seconds[AS_IT_IS] / seconds[fastest] >= GAIN else AS_IT_IS
    measured = "; ".join(f"{name} {1000 * taken:.1f} ms" for name, taken in seconds.items())
    failed = "".join(f"; {name}: {problem}" for name, problem in problems.items())
    return Choice(chosen, f"{chosen} (a pass through the encoder and back: {measured}{failed})")


def use(method: TorchMethod, name: str, compile: Compile | None = None) -> None:
    """From now on compute the encoder in the way of that name."""
    vars(method.encoder).pop("forward", None)
    if name != AS_IT_IS:
        (compile or _compile)(method.encoder, WAYS[name])


def _compile(encoder: nn.Module, options: Mapping[str, Any]) -> None:
    encoder.forward = torch.compile(encoder.forward, **options)  # an attribute of this one object: names of weights stay


@contextmanager
def untouched(method: TorchMethod) -> Iterator[None]:
    """While open, gradients and random draws may be made; afterwards they were not."""
    device = next(method.parameters()).device
    gradients = [(p, p.grad) for p in method.parameters()]
    for p, _ in gradients:
        p.grad = None
    was_training = {module: module.training for module in method.modules()}
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        for p, gradient in gradients:
            p.grad = gradient
        for module, training in was_training.items():
            module.training = training


def _states(method: TorchMethod, column: Features, autocast: Callable[[], AbstractContextManager[Any]]) -> Tensor:
    """(n, H) states of the first token, without dropout."""
    nn.Module.train(method, False)
    try:
        with torch.no_grad(), autocast():
            return method.hidden(column)[:, 0].float()
    finally:
        nn.Module.train(method, True)


def _close(found: Tensor, expected: Tensor) -> bool:
    return bool((found - expected).abs().max() <= CLOSE * expected.abs().max())


def _seconds_per_pass(
    method: TorchMethod, column: Features, autocast: Callable[[], AbstractContextManager[Any]], now: Callable[[], float]
) -> float:
    """Median seconds of one pass through the encoder and back, after a warm-up."""
    taken = []
    for _ in range(WARM_UP + TIMED):
        began = now()
        with autocast():
            states = method.hidden(column)
        if states.requires_grad:
            states.float().square().mean().backward()
        if states.device.type == "cuda":
            torch.cuda.synchronize(states.device)
        taken.append(now() - began)
    return statistics.median(taken[WARM_UP:])
