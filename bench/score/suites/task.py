"""Suites, tasks, and the scores that they give.

A task knows which data it needs and how vectors become a score; it never trains and never sees a
model, only a function from sentences to vectors, and one from texts to tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from bench.base.errors import PluginFailed, UnknownName
from bench.base.hashes import values_sha256
from bench.base.user_code import place_of_code, plugin_code
from bench.data.sets import DataFolder
from bench.records.record import REDUCED
from bench.score.metrics.metric import Metric, metric_named
from bench.score.suites.frequent import Tokens

Arrays = Mapping[str, np.ndarray]
"""Arrays of one task by name: "prediction", "gold", "subset" ..."""
Vectors = Callable[[Sequence[str]], np.ndarray]
"""Sentences to their vectors: (n, dim) float32, row i for sentence i."""


class TaskResult(Struct, frozen=True, kw_only=True):
    """The score of one task as a run's record keeps it, and the predictions that give it.

    Attributes:
        suite: Name of the suite.
        task: Name of the task.
        protocol: Name and version of the protocol: two numbers compare only under one.
        metric: Name of the metric.
        value: The headline number, on the papers' scale (correlation and accuracy x 100).
        n: Items scored.
        std: None unless the protocol itself repeats something (bootstrap, seeds of k-means).
        detail: Plain JSON; sub-datasets under "subsets".
        predictions: "prediction", "gold", "subset" (one row per item, in the data's order), and
            further arrays that the suite needs to score again.
        reduced_sha256: Hash of the predictions in their reduced form (``Task.reduced``). None if
            they have none.
    """

    suite: str
    task: str
    protocol: str
    metric: str
    value: float
    n: int
    std: float | None = None
    detail: dict[str, Any] = {}
    predictions: dict[str, np.ndarray] = {}
    reduced_sha256: str | None = None

    @property
    def predictions_sha256(self) -> str | None:
        """Hash of the predictions' values, however they are stored; None if there are none."""
        return values_sha256(self.predictions) if self.predictions else None


class TaskScore(Struct, frozen=True):
    """The part of a ``TaskResult`` that a verifier computes again from the predictions.

    Attributes:
        value: The headline number, on the papers' scale (correlation and accuracy x 100).
        n: Items scored.
        std: None unless the protocol itself repeats something.
        detail: Plain JSON; sub-datasets under "subsets".
    """

    value: float
    n: int
    std: float | None = None
    detail: dict[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set as a suite scores it under one protocol.

        Task(suite="odd", name="Odd", protocol="odd-cosine/1", metric="accuracy",
             n=4, read=read, rescore=score_predictions)

    Attributes:
        suite: Name of its suite.
        name: Its name, different from those of all other suites' tasks.
        protocol: Name and version of the computation and its texts. If the meaning of the number
            changes, so does the version.
        metric: How its score is shown, compared and tested. A text names a metric of this
            package, or a new one that has only its name.
        n: Number of items that are scored. 0 if it is not known without the data.
        data: Sets of the manifest that ``read`` opens; one of them is enough. Empty if it reads
            others.
        subsets: Number of scored items of each sub-dataset, in the data's order.
        read: Reads and checks the data: (task, data folder) -> the task with its data.
        rescore: Computes the score from stored predictions and the task's name. None if the
            predictions do not determine it.
        needs: Arrays of the predictions that ``rescore`` takes the score from; the others are for
            the detail. Empty if the suite does not say so: then all are kept.
    """

    suite: str
    name: str
    protocol: str
    metric: Metric
    n: int = 0
    data: tuple[str, ...] = ()
    subsets: Mapping[str, int] = field(default_factory=dict, hash=False)
    read: Callable[[Task, DataFolder], LoadedTask] = field(compare=False, repr=False)
    rescore: Callable[[Arrays, str], TaskScore] | None = field(
        default=None, compare=False, repr=False
    )
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.metric, str):
            object.__setattr__(self, "metric", metric_named(self.metric))

    def reduced(self, predictions: Arrays) -> dict[str, np.ndarray] | None:
        """Choose the smallest arrays that reproduce the score exactly.

        Args:
            predictions: All arrays of one run, (N,) or (N, R).

        Returns:
            The arrays that ``needs`` names; for a metric by ranks with dense ranks (N,), shifted by
            half their number to fit int16. None if the suite names none.
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

        Args:
            data: The folder with evaluation data.

        Returns:
            The task with its data.

        Raises:
            DataMissing: If a file is not there; other tasks go on.
            DataDamaged: If a file has another content than expected; then nothing is run.
            PluginFailed: If the ``read`` of a plugin does not work.
        """
        with plugin_code(f"the suite {self.suite}, {self.name}"):
            loaded = self.read(self, data)
        if not isinstance(loaded, LoadedTask):
            where, returned = place_of_code(self.read), type(loaded).__name__
            raise PluginFailed(f"{where}: it returned {returned}, expected a LoadedTask")
        return loaded


class LoadedData(Protocol):
    """Data of one task, read and checked: the hash of its content, its size."""

    @property
    def sha256(self) -> str: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class RunPlace:
    """The run that is scored, and its folder, for a task that writes files there.

    Attributes:
        name: The run's name.
        revision: Names the checkpoint.
        folder: The run's folder.
        tokens: Texts to the tokens that the encoder reads, each with its place in the text. None if
            they are not known.
        sides: For a task with ``sides``: the vectors of each, as the encoder encodes queries and
            documents.
    """

    name: str
    revision: str
    folder: Path
    tokens: Tokens | None = None
    sides: Mapping[str, Vectors] = field(default_factory=dict)


class LoadedTask(ABC):
    """A task with its data, read and checked: define ``sentences`` and ``score``.

    Hash and size come from ``data``, unless a class overrides them.

    Attributes:
        task: The task.
        data: Its data, with a sha256 and a length.
        notes: Facts about the data that a user should know before anything is scored on it.
    """

    task: Task
    data: LoadedData
    notes: tuple[str, ...] = ()

    @property
    @abstractmethod
    def sentences(self) -> Sequence[str]:
        """Every sentence that scoring will ask for; duplicates allowed."""

    @property
    def sides(self) -> Mapping[str, Sequence[str]]:
        """The sentences by side, "query" and "document", if the task tells them apart."""
        return {}

    @property
    def sha256(self) -> str:
        return self.data.sha256

    @property
    def n(self) -> int:
        """Number of items that are scored."""
        return len(self.data)

    @abstractmethod
    def score(self, vectors: Vectors) -> TaskResult:
        """Score the task with vectors.

        Args:
            vectors: Gives the vectors of some of ``sentences``.

        Returns:
            The score, with a prediction for every item.

        Raises:
            RunFailed: If they cannot be scored (not finite, wrong shape, all the same).
        """

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        """Score as ``score`` does, for a tool that keeps files in the run's folder, for texts that
        depend on the encoder's tokens, and for a task with two sides.

        Such a task may ask for sentences that ``sentences`` does not name.

        Args:
            place: The run and its folder.
            vectors: Gives the vectors of sentences.

        Returns:
            The score, with a prediction for every item.
        """
        return self.score(vectors)

    def on(self, device: str) -> LoadedTask:
        """Move the computation to the model's device, if it uses torch.

        Args:
            device: "cpu", "cuda:0".

        Returns:
            The task there.
        """
        return self

    def result(self, predictions: dict[str, np.ndarray], **detail: Any) -> TaskResult:
        """Score the task from predictions only, by its ``rescore``.

        Args:
            predictions: "prediction", "gold", "subset" (one row per item, in the data's order), and
                what else the suite needs.
            **detail: Facts that the predictions do not contain.

        Returns:
            The score, with the predictions.
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


@dataclass(frozen=True)
class Part:
    """The tasks of one protocol; their mean is the average of their table.

    Attributes:
        tasks: Names of tasks of the suite, all under the protocol.
        holds: The tasks of the mean in words: "the ten translations of STS-B".
    """

    tasks: tuple[str, ...]
    holds: str


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named set of tasks.

        SUITE = Suite(name="odd", title="Odd one out", description="Which of four ...?",
                      tasks=(TASK,), average=None, docs="add-a-suite.md")

    Attributes:
        name: As ``--suite`` names it.
        title: Heading of its tables.
        description: What it measures, one line.
        tasks: The tasks that are scored by default.
        average: The tasks that "Avg." is the mean of. None: no average, or those of ``parts``.
        docs: The page about it, relative to docs/.
        parts: Protocol -> the tasks of its average, if each protocol has one of its own.
        on_request: Tasks under protocols that are scored only if they are named:
            "sts:senteval-all-raw/1".
        extra_detail: Keys of its scores' detail that ``rescore`` cannot compute from predictions;
            bench verify leaves them out.
        earlier: Protocols of older records, on data that this package no longer has. Their
            predictions are still scored, as those of the first task.
        stored_task: Finds the task of a stored score by name and protocol, if tasks are files that
            need not exist.
        choose_tasks: Builds the suite with the tasks in "name:TASKS", if they are more than those
            in ``tasks``.
    """

    name: str
    title: str
    description: str
    tasks: tuple[Task, ...]
    average: tuple[str, ...] | None
    docs: str
    parts: Mapping[str, Part] = field(default_factory=dict, hash=False)
    on_request: tuple[Task, ...] = ()
    extra_detail: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    stored_task: Callable[[str, str], Task | None] | None = None
    choose_tasks: Callable[[str], Suite] | None = None

    def find(self, name: str, protocol: str) -> Task | None:
        """Find a task under a protocol.

        Args:
            name: Name of the task.
            protocol: Name and version of the protocol.

        Returns:
            The task. None if the suite does not have it.
        """
        if self.stored_task is not None:
            return self.stored_task(name, protocol)
        for task in (*self.tasks, *self.on_request):
            if (task.name, task.protocol) == (name, protocol):
                return task
        return None

    def task(self, name: str) -> Task:
        """Find a task by its name.

        Args:
            name: Name of one of ``tasks``.

        Returns:
            The task.

        Raises:
            UnknownName: If the suite does not have it, with the nearest names.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        raise UnknownName(
            "task", name, [task.name for task in self.tasks], where=f"in suite {self.name}"
        )
