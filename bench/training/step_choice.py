"""Which step a training takes: the plain one, or the one on static buffers, as a graph or not."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from bench.method import Context
from bench.method.torch_method import TorchMethod
from bench.training.cuda_graphs import CudaGraphs
from bench.training.static_step import StaticStep, Update


def choose_step(
    method: TorchMethod,
    optimizer: torch.optim.Optimizer,
    trained: list[Tensor],
    context: Context,
    half: torch.dtype | None,
) -> StaticStep | None:
    """Return the step that ``context.step`` names, or None for the plain one.

    ``half``: the type of the forward pass, None for float32. A method, an optimiser or an option
    that such a step cannot follow gets the plain one, and one line that says why.
    """
    if context.step == "eager":
        return None
    device = torch.device(context.device)
    reason = refuse_static(method, optimizer, context)
    if reason is None and context.step == "graph" and device.type != "cuda":
        reason = f"device {context.device} has no CUDA graphs"
    if reason is not None:
        context.reporter.note(f"step={context.step}: the steps are eager, because {reason}")
        return None
    update = Update(
        method,
        optimizer,
        trained,
        autocast=partial(torch.autocast, device.type, half, enabled=half is not None),
        max_norm=method.recipe.max_grad_norm,
    )
    recorder = CudaGraphs(device) if context.step == "graph" else None
    return StaticStep(update, device, context.reporter.note, recorder)


def refuse_static(
    method: TorchMethod, optimizer: torch.optim.Optimizer, context: Context
) -> str | None:
    """Say why an update on static buffers would not be the plain one, or None if it is."""
    if method.ranks.count > 1:
        return "several processes exchange gradients"
    if context.precision == "fp16":
        return "fp16's scaler decides on the CPU which updates are skipped"
    if context.chunk is not None or context.auto_batch:
        return "--chunk computes a batch in slices"
    if context.unpadded:
        return "unpadded rows have another shape in each step"
    if type(method).prepare is not TorchMethod.prepare:
        return f"{method.name} changes itself before each batch (prepare)"
    kept = untrained_state(method)
    if kept is not None:
        return f"{method.name} keeps {kept}, which no optimiser changes (training_only)"
    kind = type(optimizer)
    if not kind.__module__.startswith("torch.optim"):
        return f"{kind.__name__} computes on the CPU what differs from step to step"
    for group in optimizer.param_groups:
        if not group.get("fused") or "capturable" not in group:
            return f"{kind.__name__} is not fused"
    if torch.device(context.device).type not in ("cpu", "cuda"):
        return f"device {context.device} was never tried"
    return None


def untrained_state(method: TorchMethod) -> str | None:
    """Return the first tensor that only training needs and that no optimiser changes, or None.

    It is a momentum copy or a queue, which the method itself changes.
    """
    prefixes = tuple(f"{part}." for part in method.training_only)
    if not prefixes:
        return None
    trained = {name for name, p in method.named_parameters() if p.requires_grad}
    for name in method.state_dict():
        if f"{name}.".startswith(prefixes) and name not in trained:
            return name
    return None
