"""Is a card's training right? Dropout, steps against the CPU, the demo, and resuming."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from card_models import Case, Place, built, copied, methods_of, random_backbone
from card_steps import LENGTH, Found, Training, full_rows
from torch import Tensor
from torch.overrides import TorchFunctionMode

DROPOUT = 0.1
STEPS = 5
BOUNDS = {"fp32": (2e-5, 1e-3), "tf32": (0.005, 0.1), "bf16": (0.05, 0.4), "fp16": (0.015, 0.2)}
"""Largest difference of a loss, as a share of the largest loss; of all gradients, of their length.

They are some four times what imitated rounding gave on a CPU on a model of width 32, except for
fp32's gradients: 12 layers of 768 were not imitated.
"""
FP16_SCALE = 256.0
"""Of fp16's loss: the usual 65,536 skips steps until it has fallen, and the CPU skips none."""


def attention_dropout(place: Place) -> Found:
    """Measure the dropout that fused attention draws, and its kernel, with and without the guard.

    With the guard it must be what was asked for, and the backward pass must use the mask of the
    forward pass.
    """
    from bench.method.attention_dropout import (
        TOLERANCE,
        attention_kernel,
        measure_attention_dropout,
        without_rounded_dropout,
    )

    device, lines, good, detail = torch.device(place.device), [], True, {}
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        if not place.on_gpu and dtype != torch.float32:
            continue
        for guarded in (False, True):
            with without_rounded_dropout([DROPOUT]) if guarded else nullcontext():
                drawn = measure_attention_dropout(DROPOUT, device, dtype)
                kernel = attention_kernel(DROPOUT, device, dtype)
                off = backward_difference(device, dtype)
            name = str(dtype).removeprefix("torch.")
            key = f"{name} {'guarded' if guarded else 'as torch chooses'}"
            detail[key] = {"dropout": drawn, "kernel": kernel, "backward": off}
            lines.append(f"{key}: {drawn:.4f} by {kernel}")
            if guarded and (abs(drawn - DROPOUT) > TOLERANCE or off > 0.02):
                good = False
                lines[-1] += f" (backward off by {off:.2g})"
    return Found("; ".join(lines), good, f"{DROPOUT} +- {TOLERANCE}, guarded", detail)


def backward_difference(device: torch.device, dtype: torch.dtype) -> float:
    """Return how far the backward pass of attention is from one with the forward pass's mask.

    With unit vectors as values the output is the weights after dropout, W; the gradient of the
    values for an output gradient G is then W^T G. Returned is the difference as a share of it.
    """
    rows, heads, size = 4, 2, LENGTH
    query = torch.zeros((rows, heads, LENGTH, size), device=device, dtype=dtype)
    query.requires_grad_()
    unit: Tensor = torch.eye(size, device=device, dtype=dtype)
    value = unit.repeat(rows, heads, 1, 1).requires_grad_()
    mask = torch.ones((rows, 1, LENGTH, LENGTH), dtype=torch.bool, device=device)
    output = torch.nn.functional.scaled_dot_product_attention(
        query, query, value, attn_mask=mask, dropout_p=DROPOUT
    )
    upstream = torch.randn(output.shape, device=device).to(dtype)
    output.backward(upstream)
    wanted = output.detach().float().transpose(2, 3) @ upstream.float()
    assert value.grad is not None
    return float((value.grad.float() - wanted).norm() / wanted.norm())


