"""Options that depend on the machine: device, precision, and how many processes train together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bench.base import devices
from bench.base.devices import Precision
from bench.base.errors import BenchError
from bench.base.launched import launched
from bench.method.config import RunConfig
from bench.method.contract import how_fitted
from bench.run.options import combinations_of
from bench.run.planned import PlannedRun
from bench.run.target import Target, parse_target

if TYPE_CHECKING:
    from bench.method.ranks import Ranks


def settle_config(config: RunConfig, *, ranks: Ranks | None = None) -> RunConfig:
    """Return the config with a device, a precision and a number of processes.

    Raises BenchError for options that this machine cannot fulfil.

    ``ranks``: the ranks of this process, which agree on one precision.
    """
    config = (
        _settled_elsewhere(config) if parse_target(config.on).elsewhere else _here(config, ranks)
    )
    for values in combinations_of(config.recipe_values):
        budget = values.get("budget", "")
        if "gpu" in budget and not config.device.startswith("cuda"):
            raise BenchError(
                f"--budget {budget}: this run is on {config.device}, which is not a GPU",
                f"--budget {budget.replace('gpu-', '')}, or --device cuda",
            )
    return config


def _here(config: RunConfig, ranks: Ranks | None) -> RunConfig:
    device = devices.choose_device(config.device)
    choose = partial(devices.choose_precision, config.precision, device)
    precision = ranks.first(choose) if ranks else choose()  # the ranks of a run agree
    target = parse_target(config.on)
    count = process_count(target, device)
    on = "here" if count == 1 else f"torchrun:{count}"
    if target.name == "local":
        on = config.on
    return replace(config, device=device, precision=precision, on=on)


def _settled_elsewhere(config: RunConfig) -> RunConfig:
    """From the options alone, never from this machine."""
    if config.device not in ("auto", "cuda"):
        raise BenchError(
            f"--device {config.device} is about this machine",
            "use --device cuda, or gpus=N in --on, to request GPUs; otherwise the runs use the CPU",
        )
    requested = parse_target(config.on).gpus
    gpus, on = requested or int(config.device == "cuda"), config.on
    if gpus and not requested:
        on += f"{',' if ':' in on else ':'}gpus={gpus}"
    device = "cpu"
    precision: Precision = "fp32"
    if gpus:
        device, precision = "cuda", "bf16"
    if config.precision != "auto":
        precision = devices.choose_precision(config.precision, device)
    return replace(config, device=device, precision=precision, on=on)


def process_count(target: Target, device: str) -> int:
    """Return how many processes train together.

    Raises BenchError for a number that is missing or too large.
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


def check_batches(planned: Sequence[PlannedRun], config: RunConfig) -> None:
    """Raise BenchError if a method that trains cannot split a batch, and has to."""
    from bench.training.gradient import check_split

    if config.chunk is None and parse_target(config.on).ranks == 1:
        return
    for run in planned:
        if run.corpus is not None and how_fitted(run.plugin.cls) != "pass":
            check_split(run.plugin.cls)
