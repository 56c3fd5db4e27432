"""The best checkpoint of a training on the disk.

During a training it is ``state/best-00000125/``; at the end it becomes ``checkpoint/``. The saved
state names its step and the hashes of its files. At most two exist, the newest and the one that the
state names: each may take gigabytes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from safetensors import SafetensorError

from bench.base.errors import RunFailed
from bench.base.files import share_files
from bench.base.hashes import folder_sha256
from bench.records.names import CHECKPOINT
from bench.training.state_files import NO_SPACE, Damaged


class Checkpoints:
    """The checkpoints of the run in ``folder``: the best ones of a training, and the one that is
    used afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self.used = folder / CHECKPOINT
        self.state = folder / "state"
        # the step of the checkpoint that the saved state names; 0: none
        self.saved = 0

    def keep(self, step: int, write: Callable[[Path], object]) -> dict[str, str]:
        """Keep a new best checkpoint, which ``write`` puts into a folder.

        Returns the hash of each file. Raises RunFailed if it cannot be written.
        """
        folder = self._best(step)
        replace_folder(folder, write)
        self._remove_all_but(step, self.saved)
        return folder_sha256(folder)

    def keep_only(self, step: int) -> None:
        """Remove all checkpoints except that of ``step``, named in the saved state (0: none)."""
        self.saved = step
        self._remove_all_but(step)

    def check(self, step: int, files: Mapping[str, str]) -> None:
        """Raises Damaged if the best checkpoint, of ``step``, does not have the hashes that its
        state names.
        """
        if folder_sha256(self._best(step)) != files:
            raise Damaged(f"the best checkpoint, of step {step}, was cut short or altered")

    def finish(self, step: int) -> None:
        """Make the best checkpoint, of ``step``, the run's checkpoint."""
        copy = partial(shutil.copytree, self._best(step), copy_function=link_or_copy)
        replace_folder(self.used, copy)

    def _remove_all_but(self, *steps: int) -> None:
        kept = {self._best(step) for step in steps}
        for folder in self.state.glob("best-*"):
            if folder not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _best(self, step: int) -> Path:
        return self.state / f"best-{step:08d}"


def link_or_copy(source: str, to: str) -> None:
    """Make a hard link if the disk supports it, because a checkpoint's files are never changed;
    else a copy.
    """
    try:
        os.link(source, to)
    except OSError:
        shutil.copy2(source, to)


def replace_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill another folder, then replace ``folder`` by it: readers see the old one or
    the new one.

    Raises RunFailed if it cannot be written; ``folder`` is then as it was.
    """
    new = folder.with_name(folder.name + ".new")
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        write(new)
        new.mkdir(exist_ok=True)  # a method may have nothing to save
        share_files(new)
        # on the disk before the rename, which could else show empty files after a power cut
        for path in new.rglob("*"):
            if path.is_file():
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
