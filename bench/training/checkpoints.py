"""The checkpoint with the best dev score: two copies, each with known hashes, replaced whole.

``checkpoint/`` is the one that is used, and ``state/best-00000125/`` its second copy while the training is not finished. A
state to resume from names the step and the hashes of its best checkpoint; from these :meth:`Checkpoints.restore` knows whether
a copy was cut short or altered, and which of several belongs to that state.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from safetensors import SafetensorError

from bench.base.errors import RunFailed
from bench.base.hashes import folder_sha256
from bench.base.lease import aside, check_owned

NO_SPACE = "free disk space, or another --runs"


class Checkpoints:
    """Of the run in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.used, self.state = folder / "checkpoint", folder / "state"

    def keep(self, step: int, write: Callable[[Path], None]) -> dict[str, str]:
        """Both copies of a new best checkpoint, as ``write`` makes it in a folder. Returns the hash of each file.

        Raises RunFailed where it cannot be written; then the copies before are as they were.
        """
        second = self._second(step)
        replace_folder(second, write)
        files = folder_sha256(second)
        replace_folder(self.used, lambda new: _copy(second, new))
        return files

    def restore(self, step: int, files: Mapping[str, str]) -> str | None:
        """Make both copies those of ``step``, whose hashes are known. Returns a line where one was damaged.

        Raises Damaged where neither is good.
        """
        second, wanted = self._second(step), dict(files)
        copies = {copy: folder_sha256(copy) for copy in (self.used, second)}
        good = next((copy for copy, found in copies.items() if found == wanted), None)
        if good is None:
            raise Damaged(f"the best checkpoint, of step {step}, was cut short or altered, and so was its copy")
        # after a crash the used one may be that of a later step, whole: its second copy was written first
        later = [folder_sha256(folder) for found, folder in self._seconds() if found > step]
        line = None
        for copy, found in copies.items():
            if found != wanted:
                if copy.exists() and found not in later:
                    line = f"{copy} was cut short or altered: made again from {good}"
                replace_folder(copy, lambda new: _copy(good, new))
        return line

    def settle(self) -> None:
        """After a crash: what was being replaced is whole again, what was half written is gone."""
        settle_folder(self.used)
        for left in [*self.state.glob("best-*.old"), *self.state.glob("best-*.new")]:
            settle_folder(left.with_suffix(""))

    def forget_after(self, step: int) -> None:
        """Second copies of later steps belong to a training that is done again from here."""
        check_owned(self.state)
        for found, folder in self._seconds():
            if found > step:
                shutil.rmtree(folder, ignore_errors=True)

    def forget_all_but(self, states: Iterable[int]) -> None:
        """Keep the second copies that states of these steps name: of each, the newest that is not newer than itself."""
        check_owned(self.state)
        seconds = self._seconds()
        kept = {max((found for found, _ in seconds if found <= step), default=None) for step in states}
        for found, folder in seconds:
            if found not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _second(self, step: int) -> Path:
        return self.state / f"best-{step:08d}"

    def _seconds(self) -> list[tuple[int, Path]]:
        return sorted((int(found[1]), path) for path in self.state.glob("best-*") if (found := re.fullmatch("best-([0-9]{8,})", path.name)))


class Damaged(Exception):
    """What a state names is not what lies there."""


def _copy(source: Path, new: Path) -> None:
    shutil.copytree(source, new)


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a folder aside, then put it in the place of ``folder``: readers see the old one or the new one."""
    new, old = aside(folder) / (folder.name + ".new"), folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        new.parent.mkdir(parents=True, exist_ok=True)
        write(new)
        new.mkdir(exist_ok=True)  # a method may have nothing to save
        sync_files(new)
        check_owned(folder)
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    except (OSError, SafetensorError) as error:  # the second, too, is how a full disk is told
        shutil.rmtree(new, ignore_errors=True)
        settle_folder(folder)
        check_owned(folder)
        why = getattr(error, "strerror", None) or error
        raise RunFailed(f"the checkpoint cannot be written to {folder}: {why}", NO_SPACE) from None
    shutil.rmtree(old, ignore_errors=True)


def sync_files(folder: Path) -> None:
    """Wait until every file below is on the disk, so that a rename after it never shows an empty one."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def settle_folder(folder: Path) -> None:
    """After a crash inside :func:`replace_folder`: the old folder goes back where no new one is, half-written ones go."""
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    if old.exists() and not folder.exists():
        old.rename(folder)
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
