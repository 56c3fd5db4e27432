"""The facts of a task's data that are known without reading it again.

A second call of ``bench run`` should not read 100 MB of text to find that nothing is left to do. So
the checksum and the number of items are cached under the path, size and time of
every file that reading could touch. A file that was changed, added or removed is read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.base import __version__
from bench.base.cache import CacheEntry, is_settled
from bench.base.errors import BenchError, DataDamaged
from bench.data.sets import DataFolder, data_set
from bench.score.suites.task import LoadedTask, Task


@dataclass(frozen=True)
class KnownTask:
    """Facts of a task's data. The data itself is read when ``task`` is first asked for."""

    name: str
    sha256: str
    n: int
    read: Callable[[], LoadedTask]
    suite: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def task(self) -> LoadedTask:
        """The task with its data. Raises DataDamaged if it changed since the run was planned."""
        loaded = self.read()
        if loaded.sha256 != self.sha256:
            raise DataDamaged(
                f"{self.name}: its files changed while the command was running",
                "run the same command again",
            )
        return loaded


def survey(task: Task, data: DataFolder) -> KnownTask:
    """Find the facts of a task, from the cache if no file changed.

    Raises DataMissing, DataDamaged, or BenchError if the task's ``n`` is not the number of items in
    its data.
    """
    known = survey_files(
        task.name, task.data, data, task.protocol, lambda: task.load(data), task.suite
    )
    if task.n and known.n != task.n:
        said = f"{task.name} of the suite {task.suite} has n={task.n}"
        raise BenchError(
            f"{said}, but its data has {known.n} items",
            f"n={known.n} in the suite's Task, or complete the data",
        )
    return known


def survey_files(
    name: str,
    sets: Sequence[str],
    data: DataFolder,
    protocol: str,
    read: Callable[[], LoadedTask],
    suite: str = "",
) -> KnownTask:
    """Find the facts of data in these sets of the manifest.

    ``protocol``: a part of the cache's key, besides the name and the files. If there are no sets,
    nothing is cached.
    """
    files = [entry for set_ in sets for entry in data.entries(data_set(set_))]
    entry = None
    if files and all(is_settled(changed) for _, _, changed in files):
        entry = CacheEntry("known", json.dumps([__version__, name, protocol, files]))
        if (known := entry.read()) is not None:
            return KnownTask(name, **known, read=read, suite=suite)
    loaded = read()
    known = {"sha256": loaded.sha256, "n": loaded.n}
    if entry is not None:
        entry.write(known)
    return KnownTask(name, **known, read=lambda: loaded, suite=suite, notes=loaded.notes)
