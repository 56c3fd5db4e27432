"""The files of saved states.

A state is one file, ``state/step-00000120-<hash>.pt``; the last two are kept. It is written under
another name, synced and renamed. Its name has the hash of its content, so that a truncated or
altered file is noticed, and the state before it is used. It is read with ``weights_only=True``:
nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench.base.errors import RunFailed
from bench.base.hashes import file_sha256

STATES = 2
"""How many states are kept: the newest, and the one before it in case the newest is damaged."""
HASH = 32
"""Digits of the hash in a name."""
NAME = re.compile(rf"step-([0-9]{{8,}})-([0-9a-f]{{{HASH}}})\.pt")
NO_SPACE = "free disk space, or another --runs"


class Damaged(Exception):
    """A state cannot be used, or the checkpoint that it names."""


@dataclass(frozen=True)
class SavedState:
    """A state on the disk."""

    step: int
    # the first digits of the content's hash, as the name has them
    sha256: str
    path: Path


def saved_states(folder: Path) -> list[SavedState]:
    """Return the states in ``folder``, newest first."""
    states = []
    for path in folder.glob("step-*.pt"):
        name = NAME.fullmatch(path.name)
        if name is not None:
            states.append(SavedState(int(name[1]), name[2], path))
    return sorted(states, key=_age, reverse=True)


def _age(state: SavedState) -> tuple[int, int]:
    return state.step, state.path.stat().st_mtime_ns


def write_state(folder: Path, step: int, content: Mapping[str, Any]) -> list[int]:
    """Write the state of ``step``, and remove all but the last two.

    Returns the steps of the states that are kept.

    Raises RunFailed if it cannot be written; the states before it are then unchanged.
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
    """Return the newest state that is undamaged and passes ``check``, or None: training starts from
    the beginning.

    A state that is damaged, or for which ``check`` raises Damaged, is removed; ``say`` gets a line,
    and the state before it is tried.
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
    """Read a state. Raises Damaged if it cannot be read."""
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
        return state
    except Exception as error:  # damaged bytes can raise anything; an older state only costs time
        raise Damaged(f"it cannot be read ({' '.join(str(error).split())[:80]})") from None
