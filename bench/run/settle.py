"""The device, the precision and the number of processes of a command, settled before anything is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench.base import devices
from bench.base.errors import BenchError
from bench.run.config import RunConfig, series
from bench.run.estimates import card_named, planned_device
from bench.run.executors.torchrun import process_count
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
    device, precision, target = config.device, config.precision, config.target
    if only_look and card_named(device := planned_device(device)) is not None:
        return replace(
            config, device=device, precision="bf16" if precision == "auto" else precision
        )
    if card_named(device) is not None:
        raise BenchError(
            f"--device {device}: a card by its name is for a plan",
            "--dry-run plans for it; --device cuda trains on a GPU",
        )
    device = devices.choose_device(device)
    count = process_count(target, device)
    choose = partial(devices.choose_precision, precision, device)
    precision = ranks.first(choose) if ranks else choose()  # the ranks of a run agree
    on = "here" if count == 1 else f"torchrun:{count}"
    return replace(config, device=device, precision=precision, on=on)


def _settled_elsewhere(config: RunConfig) -> RunConfig:
    """From the options, never from this machine."""
    if config.device not in ("auto", "cuda"):
        hint = "--device cuda, or gpus=N in --on, asks for GPUs where it runs; without it runs are on the CPU"
        raise BenchError(f"--device {config.device} is about this machine", hint)
    gpus = config.target.gpus or int(config.device == "cuda")
    on = config.on
    if gpus and not config.target.gpus:
        on += f"{',' if ':' in on else ':'}gpus={gpus}"
    if not gpus and config.precision in ("fp16", "tf32"):
        raise BenchError(f"--precision {config.precision} needs a GPU", "gpus=1 in --on")
    precision = config.precision
    if precision == "auto":
        precision = "bf16" if gpus else "fp32"
    return replace(config, device="cuda" if gpus else "cpu", precision=precision, on=on)


def check_chunks(planned: Sequence[PlannedRun], chunk: int | str | None) -> None:
    """Raises BenchError where a method that trains cannot take a batch in parts."""
    from bench.training.gradient import check_chunk

    for run in planned:
        trained = run.corpus is not None and run.plugin.cls.fitted != "pass"
        if trained and isinstance(chunk, int):
            check_chunk(run.plugin.cls, chunk)
