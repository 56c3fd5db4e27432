"""Suites: groups of tasks, and how each task is scored.

A suite is a module that defines ``SUITE``. A task knows which data it needs and how vectors become a score; it never trains
and never sees a model, only a function from sentences to vectors. Listing the names imports nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.base.contract import check_files, import_file, located, place_of_code, plugin_code
from bench.base.errors import BenchError, PluginFailed, RunFailed, UnknownName
from bench.base.files import file_sha256, values_sha256
from bench.base.text import average_of
from bench.runs.record import AVERAGE, REDUCED

if TYPE_CHECKING:
    from bench.data.sets import DataFolder

Arrays = Mapping[str, np.ndarray]
"""Of one task, by name: "prediction", "gold", "subset" ..."""

_MODULES = {
    "sts": "bench.score.suites.sts",
    "cxc": "bench.score.suites.cxc",
    "transfer": "bench.score.suites.transfer",
    "transfer-quick": "bench.score.suites.transfer_quick",
    "fewshot": "bench.score.suites.fewshot",
    "clustering": "bench.score.suites.clustering",
    "geometry": "bench.score.suites.geometry",
    "mteb": "bench.score.suites.mteb",
    "check": "bench.score.suites.check",
}

GROUP = "bench.suites"
"""The entry points under which installed packages register suites of their own: the name is the suite's, the object the suite."""
ALL = "all"
METRICS = (
    "spearman",
    "spearman-bootstrap",
    "accuracy",
    "clustering-accuracy",
    "alignment",
    "uniformity",
)
"""Of this package's suites; a plugin's suite may have others."""
ALIKE = 0.85
"""From this likeness on, as difflib has it, a metric's name is a misspelt one of ``METRICS``."""
RANKED = ("spearman", "spearman-bootstrap")
"""Metrics that ask of predictions only their order."""
NOT_IN_ALL = (
    "check",
    "transfer-quick",
    "mteb",
)  # a small sample, a second look at the same sets, and to be named task by task


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
    """What predictions alone say of a task, as a verifier computes it again; the fields are those of ``TaskResult``."""

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
    metric: str
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
    Then tables have intervals and tests for a metric that they do not know."""
    needs: tuple[str, ...] = ()
    """The arrays of its predictions that ``rescore`` takes the score from; others are there for the detail. Empty: the suite says nothing
    of it, and all are kept."""

    def reduced(self, predictions: Arrays) -> dict[str, np.ndarray] | None:
        """The least from which ``rescore`` gives the same score to the last digit; None where the suite does not say what it needs.

        Of a rank correlation's predictions, (N,), that is their order: 0 for the lowest value, 1 for the next, one number for
        equals, less half of how many there are, so that 65,536 fit into 16 bits.
        """
        if not self.needs:
            return None
        kept = {name: predictions[name] for name in self.needs}
        if self.metric in RANKED:
            values, order_N = np.unique(kept["prediction"], return_inverse=True)
            kept["prediction"] = order_N - (len(values) + 1) // 2
        return kept | {REDUCED: np.array(True)}

    def load(self, data: DataFolder, text: str = "tokenised") -> LoadedTask:
        """The task with its data in a text form. Raises DataMissing, DataDamaged; PluginFailed where a plugin's ``read`` does not work."""
        with plugin_code(f"the suite {self.suite}, {self.name}"):
            loaded = self.read(self, data, text)
        if not isinstance(loaded, LoadedTask):
            raise PluginFailed(
                f"{place_of_code(self.read)}: it returned {type(loaded).__name__}, and a LoadedTask is expected"
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
    """The run that is scored, and its folder, for a task that keeps files of its own there."""

    name: str
    revision: str
    """What names the checkpoint."""
    folder: Path


class LoadedTask(ABC):
    """A task whose data was read and checked: form, hash and size are those of ``data``, unless a class says otherwise."""

    task: Task
    data: LoadedData

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
            metric=task.metric,
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
    earlier: tuple[str, ...] = ()
    """Protocols of older records, of data that this package no longer has: their predictions are still scored in the same way."""

    def task(self, name: str) -> Task:
        for task in self.tasks:
            if task.name == name:
                return task
        raise UnknownName(
            "task", name, [task.name for task in self.tasks], where=f"in suite {self.name}"
        )


# --- which suites there are: this package's, those that installed packages register, those of files given by --plugin ---


@dataclass(frozen=True)
class SuitePlugin:
    """A suite that is not of this package, and where it came from."""

    suite: Suite
    package: str
    """The distribution, or the file."""
    version: str
    sha256: str
    """Of the source of its module."""


_from_files: dict[str, SuitePlugin] = {}


@cache
def _points() -> Mapping[str, importlib.metadata.EntryPoint]:
    points = importlib.metadata.entry_points(group=GROUP)
    return {point.name: point for point in points if point.name not in (*_MODULES, ALL)}


@cache
def _installed(name: str) -> SuitePlugin:
    """The suite of an entry point. Raises BenchError where it does not import, or is none."""
    point = _points()[name]
    package, version = (point.dist.name, point.dist.version) if point.dist else ("?", "")
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # a third party's code may raise anything
        raise BenchError(
            f"the suite {name} of {package} does not import: {located(error)}", f"update {package}"
        ) from None
    _check_definition(loaded, f"the suite {name} of {package}")
    if loaded.name != name:
        raise BenchError(
            f"{package} registers the suite {loaded.name} under the name {name}",
            f"update {package}",
        )
    return SuitePlugin(loaded, package, version, _source_sha256(sys.modules[point.module]))


def use_files(files: Sequence[Path]) -> None:
    """The suites of these plugin files are known from now on, and of no others; a file without one is left alone.

    Raises BenchError where a file is missing, is given twice, does not import, or defines a suite that cannot be or whose name another
    file or an installed package has.
    """
    _from_files.clear()
    check_files(files)
    for file in files:
        if b"SUITE" not in file.read_bytes():
            continue
        module = import_file(file)
        if not hasattr(module, "SUITE"):
            continue
        _check_definition(module.SUITE, f"--plugin {file}")
        if (taken := suite_plugin(module.SUITE.name)) is not None:
            raise BenchError(
                f"{file} defines the suite '{module.SUITE.name}', and so does {taken.package}",
                f"another name in {file}",
            )
        _from_files[module.SUITE.name] = SuitePlugin(
            module.SUITE, str(file), "", _source_sha256(module)
        )


def _source_sha256(module: ModuleType) -> str:
    return file_sha256(Path(str(module.__file__)))


def _check_definition(defined: object, whose: str) -> None:
    """Raises BenchError where a plugin's SUITE is none that can be run beside this package's."""
    if not isinstance(defined, Suite):
        raise BenchError(
            f"{whose}: SUITE is of type {type(defined).__name__}",
            "SUITE = Suite(...), see docs/add-a-suite.md",
        )
    if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", str(defined.name)) or defined.name == ALL:
        raise BenchError(
            f"{whose}: a suite cannot be called {str(defined.name)!r}", "a-z, 0-9 and '-'"
        )
    if defined.name in _MODULES:
        raise BenchError(f"{whose}: bench has a suite {defined.name} of its own", "another name")
    if not defined.tasks:
        raise BenchError(f"{whose}: the suite {defined.name} has no task", "tasks=(Task(...),)")
    taken = {task.name: name for name in _MODULES if name != "mteb" for task in suite(name).tasks}
    for task in defined.tasks:
        if task.suite != defined.name:
            raise BenchError(
                f"{whose}: the task {task.name} says suite={task.suite!r}",
                f"suite={defined.name!r}",
            )
        if task.metric not in METRICS and (
            near := get_close_matches(task.metric.lower(), METRICS, 1, ALIKE)
        ):
            hint = f"metric={near[0]!r}; of a metric of your own, a name that is less like it"
            raise BenchError(
                f"{whose}: the task {task.name} says metric={task.metric!r}, and bench has {near[0]!r}",
                hint,
            )
        if task.name in taken:
            raise BenchError(
                f"{whose}: the suite {taken[task.name]} has a task {task.name}",
                "another name: predictions are kept under it",
            )
        taken[task.name] = defined.name
    if absent := set(defined.average or ()) - {task.name for task in defined.tasks}:
        raise BenchError(
            f"{whose}: average names {', '.join(sorted(absent))}, which the suite has not",
            "names of its tasks",
        )


def suite_plugin(name: str) -> SuitePlugin | None:
    """Where a suite comes from; None for one of this package. Raises BenchError where an installed one cannot be loaded."""
    if name in _MODULES:
        return None
    return _from_files.get(name) or (_installed(name) if name in _points() else None)


def suite_names() -> list[str]:
    return list(dict.fromkeys([*_MODULES, *sorted(_points()), *_from_files]))


def expand_suites(names: Iterable[str]) -> list[str]:
    """The names, each once, with those of all suites of this package that papers report in the place of "all"."""
    every = [name for name in _MODULES if name not in NOT_IN_ALL]
    return list(
        dict.fromkeys(task for name in names for task in (every if name == ALL else [name]))
    )


def split_names(text: str) -> tuple[str, ...]:
    """``--suite`` in parts. A comma separates, except within parentheses (of mteb's "MTEB(eng, v2)").

    Names after "mteb:" are mteb's, up to the next name of a suite; they stay together, in one part:
    "sts,mteb:STSBenchmark,SICK-R,cxc" -> ("sts", "mteb:STSBenchmark,SICK-R", "cxc").
    """
    known = suite_names()
    names: dict[str, list[str]] = {}  # "sts", or "mteb:" and what follows it
    owner = ""
    for part in (part.strip() for part in re.split(r",(?![^()]*\))", text)):
        head, colon, rest = part.partition(":")
        if colon and head in known:
            owner, part = f"{head}:", rest.strip()
        elif part in (*known, ALL):
            owner = ""
        if owner:
            names.setdefault(owner, []).extend([part] if part else [])
        elif part:
            names.setdefault(part, [])
    return tuple(name + ",".join(theirs) for name, theirs in names.items())


def check_suite(name: str) -> None:
    """Raises UnknownName, with the nearest names, where "suite" or "suite:TASK" begins with none."""
    name, known = name.partition(":")[0], suite_names()
    if name not in known:
        raise UnknownName("suite", name, known, hint="bench suites; of a file: --plugin FILE")


def suite(name: str) -> Suite:
    """The suite of that name, or the tasks of it that "suite:TASK,TASK" names; UnknownName with the nearest names otherwise."""
    check_suite(name)
    name, colon, tasks = name.partition(":")
    plugin = suite_plugin(name)
    module: Any = importlib.import_module(_MODULES[name]) if plugin is None else None
    if colon and not hasattr(module, "choose_tasks"):
        raise BenchError(
            f"--suite {name}:{tasks}: the tasks of {name} cannot be chosen one by one",
            f"--suite {name}",
        )
    if plugin is not None:
        return plugin.suite
    return module.choose_tasks(tasks) if colon else module.SUITE


AnyScore = TypeVar("AnyScore")


def average(scores: Iterable[AnyScore]) -> AnyScore | None:
    """The papers' "Avg.": each value rounded to 2 decimals, their mean, rounded again; of one suite's scores.

    Takes Scores or TaskResults and gives one more of the same kind, task "Avg.". None when a task of the average is missing,
    when the suite has no average, or when the scores are not of one protocol and text form.
    """
    by_task: dict[str, Any] = {score.task: score for score in scores if score.task != AVERAGE}  # type: ignore[attr-defined]
    if not by_task:
        return None
    first = next(iter(by_task.values()))
    names = suite(first.suite).average
    if names is None or any(name not in by_task for name in names):
        return None
    chosen = [by_task[name] for name in names]
    if any(
        (score.suite, score.protocol, score.metric) != (first.suite, first.protocol, first.metric)
        for score in chosen
    ):
        return None
    text, mixed = _common_form({score.task: score.text for score in chosen})
    if mixed:
        return None
    changes: dict[str, Any] = {
        "task": AVERAGE,
        "value": average_of(score.value for score in chosen),
        "std": None,
        "n": sum(score.n for score in chosen),
        "text": text,
        "detail": {"tasks": list(names)},
        "reduced_sha256": None,
    }
    # of the average itself there are no predictions: a result has the arrays, a score their hash
    if isinstance(first, TaskResult):
        changes["predictions"] = {}
    else:
        changes["predictions_sha256"] = None
    return replace(first, **changes)


def _common_form(forms: Mapping[str, str | None]) -> tuple[str | None, bool]:
    """(form of an average over tasks of these forms, whether they must not be averaged)."""
    distinct = set(forms.values())
    if len(distinct) == 1:
        return distinct.pop(), False
    if None in distinct or sum(not form.startswith("other-") for form in distinct) > 1:  # type: ignore[union-attr]
        return None, True
    # A third tokenisation is named per set by its own hash (and may equal a known form where there was nothing to split).
    joined = "\n".join(f"{task} {forms[task]}" for task in sorted(forms))
    return f"other-{hashlib.sha256(joined.encode()).hexdigest()[:8]}", False


# --- what every suite asks of vectors before it scores them ---


Vectors = Callable[[Sequence[str]], np.ndarray]
"""Sentences to their vectors: (n, dim) float32, row i for sentence i."""


def check_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors as an array. Raises RunFailed for a wrong shape or type, NaN or infinity, naming the first bad sentence."""
    vectors_ND = np.asarray(vectors)
    if vectors_ND.ndim != 2 or len(vectors_ND) != len(sentences) or vectors_ND.shape[1] == 0:
        raise RunFailed(
            f"{task}: vectors of shape {vectors_ND.shape} for {len(sentences)} sentences, (n, dim) expected"
        )
    if not np.issubdtype(vectors_ND.dtype, np.floating):
        raise RunFailed(f"{task}: vectors of type {vectors_ND.dtype}, float32 expected")
    bad = np.flatnonzero(~np.isfinite(vectors_ND).all(axis=1))
    if len(bad):
        shown = sentences[bad[0]][:60]
        raise RunFailed(
            f"{task}: {len(bad)} of {len(sentences)} vectors hold NaN or infinity, first for the sentence '{shown}'",
            "the training diverged, or the backbone's weights are damaged: bench run with a lower --set learning_rate=, or another backbone",
        )
    return vectors_ND


def float32_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """As :func:`check_vectors`, in float32: a number that does not fit is refused as infinity."""
    given_ND = check_vectors(vectors, sentences, task)
    with np.errstate(over="ignore"):
        return check_vectors(np.asarray(given_ND, dtype=np.float32), sentences, task)


def check_variety(vectors_ND: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors. Raises RunFailed where all of them are the same: nothing can be told from them."""
    if (vectors_ND == vectors_ND[0]).all():
        shown = sentences[0][:60]
        raise RunFailed(
            f"{task}: all {len(sentences)} vectors are constant, the same as for the sentence '{shown}'",
            "did the training collapse? curve.jsonl in the run's folder has its losses",
        )
    return vectors_ND
