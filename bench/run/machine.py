"""Settle the device, the precision and the number of processes of a command before anything is
planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.base import devices
from bench.base.errors import BenchError
from bench.base.launched import launched
from bench.run.cards import card_named, planned_device
from bench.run.config import RunConfig, Target, series
from bench.run.plan import PlannedRun

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


def settle_machine(
    config: RunConfig, *, only_look: bool = False, ranks: Ranks | None = None
) -> RunConfig:
    """Return the config with a device, a precision and a number of processes.

    ``only_look``: it is for a plan, which may name a card that is not here. ``ranks``: the
    processes of this run, which agree on one precision. Raises BenchError for a request that this
    machine cannot fulfil.
    """
    if config.target.elsewhere:
        config = _settle_elsewhere(config)
    else:
        config = _settle_here(config, only_look, ranks)
    for values in series(config.values):
        budget = values.get("budget", "")
        if "gpu" in budget and not config.device.startswith("cuda"):
            raise BenchError(
                f"--budget {budget}: this run is on {config.device}, which is not a GPU",
                f"--budget {budget.replace('gpu-', '')}, or --device cuda",
            )
    return config


def _settle_here(config: RunConfig, only_look: bool, ranks: Ranks | None) -> RunConfig:
    device = planned_device(config.device) if only_look else devices.choose_device(config.device)
    if card_named(device) is not None:
        precision = "bf16" if config.precision == "auto" else config.precision
        return replace(config, device=device, precision=precision)
    choose = partial(devices.choose_precision, config.precision, device)
    precision = ranks.first(choose) if ranks else choose()  # the ranks of a run agree
    count = process_count(config.target, device)
    return replace(
        config,
        device=device,
        precision=precision,
        on="here" if count == 1 else f"torchrun:{count}",
    )


def _settle_elsewhere(config: RunConfig) -> RunConfig:
    """Settle the config by the options alone, never by this machine."""
    if config.device not in ("auto", "cuda"):
        raise BenchError(
            f"--device {config.device} is about this machine",
            "use --device cuda, or gpus=N in --on, to request GPUs; otherwise the runs use the CPU",
        )
    gpus = config.target.gpus or int(config.device == "cuda")
    on = config.on
    if gpus and not config.target.gpus:
        separator = "," if ":" in on else ":"
        on += f"{separator}gpus={gpus}"
    device = "cuda" if gpus else "cpu"
    precision = "bf16" if gpus else "fp32"
    if config.precision != "auto":
        precision = devices.choose_precision(config.precision, device)
    return replace(config, device=device, precision=precision, on=on)


def is_launched() -> bool:
    """Say if this process is one of several that torchrun or a similar launcher started."""
    return launched() is not None


def process_count(target: Target, device: str) -> int:
    """Return how many processes train together.

    Raises BenchError if the number is missing or too large.
    """
    if (process := launched()) is not None:
        return process.count
    if target.name != "torchrun":
        return 1
    if device == "cpu" and target.gpus is not None:
        return target.gpus
    if device != "cuda":
        raise BenchError(
            f"--on torchrun on {device}: how many processes?",
            "--device cuda --on torchrun:N, or --device cpu --on torchrun:2",
        )
    import torch

    count = torch.cuda.device_count()
    if (target.gpus or 0) > count:
        raise BenchError(
            f"--on torchrun:{target.gpus}: more processes than the {count} GPUs here",
            f"--on torchrun:{count}",
        )
    return target.gpus or count


def check_chunks(planned: Sequence[PlannedRun], chunk: int | str | None) -> None:
    """Raise BenchError if a method that trains cannot split a batch."""
    from bench.training.gradient import check_chunk

    for run in planned:
        if isinstance(chunk, int) and run.corpus is not None and run.plugin.cls.fitted != "pass":
            check_chunk(run.plugin.cls, chunk)
