"""A task of which is known what it would score, without the data being read.

Reading 100 MB of text to find that nothing is left to do is what a second call of ``bench run`` should not cost. So what a task's
data turned out to be (text form, checksum, number of items) is remembered under the place, size and time of every file that
reading it could touch; a file that was changed, added or removed is read and checked again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bench.base import __version__
from bench.base.errors import BenchError, DataDamaged
from bench.base.files import CacheEntry, is_settled

if TYPE_CHECKING:
    from bench.data.sets import DataFolder
    from bench.score.suites import LoadedTask, Task


@dataclass(frozen=True)
class KnownTask:
    """What a task's data is; the data itself is read when ``task`` is first asked for."""

    name: str
    form: str | None
    sha256: str
    n: int
    read: Callable[[], LoadedTask]
    suite: str = ""

    @cached_property
    def task(self) -> LoadedTask:
        """The data. Raises DataDamaged where it is no longer what it was when the run was planned."""
        loaded = self.read()
        if (loaded.form, loaded.sha256) != (self.form, self.sha256):
            raise DataDamaged(
                f"{self.name}: its files changed since they were checked",
                "run the same command again",
            )
        return loaded


def survey(task: Task, data: DataFolder, text: str) -> KnownTask:
    """The task with its data in that text form, from memory where no file changed. Raises DataMissing, DataDamaged, and BenchError where the
    task says another number of items than its data has."""
    known_task = replace(
        survey_files(task.name, task.data, data, text, lambda: task.load(data, text)),
        suite=task.suite,
    )
    counted = (
        known_task.form is None or text == "tokenised"
    )  # of other text forms the task does not say how many items there are
    if counted and task.n and known_task.n != task.n:
        raise BenchError(
            f"{task.name} of the suite {task.suite} says n={task.n}, its data has {known_task.n} items",
            f"n={known_task.n} in the suite's Task, or data that is complete",
        )
    return known_task


def survey_files(
    name: str, sets: Sequence[str], data: DataFolder, text: str, read: Callable[[], LoadedTask]
) -> KnownTask:
    """As ``survey``, for data that lies in these sets of the manifest. Without sets nothing is remembered."""
    entry = _entry(name, sets, data, text)
    if entry is not None and (said := entry.read()) is not None:
        return KnownTask(name, said["form"], said["sha256"], said["n"], read)
    loaded = read()
    task = KnownTask(name, loaded.form, loaded.sha256, loaded.n, lambda: loaded)
    if entry is not None:
        entry.write({"form": task.form, "sha256": task.sha256, "n": task.n})
    return task


def _entry(name: str, sets: Sequence[str], data: DataFolder, text: str) -> CacheEntry | None:
    """Where what is known of these files is kept; None where it must not be."""
    from bench.data.sets import data_set

    files = [entry for set_ in sets for entry in data.entries(data_set(set_))]
    if not files or not all(is_settled(changed) for _, _, changed in files):
        return None
    return CacheEntry("known", json.dumps([__version__, name, text, files]))
