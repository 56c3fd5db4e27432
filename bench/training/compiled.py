"""Whether compiled kernels pay: measured at the start of a training on a GPU, and said. On a CPU nothing is compiled.

What is compiled is the encoder's forward, which is nearly all that costs time, and only while training: vectors that are scored
come from the encoder as it is. Each way of compiling is tried on the views of the first batch: it must give the same values as the
encoder as it is, up to rounding, and be faster. One that fails is named with its error, and is not used.
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

from bench.method.features import cut
from bench.method.torch_method import Batch, TorchMethod

AS_IT_IS = "not compiled"
GRAPHS = "compiled, CUDA graphs"
WAYS: dict[str, dict[str, Any]] = {"compiled": {}, GRAPHS: {"mode": "reduce-overhead"}}
WORTH_A_TRY = 600.0  # seconds that a training must have before it: compiling and measuring take one or two minutes
GAIN = 1.05  # how many times as fast it must be
WARM_UP, TIMED = 3, 7  # passes
CLOSE = 0.03  # largest difference of a state, as a share of the largest state: rounding in bf16

Autocast = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Choice:
    """The name of a way (``AS_IT_IS`` or one of ``WAYS``), and a line for the user that says why."""

    name: str
    line: str


def choose(
    method: TorchMethod,
    batch: Batch,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    chunk: int | None = None,
    autocast: Autocast = nullcontext,
) -> Choice:
    """The fastest way to compute the views of ``batch``, of which ``steps`` like it are left, or ``seconds`` of training.

    Measured on as many rows as ``chunk`` says go through the encoder at once. A graph keeps its output in one place, which the
    next slice of a batch would overwrite: with ``chunk`` there are none. Afterwards weights, gradients, random generators and
    the encoder are as before. A method whose loss is not split into views and loss is left as it is.
    """
    if not method.is_split():
        return Choice(AS_IT_IS, f"{AS_IT_IS}: {method.name} has no views to try it on")
    rows = chunk or batch.size
    part = Batch(tuple(cut(column, 0, rows) for column in batch.columns), batch.step)
    slices = -(-batch.size // rows)
    taken: dict[str, float] = {}
    problems: dict[str, str] = {}
    with leave_untouched(method):
        taken[AS_IT_IS] = _seconds_per_pass(method, part, autocast)
        left = seconds if steps is None else steps * slices * taken[AS_IT_IS]
        if left is not None and left < WORTH_A_TRY:
            return Choice(AS_IT_IS, f"{AS_IT_IS}: {left:.0f} seconds of training are less than compiling is worth")
        expected = _views(method, part, autocast)
        for name in (way for way in WAYS if chunk is None or way != GRAPHS):
            use(method, name)
            try:
                if not _close(_views(method, part, autocast), expected):
                    problems[name] = "gives other values"
                    continue
                taken[name] = _seconds_per_pass(method, part, autocast)
            except Exception as error:  # a compiler fails in many ways, and none of them ends the training
                problems[name] = (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
            finally:
                use(method, AS_IT_IS)
    fastest = min(taken, key=taken.__getitem__)
    chosen = fastest if taken[AS_IT_IS] / taken[fastest] >= GAIN else AS_IT_IS
    measured = "; ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in taken.items())
    failed = "".join(f"; {name}: {problem}" for name, problem in problems.items())
    return Choice(chosen, f"{chosen} (the views and their gradient: {measured}{failed})")


def use(method: TorchMethod, name: str) -> None:
    """From now on compute the encoder in the way of that name."""
    vars(method.encoder).pop("forward", None)
    if name != AS_IT_IS:
        _compile(method.encoder, WAYS[name])


def _compile(encoder: nn.Module, options: Mapping[str, Any]) -> None:
    encoder.forward = torch.compile(encoder.forward, **options)  # an attribute of this one object: names of weights stay


@contextmanager
def leave_untouched(method: TorchMethod) -> Iterator[None]:
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


def _views(method: TorchMethod, part: Batch, autocast: Autocast) -> list[Tensor]:
    """The views that carry a gradient, without dropout and with the same other draws every time."""
    method.train(False)
    torch.manual_seed(0)
    try:
        with autocast():
            return [view.detach().float() for view in method.views(part) if view.requires_grad]
    finally:
        method.train(True)


def _close(views: list[Tensor], expected: list[Tensor]) -> bool:
    return all(bool((view - other).abs().max() <= CLOSE * other.abs().max()) for view, other in zip(views, expected, strict=True))


def _seconds_per_pass(method: TorchMethod, part: Batch, autocast: Autocast) -> float:
    """Median seconds of the views and of the way back from them, after a warm-up."""
    taken = []
    for _ in range(WARM_UP + TIMED):
        began = time.perf_counter()
        with autocast():
            views = [view for view in method.views(part) if view.requires_grad]
        torch.autograd.backward([view.float().square().mean() for view in views])
        for view in views[:1]:
            if view.device.type == "cuda":
                torch.cuda.synchronize(view.device)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[WARM_UP:])
