"""What resume needs: trained tensors, optimiser, random generators, and how far the run is. One file, replaced whole.

The state is read with ``weights_only=True``: nothing in it is executed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from bench.errors import RunFailed
from bench.torch_method import TorchMethod


@dataclass
class Progress:
    """How far a training is. Seconds are summed over all its sittings."""

    step: int = 0
    rows: int = 0
    best_step: int = 0
    best_score: float | None = None
    worse: int = 0  # dev scores in a row that were not better
    train_seconds: float = 0.0
    dev_seconds: float = 0.0


def save_state(
    folder: Path, method: TorchMethod, optimizer: torch.optim.Optimizer, scaler: Any, progress: Progress,
    window: list[dict[str, torch.Tensor]], device: torch.device,
) -> None:  # fmt: skip
    """Write ``folder/state.pt`` aside and rename it. A full disk leaves the state before untouched (RunFailed)."""
    state = {
        "trained": method.training_state(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict(),
        "progress": asdict(progress), "window": window, "cpu_rng": torch.get_rng_state(),
        "device_rng": torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
    }  # fmt: skip
    new = folder / "state.pt.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / "state.pt")
    except (OSError, RuntimeError) as error:
        new.unlink(missing_ok=True)
        raise RunFailed(
            f"the training state cannot be written to {folder}: {error}", "free disk space, or another --runs"
        ) from None


def load_state(
    folder: Path, method: TorchMethod, optimizer: torch.optim.Optimizer, scaler: Any, device: torch.device
) -> tuple[Progress, list[dict[str, torch.Tensor]]] | None:
    """Restore everything from ``folder/state.pt``; returns the progress and what was counted and not yet logged.

    None where there is none, or where it does not fit: training starts anew.
    """
    file = folder / "state.pt"
    if not file.exists():
        return None
    try:
        state = torch.load(file, weights_only=True, map_location="cpu")
        if state["trained"].keys() != method.training_state().keys():
            return None
        progress = Progress(**state["progress"])
    except Exception:  # a damaged file raises whatever its bytes lead to; starting anew loses time, never correctness
        return None
    method.load_state_dict(state["trained"], strict=False)
    optimizer.load_state_dict(state["optimizer"])
    scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["cpu_rng"])
    if device.type == "cuda" and state["device_rng"] is not None:
        torch.cuda.set_rng_state(state["device_rng"], device)
    return progress, state["window"]


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a folder aside, then put it in the place of ``folder``: readers see the old one or the new one."""
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    try:
        write(new)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise RunFailed(f"the checkpoint cannot be written to {folder}: {error}", "free disk space, or another --runs") from None
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    new.mkdir(exist_ok=True)  # a method may have nothing to save
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def settle_folder(folder: Path) -> None:
    """After a crash inside :func:`replace_folder`: the old folder goes back where no new one is, half-written ones go."""
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    if old.exists() and not folder.exists():
        old.rename(folder)
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
