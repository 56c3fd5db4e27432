"""The files of saved states.

A state is one file, ``state/step-00000120-<hash>.pt``; the last two are kept. It is written under another name, synced and renamed.
Its name has the hash of its content, so that a truncated or altered file is noticed, and the state before it is used. It is read
with ``weights_only=True``: nothing in it is executed.
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
from bench.base.files import file_sha256

STATES = 2  # that are kept: the newest, and the one before in case that is damaged
HASH = 32  # digits in a name
# A state is one file, ``state/step-00000120-<hash>.pt``; the last two are kept. It is written under another name, synced and renamed.
# Its name has the hash of its content, so that a truncated or altered file is noticed, and the state before it is used. It is read
# with ``weights_only=True``: nothing in it is executed.
#
# The checkpoint with the best dev score:
# During a training it is ``state/best-00000125/``; at the end it becomes ``checkpoint/``. A state names the step and the hashes of
# its best checkpoint. At most two exist, the newest and the one that the newest state names: each may take gigabytes. Where that
# state is damaged and the one before names a checkpoint that is gone, training starts again from the beginning.

NO_SPACE = "free disk space, or another --runs"


class Damaged(Exception):
    """A state cannot be used, or the checkpoint that it names."""


@dataclass(frozen=True)
class SavedState:
    """A state on the disk."""

    step: int
    sha256: str  # its beginning
    path: Path


def saved_states(folder: Path) -> list[SavedState]:
    """The states in ``folder``, newest first."""
    return sorted(
        (
            SavedState(int(name[1]), name[2], path)
            for path in folder.glob("step-*.pt")
            if (name := re.fullmatch(rf"step-([0-9]{{8,}})-([0-9a-f]{{{HASH}}})\.pt", path.name))
        ),
        key=lambda s: (s.step, s.path.stat().st_mtime_ns),
        reverse=True,
    )


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
