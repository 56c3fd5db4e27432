"""What a training keeps on the disk: its best checkpoint, and the states from which it resumes.

A state is one file, ``state/step-00000120-<hash>.pt``; the last two are kept. It is written under another name, synced and renamed.
Its name has the hash of its content, so that a truncated or altered file is noticed, and the state before it is used. It is read
with ``weights_only=True``: nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from bench.base.errors import RunFailed
from bench.base.files import file_sha256, folder_sha256

# --- the checkpoint with the best dev score ---
# During a training it is ``state/best-00000125/``; at the end it becomes ``checkpoint/``. A state names the step and the hashes of
# its best checkpoint. At most two exist, the newest and the one that the newest state names: each may take gigabytes. Where that
# state is damaged and the one before names a checkpoint that is gone, training starts again from the beginning.

NO_SPACE = "free disk space, or another --runs"


class Damaged(Exception):
    """A state cannot be used, or the checkpoint that it names."""


class Checkpoints:
    """Of the run in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.used, self.state = folder / "checkpoint", folder / "state"

    def keep(self, step: int, write: Callable[[Path], object]) -> dict[str, str]:
        """A new best checkpoint, which ``write`` puts into a folder. Returns the hash of each file.

        At most two exist: this one, and the one that the newest state names. Raises RunFailed where it cannot be written.
        """
        folder = self._best(step)
        replace_folder(folder, write)
        self.forget_all_but([step, *(state.step for state in saved_states(self.state)[:1])])
        return folder_sha256(folder)

    def check(self, step: int, files: Mapping[str, str]) -> None:
        """Raises Damaged where the best checkpoint, of ``step``, does not have the hashes that its state names."""
        if folder_sha256(self._best(step)) != files:
            raise Damaged(f"the best checkpoint, of step {step}, was cut short or altered")

    def finish(self, step: int) -> None:
        """Make the best checkpoint, of ``step``, the run's checkpoint."""
        copy = partial(shutil.copytree, self._best(step), copy_function=link_or_copy)
        replace_folder(self.used, copy)

    def forget_after(self, step: int) -> None:
        """Remove those of later steps, which are trained again, and unfinished ones that a crash left."""
        for of_step, folder in self._all():
            if of_step > step or folder.suffix:
                shutil.rmtree(folder, ignore_errors=True)

    def forget_all_but(self, states: Iterable[int]) -> None:
        """Keep those that states of these steps name: for each, the newest that is not newer than the state."""
        every = self._all()
        needed = {max((best for best, _ in every if best <= step), default=None) for step in states}
        for of_step, folder in every:
            if of_step not in needed:
                shutil.rmtree(folder, ignore_errors=True)

    def _best(self, step: int) -> Path:
        return self.state / f"best-{step:08d}"

    def _all(self) -> list[tuple[int, Path]]:
        """(step, folder) of each."""
        folders = self.state.glob("best-*")
        return [(int(path.stem.removeprefix("best-")), path) for path in folders]