class DrawnOnCpu(TorchFunctionMode):
    """While open, dropout outside fused attention takes its masks from the CPU's generator."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.nn.functional.dropout:
            return self._dropout(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    @staticmethod
    def _dropout(
        given: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or p == 0:
            return given
        kept = (torch.rand(given.shape) >= p).to(given.device, given.dtype)
        return given * kept / (1 - p)


@dataclass(frozen=True)
class Steps:
    """The losses (S,) of a training's steps, and each step's gradient in float32 on the CPU."""

    losses: list[float]
    gradients: list[Tensor]


def trained_steps(method: Any, count: int) -> Steps:
    """Do steps of the real trainer; gradients are taken as the optimiser gets them."""
    from bench.training import trainer as module

    losses: list[float] = []
    gradients: list[Tensor] = []
    real = module.backward

    def recording(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        losses.append(float(found["loss"]))
        return found

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(module, "backward", recording))
        stack.enter_context(DrawnOnCpu())
        training = Training(method, full_rows(count * method.recipe.batch_size))
        trainer = training.trainer
        if method.context.precision == "fp16":
            trainer.scaler = torch.amp.GradScaler(trainer.device.type, init_scale=FP16_SCALE)

        def keep(*_: Any) -> None:
            gradients.append(torch.cat([flat_gradient(p) for p in trainer.trained]))

        trainer.optimizer.register_step_pre_hook(keep)
        training.steps(count)
        training.close()
    return Steps(losses, gradients)


def flat_gradient(p: Tensor) -> Tensor:
    """Return a parameter's gradient as one row of float32 on the CPU; zeros if it has none."""
    gradient = torch.zeros_like(p) if p.grad is None else p.grad
    return gradient.detach().float().cpu().flatten()


def difference(one: Steps, other: Steps) -> tuple[float, float]:
    """Return the differences (of losses, of gradients) over all steps, as ``BOUNDS`` has them.

    Infinity stands for a difference that is no number. Raises ValueError if every loss of ``one``
    is 0: then there is nothing to compare.
    """
    if not np.any(one.losses):
        raise ValueError("every loss is exactly 0, so that nothing is compared")
    if len(one.gradients) != len(other.gradients):
        return float("inf"), float("inf")  # a step was skipped
    losses = np.abs(np.array(one.losses) - np.array(other.losses)).max() / np.abs(one.losses).max()
    off, length = 0.0, 0.0
    for a, b in zip(one.gradients, other.gradients, strict=True):
        off += float((a - b).square().sum())
        length += float(a.square().sum())
    gradients = (off / length) ** 0.5 if length else float("inf")
    found = []
    for number in (float(losses), gradients):
        found.append(number if np.isfinite(number) else float("inf"))
    return found[0], found[1]


def base_method(place: Place, rows: int) -> Any:
    """Return SimCSE on random weights of BERT-base's shape on the CPU, without attention dropout.

    Fused attention draws its masks itself, and no other device can draw the same: its dropout is
    measured by itself.
    """
    backbone = random_backbone("bert-base", replace(place, device="cpu"))
    for module in backbone.encoder.modules():
        if hasattr(module, "config"):
            module.config.attention_probs_dropout_prob = 0.0
        attention = getattr(module, "self", None)
        if attention is not None and isinstance(
            getattr(attention, "dropout", None), torch.nn.Dropout
        ):
            attention.dropout.p = 0.0
    case = Case(methods_of("simcse")[0], "unsupervised", "")
    values = {"batch_size": rows, "max_steps": 100, "max_seq_length": LENGTH, "max_grad_norm": 0.0}
    return built(case, place, backbone, select_on="last", **values)


def five_steps(place: Place) -> Found:
    """Compare five steps on BERT-base's shape in each precision with float32 on the CPU."""
    ready = base_method(place, place.size(16, 4))
    with mock.patch("bench.method.torch_method.group_by_length", lambda mask: []):
        reference = trained_steps(copied(ready, place, "cpu"), STEPS)
        lines, good, detail = [], True, {}
        for precision in place.precisions:
            method = copied(ready, place, place.device, precision)
            two = difference(reference, trained_steps(method, STEPS))
            detail[precision] = {"losses": two[0], "gradients": two[1]}
            lines.append(f"{precision} {two[0]:.1e}, {two[1]:.1e}")
            good = good and all(a <= b for a, b in zip(two, BOUNDS[precision], strict=True))
    asked = "; ".join(f"{name} {a:g}, {b:g}" for name, (a, b) in BOUNDS.items())
    return Found("losses, gradients: " + "; ".join(lines), good, asked, detail)


