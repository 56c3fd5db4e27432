"""Suites, tasks, and the scores that they give.

A task knows which data it needs and how vectors become a score; it never trains and never sees a
model, only a function from sentences to vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from bench.base.errors import DataDamaged, PluginFailed, UnknownName
from bench.base.hashes import values_sha256
from bench.base.user_code import place_of_code, plugin_code
from bench.data.sets import DataFolder
from bench.records.record import REDUCED
from bench.score.metrics.metric import Metric, metric_named

Arrays = Mapping[str, np.ndarray]
"""Arrays of one task by name: "prediction", "gold", "subset" ..."""
Vectors = Callable[[Sequence[str]], np.ndarray]
"""Sentences to their vectors: (n, dim) float32, row i for sentence i."""


class TaskResult(Struct, frozen=True, kw_only=True):
    """The score of one task as a run's record keeps it, and the predictions that give it."""

    suite: str
    task: str
    protocol: str
    metric: str
    # the headline number, on the papers' scale (correlation and accuracy x 100)
    value: float
    # items scored
    n: int
    # None unless the protocol itself repeats something (bootstrap, seeds of k-means)
    std: float | None = None
    detail: dict[str, Any] = {}
    # "prediction", "gold", "subset" (one row per item, in the data's order), and further arrays
    # that the suite needs to score again
    predictions: dict[str, np.ndarray] = {}
    # hash of the predictions in their reduced form (``Task.reduced``); None if they have none
    reduced_sha256: str | None = None

    @property
    def predictions_sha256(self) -> str | None:
        """Hash of the predictions' values, however they are stored; None if there are none."""
        return values_sha256(self.predictions) if self.predictions else None


