"""Suites and tasks: what is scored, under which protocol, and what a score is.

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
from bench.base.files import values_sha256
from bench.base.user_code import place_of_code, plugin_code
from bench.data.sets import DataFolder
from bench.records.record import REDUCED
from bench.score.metrics.metric import Metric, metric_named

Arrays = Mapping[str, np.ndarray]
"""Of one task, by name: "prediction", "gold", "subset" ..."""

Vectors = Callable[[Sequence[str]], np.ndarray]
"""Sentences to their vectors: (n, dim) float32, row i for sentence i."""


class TaskResult(Struct, frozen=True, kw_only=True):
    """What a run's record keeps of one task, and the predictions that it was computed from."""

    suite: str
    task: str
    protocol: str
    metric: str
    value: float
    """The headline number, on the papers' scale (correlation and accuracy x 100)."""
    n: int
    """Items scored."""
    std: float | None = None
    """Only where the protocol itself has one (bootstrap); None elsewhere."""
    text: str | None = None
    """The text form that was scored: "tokenised", "raw", "other-<hash>"; None where there is only one."""
    detail: dict[str, Any] = {}
    predictions: dict[str, np.ndarray] = {}
    """"prediction", "gold", "subset" (one row per item, in the data's order), and what else the suite needs to score again."""

    @property
    def predictions_sha256(self) -> str | None:
        """Of the values of the predictions, however they are stored; None where there are none."""
        return values_sha256(self.predictions) if self.predictions else None

    reduced_sha256: str | None = None
    """Of what is left of them in their reduced form (``Task.reduced``); None where they have none."""


class TaskScore(Struct, frozen=True):
    """The part of a ``TaskResult`` that follows from the predictions, as a verifier computes it again."""

    value: float
    n: int
    std: float | None = None
    detail: dict[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set as a suite scores it under one protocol."""

    suite: str
    name: str
    protocol: str
    metric: Metric
    """How its score is shown, compared and tested. A name (a text) stands for the metric of this
    package with that name, or for one of which only the name is known."""
    n: int = 0
    """Items that are scored; 0 where that is not known without the data."""
    data: tuple[str, ...] = ()
    """The manifest's sets that ``read`` opens, of which one is enough; none where it reads anything else."""
    subsets: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Scored items of every sub-dataset, in the data's order."""
    read: Callable[[Task, DataFolder, str], LoadedTask] = field(compare=False, repr=False)
    rescore: Callable[[Arrays, str], TaskScore] | None = field(
        default=None, compare=False, repr=False
    )
    """From stored predictions and the task's name to its score; None where they do not determine it."""
    by_item: bool = False
    """Whether the rows of some items are what they would be without the others, so that ``rescore`` gives the score of these alone.
    Then tables have intervals and tests for a metric without an influence function."""
    needs: tuple[str, ...] = ()
    """The arrays of its predictions that ``rescore`` takes the score from; others are there for the detail. Empty: the suite says nothing
    of it, and all are kept."""

    def __post_init__(self) -> None:
        if isinstance(self.metric, str):
            object.__setattr__(self, "metric", metric_named(self.metric))

    def reduced(self, predictions: Arrays) -> dict[str, np.ndarray] | None:
        """The least from which ``rescore`` gives the same score to the last digit; None where the suite does not say what it needs.

        Of a rank correlation's predictions, (N,), that is their order: 0 for the lowest value, 1 for the next, one number for
        equals, less half of how many there are, so that 65,536 fit into 16 bits.
        """
        if not self.needs:
            return None
        arrays = {name: predictions[name] for name in self.needs}
        if self.metric.ranked:
            values, order_N = np.unique(arrays["prediction"], return_inverse=True)
            arrays["prediction"] = order_N - (len(values) + 1) // 2
        return arrays | {REDUCED: np.array(True)}

    def load(self, data: DataFolder, text: str = "tokenised") -> LoadedTask:
        """The task with its data in a text form. Raises DataMissing, DataDamaged; PluginFailed where a plugin's ``read`` does not work."""
        with plugin_code(f"the suite {self.suite}, {self.name}"):
            loaded = self.read(self, data, text)
        if not isinstance(loaded, LoadedTask):
            raise PluginFailed(
                f"{place_of_code(self.read)}: it returned {type(loaded).__name__}, expected a LoadedTask"
            )
        first = next(iter(loaded.sentences), "")
        if isinstance(first, str) and first.startswith("\ufeff"):
            raise DataDamaged(
                f"{self.name}: the first text begins with a byte order mark, which is no text",
                "read the file with bench.data.sets.tables.read_table, or decode it as utf-8-sig",
            )
        return loaded


class LoadedData(Protocol):
    """Data of one task, read and checked: its text form, the sha256 of its content, its number of items."""

    @property
    def form(self) -> str | None: ...

    @property
    def sha256(self) -> str: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class RunPlace:
    """The run that is scored, and its folder, for a task that writes files there."""

    name: str
    revision: str
    """What names the checkpoint."""
    folder: Path


class LoadedTask(ABC):
    """A task whose data was read and checked: form, hash and size are those of ``data``, unless a class says otherwise."""

    task: Task
    data: LoadedData
    notes: tuple[str, ...] = ()
    """What a user should know about the data before anything is scored on it."""

    @property
    @abstractmethod
    def sentences(self) -> Sequence[str]:
        """Every sentence that scoring will ask for; duplicates allowed."""

    @property
    def form(self) -> str | None:
        return self.data.form

    @property
    def sha256(self) -> str:
        return self.data.sha256

    @property
    def n(self) -> int:
        """Items that are scored."""
        return len(self.data)

    @abstractmethod
    def score(self, vectors: Vectors) -> TaskResult:
        """Raises RunFailed where the vectors cannot be scored (not finite, wrong shape, all the same)."""

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        """As ``score``, for a tool that keeps files in the run's folder and asks for sentences that it does not name beforehand."""
        return self.score(vectors)

    def on(self, device: str) -> LoadedTask:
        """The same task, to be computed where the model ran ("cpu", "cuda:0"), if it computes with torch after encoding."""
        return self

    def result(self, predictions: dict[str, np.ndarray], **detail: Any) -> TaskResult:
        """The task's result, scored from the predictions alone; ``detail`` is what they do not hold."""
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
            text=self.form,
            detail={**score.detail, **detail},
            predictions=predictions,
            reduced_sha256=None if reduced is None else values_sha256(reduced),
        )


@dataclass(frozen=True, kw_only=True)
class Suite:
    name: str
    title: str
    description: str
    tasks: tuple[Task, ...]
    average: tuple[str, ...] | None
    """Tasks whose mean the papers print as "Avg."; None where they print none."""
    docs: str
    """The page about it, relative to docs/."""
    extra_detail: tuple[str, ...] = ()
    """Keys of its scores' detail that the predictions do not hold: ``bench verify`` cannot compute them again."""
    earlier: tuple[str, ...] = ()
    """Protocols of older records, of data that this package no longer has: their predictions are still scored in the same way."""
    stored_task: Callable[[str, str], Task | None] | None = None
    """Name and protocol of a score -> its task, for a suite whose tasks are files that need not be here."""

    def find(self, name: str, protocol: str) -> Task | None:
        """The task with that name and protocol; None if the suite does not have it."""
        if self.stored_task is not None:
            return self.stored_task(name, protocol)
        for task in self.tasks:
            if (task.name, task.protocol) == (name, protocol):
                return task
        return None

    def task(self, name: str) -> Task:
        for task in self.tasks:
            if task.name == name:
                return task
        raise UnknownName(
            "task", name, [task.name for task in self.tasks], where=f"in suite {self.name}"
        )