def link_or_copy(source: str, to: str) -> None:
    """A hard link where the disk supports it: a checkpoint's files are never changed."""
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def replace_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill another folder, then replace ``folder`` by it: readers see the old one or the new one."""
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        write(new)
        new.mkdir(exist_ok=True)  # a method may have nothing to save
        for path in new.rglob("*"):
            if path.is_file():  # on the disk before the rename, which would else show an empty one
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    except (OSError, SafetensorError) as error:  # a full disk can raise either
        shutil.rmtree(new, ignore_errors=True)
        if old.exists() and not folder.exists():
            old.rename(folder)
        why = getattr(error, "strerror", None) or error
        raise RunFailed(f"the checkpoint cannot be written to {folder}: {why}", NO_SPACE) from None
    shutil.rmtree(old, ignore_errors=True)


# --- what resume needs, one file for each state ---

STATES = 2  # that are kept: the newest, and the one before in case that is damaged
HASH = 32  # digits in a name


@dataclass
class Progress:
    """How far a training is. Seconds are summed over all processes that worked on it."""

    step: int = 0
    rows: int = 0
    tokens: int = 0  # of these rows, without padding
    best_step: int = 0
    best_score: float | None = None
    best_files: dict[str, str] = field(default_factory=dict)  # of the best checkpoint: its sha256
    worse: int = 0  # dev scores in a row that were not better
    scored: int = 0  # step of the last dev score
    logged: int = 0  # step of the last line of the curve
    chunk: int | None = None  # rows whose activations are held at once
    ranks: list[int] = field(default_factory=list)  # how many processes worked on it, in turn
    train_seconds: float = 0.0
    device_seconds: float = 0.0  # these times the number of processes
    dev_seconds: float = 0.0


@dataclass(frozen=True)
class SavedState:
    """A state on the disk."""

    step: int
    sha256: str  # its beginning
    path: Path


def saved_states(folder: Path) -> list[SavedState]:
    """The states in ``folder``, newest first."""
    states = [
        SavedState(int(name[1]), name[2], path)
        for path in folder.glob("step-*.pt")
        if (name := re.fullmatch(rf"step-([0-9]{{8,}})-([0-9a-f]{{{HASH}}})\.pt", path.name))
    ]
    return sorted(states, key=lambda s: (s.step, s.path.stat().st_mtime_ns), reverse=True)


def save_state(folder: Path, step: int, content: Mapping[str, Any]) -> list[int]:
    """Write the state of ``step``, and remove all but the last two. Returns the steps of those that are kept.

    Raises RunFailed where it cannot be written; the states before it are unchanged then.
    """
    new = folder / "state.pt.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            torch.save(dict(content), file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / f"step-{step:08d}-{file_sha256(new)[:HASH]}.pt")
    except (OSError, RuntimeError) as error:  # torch wraps a write's error
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        why = getattr(error, "strerror", None) or error
        raise RunFailed(
            f"the training state cannot be written to {folder}: {why}", NO_SPACE
        ) from None
    steps: list[int] = []
    for state in saved_states(folder):
        if len(steps) < STATES and state.step not in steps:
            steps.append(state.step)
        else:
            state.path.unlink(missing_ok=True)
    return steps


def newest_good(
    folder: Path, check: Callable[[dict[str, Any]], None], say: Callable[[str], None]
) -> Path | None:
    """The newest state that is undamaged and passes ``check``; None without one: training starts from the beginning.

    One that is damaged, or for which ``check`` raises Damaged, is removed, ``say`` gets a line, and the one before is tried.
    """
    for state in saved_states(folder):
        try:
            if not file_sha256(state.path).startswith(state.sha256):
                raise Damaged("it was cut short or altered")
            check(read_state(state.path))
            return state.path
        except (Damaged, OSError) as problem:
            state.path.unlink(missing_ok=True)
            say(
                f"the training state of step {state.step} cannot be used: {problem}; "
                "training goes on from the one before, or starts again"
            )
    return None


def read_state(path: Path) -> dict[str, Any]:
    """Raises Damaged where it cannot be read."""
    try:
        return torch.load(path, weights_only=True, map_location="cpu")  # type: ignore[no-any-return]
    except Exception as error:  # damaged bytes can raise anything; an older state only costs time
        raise Damaged(f"it cannot be read ({' '.join(str(error).split())[:80]})") from None


def rng_state(device: torch.device) -> dict[str, Any]:
    """The states of torch's generators, of the CPU and the device."""
    backend = getattr(torch, device.type)  # torch.cuda or torch.mps
    of_device = None if device.type == "cpu" else backend.get_rng_state(device)
    return {"cpu": torch.get_rng_state(), "device": of_device}


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if state["device"] is not None and device.type != "cpu":
        getattr(torch, device.type).set_rng_state(state["device"], device)
