"""The file of a saved state, ``state/state.pt``.

It is written under another name, synced and renamed, so that a killed process leaves the earlier
one or the new one, each whole. It is read with ``weights_only=True``: nothing in it is executed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bench.base.errors import RunFailed

STATE = "state.pt"
NO_SPACE = "free disk space, or another --runs"


class Damaged(Exception):
    """A state cannot be used, or the checkpoint that it names."""


def write_state(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the state into a folder, in the place of an earlier one.

    Raises RunFailed if it cannot be written; the earlier one is then unchanged.
    """
    new = folder / f"{STATE}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with new.open("wb") as file:
            torch.save(dict(content), file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / STATE)
    except (OSError, RuntimeError) as error:  # torch wraps a write's error
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        why = getattr(error, "strerror", None) or error
        raise RunFailed(
            f"the training state cannot be written to {folder}: {why}", NO_SPACE
        ) from None


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return the state in a folder, or None if there is none. Raises Damaged."""
    try:
        state: dict[str, Any] = torch.load(folder / STATE, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        return None
    except Exception as error:  # damaged bytes can raise anything
        raise Damaged(f"it cannot be read ({' '.join(str(error).split())[:80]})") from None
    return state
