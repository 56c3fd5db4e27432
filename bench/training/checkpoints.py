"""The best checkpoint of a training on the disk.

During a training it is ``state/best-00000125/``; at the end it becomes ``checkpoint/``. A state
names the step and the hashes of its best checkpoint. At most two exist, the newest and the one that
the newest state names: each may take gigabytes. If that state is damaged and the one before names a
checkpoint that is gone, training starts again from the beginning.

Writing and hashing one takes seconds: a thread can do it while the training goes on. Everything
else that reads or changes these files waits for it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from safetensors import SafetensorError

from bench.base.errors import RunFailed
from bench.base.files import share_files
from bench.base.hashes import folder_sha256
from bench.records.names import CHECKPOINT
from bench.training.state_files import NO_SPACE, Damaged, saved_states


class Checkpoints:
    """The checkpoints of the run in ``folder``: the best ones of a training, and the one that is
    used afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self.used = folder / CHECKPOINT
        self.state = folder / "state"
        self._thread = ThreadPoolExecutor(1, "checkpoints")
        # the hashes of the checkpoint that the thread writes
        self._later: Future[dict[str, str]] | None = None

    def keep(self, step: int, write: Callable[[Path], object]) -> dict[str, str]:
        """Keep a new best checkpoint, which ``write`` puts into a folder.

        Returns the hash of each file.

        At most two are kept: this one, and the one that the newest state names. Raises RunFailed if
        it cannot be written.
        """
        self.wait()
        self._later = None
        return self._keep(step, write)

    def keep_later(self, step: int, write: Callable[[Path], object]) -> None:
        """Begin to keep a new best checkpoint on a thread, and return at once.

        Nothing that ``write`` reads may change until :meth:`wait` has returned. Raises the error of
        the checkpoint before.
        """
        self.wait()
        self._later = self._thread.submit(self._keep, step, write)

    def wait(self) -> dict[str, str] | None:
        """Wait until the checkpoint that was begun last is on the disk.

        Returns the hash of each of its files, or None if none was begun. Raises RunFailed if it
        could not be written.
        """
        return None if self._later is None else self._later.result()

    def close(self) -> None:
        """End the thread, once it has written what was begun."""
        self._thread.shutdown()

    def _keep(self, step: int, write: Callable[[Path], object]) -> dict[str, str]:
        folder = self._best(step)
        replace_folder(folder, write)
        needed = [step]
        for newest in saved_states(self.state)[:1]:
            needed.append(newest.step)
        self._remove_others(needed)
        return folder_sha256(folder)

    def check(self, step: int, files: Mapping[str, str]) -> None:
        """Raises Damaged if the best checkpoint, of ``step``, does not have the hashes that its
        state names.
        """
        self.wait()
        if folder_sha256(self._best(step)) != files:
            raise Damaged(f"the best checkpoint, of step {step}, was cut short or altered")

    def finish(self, step: int) -> None:
        """Make the best checkpoint, of ``step``, the run's checkpoint."""
        self.wait()
        copy = partial(shutil.copytree, self._best(step), copy_function=link_or_copy)
        replace_folder(self.used, copy)

    def forget_after(self, step: int) -> None:
        """Remove checkpoints of later steps, which are trained again, and unfinished ones that a
        crash left.
        """
        self.wait()
        self._later = None
        for of_step, folder in self._all():
            if of_step > step or folder.suffix:
                shutil.rmtree(folder, ignore_errors=True)

    def forget_all_but(self, states: Iterable[int]) -> None:
        """Keep the checkpoints that states of these steps name: for each, the newest that is not
        newer than the state.
        """
        self.wait()
        self._remove_others(states)

    def _remove_others(self, states: Iterable[int]) -> None:
        every = self._all()
        needed = set()
        for step in states:
            not_newer = [best for best, _ in every if best <= step]
            if not_newer:
                needed.add(max(not_newer))
        for of_step, folder in every:
            if of_step not in needed:
                shutil.rmtree(folder, ignore_errors=True)

    def _best(self, step: int) -> Path:
        return self.state / f"best-{step:08d}"

    def _all(self) -> list[tuple[int, Path]]:
        """Return (step, folder) of each best checkpoint."""
        return [(int(path.stem.removeprefix("best-")), path) for path in self.state.glob("best-*")]


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
