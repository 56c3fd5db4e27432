"""What resume needs, in one file a state: ``state/step-00000120-<hash>.pt``. The last two are kept.

A state is written aside, synced and renamed. Its name holds the hash of its content, so that a file that was cut short or
altered is found out, and the state before it is used. It is read with ``weights_only=True``: nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import torch

from bench.base.errors import RunFailed
from bench.base.hashes import file_sha256
from bench.base.lease import aside, check_owned
from bench.training.checkpoints import NO_SPACE, Damaged

STATES = 2  # that are kept: the newest, and the one before in case that is damaged
HASH = 32  # digits of it in a name


@dataclass
class Progress:
    """How far a training is. Seconds are summed over all processes that worked on it."""

    step: int = 0
    rows: int = 0
    tokens: int = 0  # of these rows, without padding
    best_step: int = 0
    best_score: float | None = None
    best_files: dict[str, str] = field(default_factory=dict)  # of the best checkpoint: file -> sha256
    worse: int = 0  # dev scores in a row that were not better
    scored: int = 0  # step of the last dev score
    logged: int = 0  # step of the last line of the curve
    chunk: int | None = None  # rows whose activations are held at once
    ranks: list[int] = field(default_factory=list)  # how many processes worked on it, one number after the other
    kernels: str | None = None  # how a GPU computes the encoder, see bench.training.compiled
    train_seconds: float = 0.0
    device_seconds: float = 0.0  # the same times the processes that worked
    dev_seconds: float = 0.0
    joules: float | None = None  # None: nothing counts them


@dataclass(frozen=True)
class SavedState:
    """A state that lies on the disk."""

    step: int
    sha256: str  # the beginning of it
    path: Path


def saved_states(folder: Path) -> list[SavedState]:
    """The states in ``folder``, newest first."""
    pattern = rf"step-([0-9]{{8,}})-([0-9a-f]{{{HASH}}})\.pt"
    states = [SavedState(int(name[1]), name[2], path) for path in folder.glob("step-*.pt") if (name := re.fullmatch(pattern, path.name))]
    return sorted(states, key=lambda state: (state.step, _written(state.path)), reverse=True)


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def save_state(folder: Path, step: int, content: Mapping[str, Any]) -> list[int]:
    """Write the state of ``step``, and remove all but the last two. Returns the steps of which one is kept.

    Raises RunFailed where it cannot be written; then the states before are as they were.
    """
    new = aside(folder) / "state.pt.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            hashed = _Hashed(file)
            torch.save(dict(content), hashed)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / f"step-{step:08d}-{hashed.digest.hexdigest()[:HASH]}.pt")
    except (OSError, RuntimeError) as error:  # torch wraps what a write raises
        check_owned(folder)
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RunFailed(f"the training state cannot be written to {folder}: {why}", NO_SPACE) from None
    check_owned(folder)
    return _remove_old(folder)


def _remove_old(folder: Path) -> list[int]:
    steps: list[int] = []
    for state in saved_states(folder):
        if len(steps) < STATES and state.step not in steps:
            steps.append(state.step)
        else:
            state.path.unlink(missing_ok=True)
    return steps


class _Hashed:
    """A file that is only written to, and the hash of what was."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def newest_good(folder: Path, check: Callable[[dict[str, Any]], None], say: Callable[[str], None]) -> Path | None:
    """The newest state that is whole and passes ``check``; None where there is none, and training starts anew.

    One that is damaged, or with which ``check`` raises Damaged, is removed and told of, and the one before is tried.
    """
    states = saved_states(folder)
    for i, state in enumerate(states):
        try:
            if not _sha256(state.path).startswith(state.sha256):
                raise Damaged("it was cut short or altered")
            check(read_state(state.path))
            return state.path
        except Damaged as problem:
            state.path.unlink(missing_ok=True)
            instead = f"the one of step {states[i + 1].step} is tried" if i + 1 < len(states) else "training starts anew"
            say(f"the training state of step {state.step} cannot be used, {problem}: {instead}")
    return None


def read_state(path: Path) -> dict[str, Any]:
    """Raises Damaged where it cannot be read."""
    try:
        content: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # whatever its bytes lead to; an older state loses time, never correctness
        raise Damaged(f"it cannot be read ({' '.join(str(error).split())[:80]})") from None
    return content


def _sha256(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError as error:
        raise Damaged(f"it cannot be read ({error.strerror})") from None


def rng_state(device: torch.device) -> dict[str, Any]:
    """Torch's generators, of this process and its device."""
    kinds: dict[str, Callable[[], torch.Tensor]] = {
        "cuda": lambda: torch.cuda.get_rng_state(device),
        "mps": lambda: torch.mps.get_rng_state(),
    }
    return {"cpu": torch.get_rng_state(), "device": kinds[device.type]() if device.type in kinds else None}


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if state["device"] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state["device"], device)
    elif state["device"] is not None and device.type == "mps":
        torch.mps.set_rng_state(state["device"])
