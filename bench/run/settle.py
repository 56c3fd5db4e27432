"""The device, the precision and the number of processes of a command, settled before anything is planned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.base import devices
from bench.base.errors import BenchError
from bench.run.config import RunConfig, Target, series
from bench.run.estimates import card_named, planned_device
from bench.run.plan import PlannedRun

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


def settled(config: RunConfig, *, only_look: bool = False, ranks: Ranks | None = None) -> RunConfig:
    """The config with a device, a precision and a number of processes. Raises BenchError where they cannot be.

    ``only_look``: for a plan, which may be for a card that is not here. ``ranks``: of this process, which agree.
    """
    elsewhere = config.target.elsewhere
    config = _settled_elsewhere(config) if elsewhere else _here(config, only_look, ranks)
    for values in series(config.values):
        budget = values.get("budget", "")
        if "gpu" in budget and not config.device.startswith("cuda"):
            raise BenchError(
                f"--budget {budget}: this run is on {config.device}, which is no GPU",
                f"--budget {budget.replace('gpu-', '')}, or --device cuda",
            )
    return config


def _here(config: RunConfig, only_look: bool, ranks: Ranks | None) -> RunConfig:
    device = planned_device(config.device) if only_look else devices.choose_device(config.device)
    if card_named(device) is not None:
        precision = "bf16" if config.precision == "auto" else config.precision
        return replace(config, device=device, precision=precision)
    choose = partial(devices.choose_precision, config.precision, device)
    precision = ranks.first(choose) if ranks else choose()  # the ranks of a run agree
    count = process_count(config.target, device)
    on = "here" if count == 1 else f"torchrun:{count}"
    return replace(config, device=device, precision=precision, on=on)


def _settled_elsewhere(config: RunConfig) -> RunConfig:
    """From the options, never from this machine."""
    if config.device not in ("auto", "cuda"):
        hint = "--device cuda, or gpus=N in --on, asks for GPUs where it runs; without it runs are on the CPU"
        raise BenchError(f"--device {config.device} is about this machine", hint)
    gpus, on = config.target.gpus or int(config.device == "cuda"), config.on
    if gpus and not config.target.gpus:
        on += f"{',' if ':' in on else ':'}gpus={gpus}"
    device, precision = ("cuda", "bf16") if gpus else ("cpu", "fp32")
    if config.precision != "auto":
        precision = devices.choose_precision(config.precision, device)
    return replace(config, device=device, precision=precision, on=on)


def is_launched() -> bool:
    """Was this process started as one of several, by torchrun or by what does as it does?"""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    return all(os.environ.get(name) for name in names) and os.environ["WORLD_SIZE"] != "1"


def process_count(target: Target, device: str) -> int:
    """How many processes train together. Raises BenchError where that cannot be."""
    if is_launched():
        return int(os.environ["WORLD_SIZE"])
    if target.name != "torchrun":
        return 1
    if device == "cpu" and target.gpus is not None:
        return target.gpus
    if device != "cuda":
        hint = "--device cuda --on torchrun:N, or --device cpu --on torchrun:2"
        raise BenchError(f"--on torchrun on {device}: how many processes?", hint)
    import torch

    count = torch.cuda.device_count()
    if (target.gpus or 0) > count:
        text = f"--on torchrun:{target.gpus}: more processes than the {count} GPUs here"
        raise BenchError(text, f"--on torchrun:{count}")
    return target.gpus or count


def check_chunks(planned: Sequence[PlannedRun], chunk: int | str | None) -> None:
    """Raises BenchError where a method that trains cannot take a batch in parts."""
    from bench.training.gradient import check_chunk

    for run in planned:
        trained = run.corpus is not None and run.plugin.cls.fitted != "pass"
        if trained and isinstance(chunk, int):
            check_chunk(run.plugin.cls, chunk)