class TaskScore(Struct, frozen=True):
    """The part of a ``TaskResult`` that a verifier computes again from the predictions."""

    value: float
    n: int
    std: float | None = None
    detail: dict[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set as a suite scores it under one protocol.

    The example of docs/add-a-suite.md::

        Task(suite="odd", name="Odd", protocol="odd-cosine/1", metric="accuracy",
             n=4, read=read, rescore=score_predictions)
    """

    suite: str
    name: str
    protocol: str
    # How its score is shown, compared and tested. A name (a text) means the metric of this package
    # with that name, or one that has nothing but the name.
    metric: Metric
    # Number of items that are scored; 0 if it is not known without the data.
    n: int = 0
    # Sets of the manifest that ``read`` opens; one of them is enough. Empty if it reads others.
    data: tuple[str, ...] = ()
    # Number of scored items of each sub-dataset, in the data's order.
    subsets: Mapping[str, int] = field(default_factory=dict, hash=False)
    # Reads and checks the data: (task, data folder) -> the task with its data.
    read: Callable[[Task, DataFolder], LoadedTask] = field(compare=False, repr=False)
    # Computes the score from stored predictions and the task's name; None if they do not give it.
    rescore: Callable[[Arrays, str], TaskScore] | None = field(
        default=None, compare=False, repr=False
    )
    # True if ``rescore`` gives the score of some items from their rows alone. Then tables have
    # intervals and tests for a metric without an influence function.
    by_item: bool = False
    # Arrays of the predictions that ``rescore`` takes the score from; the others are for the
    # detail. Empty if the suite does not say so: then all are kept.
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.metric, str):
            object.__setattr__(self, "metric", metric_named(self.metric))

    def reduced(self, predictions: Arrays) -> dict[str, np.ndarray] | None:
        """Return the smallest arrays that reproduce the score exactly, or None if the suite names
        none.

        For a metric by ranks they have dense ranks (N,), shifted by half their number to fit int16.
        """
        if not self.needs:
            return None
        arrays = {name: predictions[name] for name in self.needs}
        if self.metric.ranked:
            values, order_N = np.unique(arrays["prediction"], return_inverse=True)
            arrays["prediction"] = order_N - (len(values) + 1) // 2
        return arrays | {REDUCED: np.array(True)}

    def load(self, data: DataFolder) -> LoadedTask:
        """Read and check the data.

        Raises DataMissing, DataDamaged, or PluginFailed if the ``read`` of a plugin does not work.
        """
        with plugin_code(f"the suite {self.suite}, {self.name}"):
            loaded = self.read(self, data)
        if not isinstance(loaded, LoadedTask):
            where, returned = place_of_code(self.read), type(loaded).__name__
            raise PluginFailed(f"{where}: it returned {returned}, expected a LoadedTask")
        first = next(iter(loaded.sentences), "")
        if isinstance(first, str) and first.startswith("\ufeff"):
            raise DataDamaged(
                f"{self.name}: the first text begins with a byte order mark, which is no text",
                "read the file with bench.data.sets.tables.read_table, or decode it as utf-8-sig",
            )
        return loaded


class LoadedData(Protocol):
    """Data of one task, read and checked: the hash of its content, its size."""

    @property
    def sha256(self) -> str: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class RunPlace:
    """The run that is scored, and its folder, for a task that writes files there."""

    name: str
    # names the checkpoint
    revision: str
    folder: Path


class LoadedTask(ABC):
    """A task with its data, read and checked.

    Hash and size come from ``data``, unless a class overrides them.
    """

    task: Task
    data: LoadedData
    # facts about the data that a user should know before anything is scored on it
    notes: tuple[str, ...] = ()

    @property
    @abstractmethod
    def sentences(self) -> Sequence[str]:
        """Every sentence that scoring will ask for; duplicates allowed."""

    @property
    def sha256(self) -> str:
        return self.data.sha256

    @property
    def n(self) -> int:
        """Number of items that are scored."""
        return len(self.data)

    @abstractmethod
    def score(self, vectors: Vectors) -> TaskResult:
        """Score the task with these vectors.

        Raises RunFailed if they cannot be scored (not finite, wrong shape, all the same).
        """

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        """Score as ``score`` does, for a tool that keeps files in the run's folder.

        Such a tool may ask for sentences that ``sentences`` does not name.
        """
        return self.score(vectors)

    def on(self, device: str) -> LoadedTask:
        """Move the computation to the model's device ("cpu", "cuda:0"), if it uses torch."""
        return self

    def result(self, predictions: dict[str, np.ndarray], **detail: Any) -> TaskResult:
        """Score the task from predictions only.

        ``detail`` passes facts that they do not contain.
        """
        task = self.task
        assert task.rescore is not None
        score, reduced = task.rescore(predictions, task.name), task.reduced(predictions)
        return TaskResult(
            suite=task.suite,
            task=task.name,
            protocol=task.protocol,
            metric=task.metric.name,
            value=score.value,
            std=score.std,
            n=score.n,
            detail={**score.detail, **detail},
            predictions=predictions,
            reduced_sha256=None if reduced is None else values_sha256(reduced),
        )


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named set of tasks.

    A file for ``--plugin`` defines one::

        SUITE = Suite(name="odd", title="Odd one out", description="Which of four ...?",
                      tasks=(TASK,), average=None, docs="add-a-suite.md")
    """

    name: str
    title: str
    description: str
    tasks: tuple[Task, ...]
    # The tasks of the mean that papers print as "Avg."; None if they print none.
    average: tuple[str, ...] | None
    # The page about it, relative to docs/.
    docs: str
    # Tasks under protocols that are scored only if they are named: "sts:senteval-all-raw/1".
    on_request: tuple[Task, ...] = ()
    # Keys of its scores' detail that ``rescore`` cannot compute from predictions; bench verify
    # leaves them out.
    extra_detail: tuple[str, ...] = ()
    # Protocols of older records, on data that this package no longer has. Their predictions are
    # still scored in the same way.
    earlier: tuple[str, ...] = ()
    # Finds the task of a stored score by name and protocol, if tasks are files that need not exist.
    stored_task: Callable[[str, str], Task | None] | None = None
    # Builds the suite with the tasks in "name:TASKS", if they are more than those in ``tasks``.
    choose_tasks: Callable[[str], Suite] | None = None

    def find(self, name: str, protocol: str) -> Task | None:
        """Find the task with that name and protocol; None if the suite does not have it."""
        if self.stored_task is not None:
            return self.stored_task(name, protocol)
        for task in (*self.tasks, *self.on_request):
            if (task.name, task.protocol) == (name, protocol):
                return task
        return None

    def task(self, name: str) -> Task:
        """Return the task of that name. Raises UnknownName."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise UnknownName(
            "task", name, [task.name for task in self.tasks], where=f"in suite {self.name}"
        )