def copied_untrained(place: Place, backbone: Any) -> Any:
    """Return the untrained mean of a backbone's last layer, on the device."""
    untrained = {cls.name: cls for cls in methods_of("untrained")}["last-avg"]
    return copied(built(Case(untrained, "none", ""), place, backbone), place, place.device)


def resumed(place: Place) -> Found:
    """Compare a training with one that was interrupted: the same bytes, under real dropout.

    torch's deterministic settings are on; the process needs CUBLAS_WORKSPACE_CONFIG.
    """
    from bench.base.errors import Interrupted
    from bench.training.loop import train_method

    steps = place.size(20, 4)
    case = Case(methods_of("simcse")[0], "unsupervised", "")
    problems, done = [], []
    for precision in place.precisions:
        backbone = random_backbone("bert-base", replace(place, device="cpu"))
        ready = built(case, place, backbone, batch_size=8, max_steps=steps, select_on="last")
        corpus = full_rows(8 * steps)
        with deterministic():
            whole, first = (copied(ready, place, place.device, precision) for _ in range(2))
            train_method(whole, corpus, whole.context)
            asked = iter([False] * (steps // 2) + [True])
            first.context = replace(first.context, should_stop=lambda asked=asked: next(asked))
            try:
                train_method(first, corpus, first.context)
                problems.append(f"{precision}: it did not stop")
            except Interrupted:
                pass
            second = copied(ready, place, place.device, precision)
            second.context = replace(second.context, folder=first.context.folder)
            train_method(second, corpus, second.context)
        one, two = whole.training_state(), second.training_state()
        different = [name for name in one if not torch.equal(one[name], two[name])]
        if different:
            problems.append(f"{precision}: {len(different)} of {len(one)} tensors differ")
        done.append(precision)
    value = "; ".join(problems) or f"the same bytes in {', '.join(done)}"
    return Found(value, not problems, "bit for bit", {"done": done, "problems": problems})


@contextmanager
def deterministic() -> Iterator[None]:
    """Use torch's deterministic kernels while open, if an operation has one."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def demo_on_both(place: Place) -> Found:
    """Train and score ``bench demo`` on the CPU and on the device; the means must agree.

    They may differ by two standard errors of the difference, from the spread over seeds.
    """
    scores = {}
    for device in dict.fromkeys(("cpu", place.device)):
        scores[device] = demo_scores(place, device)
    here, there = (np.array(scores[device]) for device in ("cpu", place.device))
    error = float(np.sqrt(here.var(ddof=1) / len(here) + there.var(ddof=1) / len(there)))
    off = abs(float(here.mean() - there.mean()))
    value = f"CPU {here.mean():.2f}, device {there.mean():.2f}; standard error {error:.2f}"
    good = off <= max(2 * error, 0.3) if place.on_gpu else None
    return Found(value, good, "two standard errors, or 0.3", {"scores": scores})


def demo_scores(place: Place, device: str) -> list[float]:
    """Return SimCSE's scores of ``bench demo``'s recipe on a device, seed by seed."""
    from bench.records import RunsFolder

    out = place.scratch / f"demo-{device}"
    command = [sys.executable, "-P", "-m", "bench", "run", "simcse", "--suite", "check"]
    command += ["--corpus", "builtin", "--backbone", "builtin", "--offline", "--plain"]
    command += ["--device", device, "--seeds", "1-3", "--runs", str(out), "--precision", "fp32"]
    values = {"batch_size": 32, "eval_steps": 15, "pooler": "avg_first_last"}
    values |= {"max_steps": place.size(30, 2), "epochs": 2}
    for key, number in values.items():
        command += ["--set", f"{key}={number}"]
    with mock.patch.dict("os.environ", {"BENCH_CACHE": str(place.scratch / "cache")}):
        done = subprocess.run(command, capture_output=True, text=True, cwd=place.scratch)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or done.stdout.strip())[-300:])
    found = []
    for record in RunsFolder(out).records()[0]:
        found.append(float(np.mean([score.value for score in record.scores])))
    return found
