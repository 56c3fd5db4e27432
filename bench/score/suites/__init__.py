"""Suites: groups of tasks, and how each task is scored.

A suite is a module that defines ``SUITE``. A task knows which data it needs and how vectors become a score; it never trains
and never sees a model, only a function from sentences to vectors. Listing the names imports nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from bench.base import __version__
from bench.base.errors import BenchError, DataDamaged, PluginFailed, RunFailed, UnknownName
from bench.base.files import CacheEntry, is_settled, values_sha256
from bench.base.imported_code import hash_file, hash_module
from bench.base.plugin_files import check_files, import_file
from bench.base.text import average_of, list_names
from bench.base.user_code import located, place_of_code, plugin_code
from bench.data.own.naming import is_own_file
from bench.data.sets import DataFolder, data_set
from bench.records.record import AVERAGE, REDUCED, ScoreKey
from bench.score.metrics.correlation import UnusableGold, pearson, spearman
from bench.score.metrics.metric import METRICS, SUITE_METRICS, Metric, metric_named

Arrays = Mapping[str, np.ndarray]
"""Of one task, by name: "prediction", "gold", "subset" ..."""

_MODULES = {
    "sts": "bench.score.suites.sts:SUITE",
    "cxc": "bench.score.suites.sts:CXC_SUITE",
    "transfer": "bench.score.suites.transfer:SUITE",
    "transfer-quick": "bench.score.suites.transfer:QUICK_SUITE",
    "fewshot": "bench.score.suites.transfer:FEWSHOT_SUITE",
    "clustering": "bench.score.suites.clustering:SUITE",
    "geometry": "bench.score.suites.geometry:SUITE",
    "mteb": "bench.score.suites.mteb:SUITE",
    "check": "bench.score.suites.sts:CHECK_SUITE",
    "own": "bench.score.suites.own:SUITE",
}
"""Suite -> the module that defines it, and its name there."""

GROUP = "bench.suites"
"""The entry points under which installed packages register suites of their own: the name is the suite's, the object the suite."""
ALL, OWN = "all", "own"
ALIKE = 0.85
"""A metric's name that is at least this similar (difflib) to one of this package's suites is taken
for a misspelling of it."""
# a small sample, a second protocol for the same sets, and tasks that have to be named one by one
NOT_IN_ALL = ("check", "transfer-quick", "mteb", OWN)


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


# --- the suites: of this package, of installed packages, and of the files of --plugin ---


@dataclass(frozen=True)
class SuitePlugin:
    """A suite that is not part of this package, and its origin."""

    suite: Suite
    package: str
    """The distribution, or the file."""
    version: str
    sha256: str
    """Of its code and of what that imports (``bench.base.imported_code``)."""


_from_files: dict[str, SuitePlugin] = {}


@cache
def _points() -> Mapping[str, importlib.metadata.EntryPoint]:
    return {
        point.name: point
        for point in importlib.metadata.entry_points(group=GROUP)
        if point.name not in (*_MODULES, ALL)
    }


@cache
def _installed(name: str) -> SuitePlugin:
    """The suite of an entry point. Raises BenchError if it does not import, or is not a suite."""
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
    return SuitePlugin(
        loaded,
        package,
        version,
        hash_module(point.module) or hash_file(Path(str(sys.modules[point.module].__file__))),
    )


def use_files(files: Sequence[Path]) -> None:
    """Make the suites of these plugin files known, instead of those of earlier files; a file without a suite is skipped.

    Raises BenchError if a file is missing, is given twice, does not import, or defines an invalid suite or one whose name
    another file or an installed package has.
    """
    _from_files.clear()
    check_files(files)
    for file in files:
        loaded = import_file(file) if b"SUITE" in file.read_bytes() else None
        if (defined := getattr(loaded, "SUITE", None)) is None:
            continue
        _check_definition(defined, f"--plugin {file}")
        if (other := suite_plugin(defined.name)) is not None:
            raise BenchError(
                f"{file} and {other.package} both define a suite '{defined.name}'",
                f"rename the suite in {file}",
            )
        _from_files[defined.name] = SuitePlugin(defined, str(file), "", hash_file(file))


def _check_definition(defined: object, whose: str) -> None:
    """Raises BenchError if a plugin's SUITE cannot be run next to this package's suites."""
    if not isinstance(defined, Suite):
        raise BenchError(
            f"{whose}: SUITE is of type {type(defined).__name__}",
            "SUITE = Suite(...), see docs/add-a-suite.md",
        )
    name, tasks = str(defined.name), {task.name for task in defined.tasks}
    valid = re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name) and name != ALL
    absent = ", ".join(sorted(set(defined.average or ()) - tasks))
    problems: list[tuple[object, str, str]] = [
        (not valid, f"a suite cannot be called {name!r}", "use a-z, 0-9 and '-'"),
        (name in _MODULES, f"the suite {name} exists already", "rename the suite"),
        (not tasks, f"the suite {name} has no tasks", "tasks=(Task(...),)"),
    ]
    taken = {task.name: ours for ours in _MODULES if ours != "mteb" for task in suite(ours).tasks}
    for task in defined.tasks:
        about, metric = f"the task {task.name} has", task.metric.name
        names = [known.name for known in SUITE_METRICS]
        near = "".join(get_close_matches(metric.lower(), names, 1, ALIKE))
        problems += [
            (task.suite != name, f"{about} suite={task.suite!r}", f"suite={name!r}"),
            (
                near and metric not in METRICS,
                f"{about} metric={metric!r}; bench knows {near!r}",
                f"metric={near!r}, or a less similar name for a metric of your own",
            ),
            (
                metric in METRICS and task.metric != METRICS[metric],
                f"{about} a metric of its own with the name {metric!r}, which bench knows",
                f"metric={metric!r} for bench's, or another name",
            ),
            (
                task.name in taken,
                f"the suite {taken.get(task.name)} already has a task {task.name}",
                "rename the task: predictions are stored under its name",
            ),
        ]
        taken[task.name] = name
    for wrong, why, hint in (
        *problems,
        (absent, f"average names {absent}, which the suite does not have", "name its tasks"),
    ):
        if wrong:
            raise BenchError(f"{whose}: {why}", hint)
    if defined.average is not None:
        _check_average(defined, defined.average, whose)


def _check_average(defined: Suite, names: Sequence[str], whose: str) -> None:
    """Raises BenchError for an average that no run could have: of no task, of one task twice, of tasks of several metrics or protocols."""
    if not names:
        raise BenchError(f"{whose}: average names no task", "average=None, or name its tasks")
    if len(set(names)) < len(names):
        twice = list_names(dict.fromkeys(name for name in names if names.count(name) > 1))
        raise BenchError(f"{whose}: average names {twice} more than once", "name each task once")
    of_average = [task for task in defined.tasks if task.name in names]
    for protocol in dict.fromkeys(task.protocol for task in of_average):
        under_it = [task for task in of_average if task.protocol == protocol]
        complete = {task.name for task in under_it} == set(names)
        if complete and len({task.metric for task in under_it}) == 1:
            return
    metrics = list_names(dict.fromkeys(task.metric.name for task in of_average))
    protocols = list_names(dict.fromkeys(task.protocol for task in of_average))
    raise BenchError(
        f"{whose}: average is of tasks that cannot be averaged: metrics {metrics}; protocols {protocols}",
        "average only tasks of one metric and one protocol, or average=None",
    )


def suite_plugin(name: str) -> SuitePlugin | None:
    """A plugin's suite and its origin; None for a suite of this package. Raises BenchError if an installed one cannot be loaded."""
    if name in _MODULES:
        return None
    return _from_files.get(name) or (_installed(name) if name in _points() else None)


@cache
def built_in_code(name: str) -> str | None:
    """The hash of the code of a suite of this package, and of the metrics that it uses; None for any other suite."""
    place = _MODULES.get(name)
    return None if place is None else hash_module(place.partition(":")[0])


def suite_names() -> list[str]:
    return list(dict.fromkeys([*_MODULES, *sorted(_points()), *_from_files]))


def expand_suites(names: Iterable[str]) -> list[str]:
    """The names, each once; "all" stands for every suite of this package that papers report."""
    every = [name for name in _MODULES if name not in NOT_IN_ALL]
    return list(dict.fromkeys(one for name in names for one in (every if name == ALL else [name])))


def split_names(text: str) -> tuple[str, ...]:
    """``--suite`` in parts. A comma separates, except within parentheses (of mteb's "MTEB(eng, v2)").

    Names after "mteb:" are mteb's, up to the next name of a suite; they stay together, in one part:
    "sts,mteb:STSBenchmark,SICK-R,cxc" -> ("sts", "mteb:STSBenchmark,SICK-R", "cxc"). So do a user's files, and their columns:
    "sts,pairs.tsv:a,b,rating" -> ("sts", "own:pairs.tsv:a,b,rating").
    """
    known = suite_names()
    names: dict[str, list[str]] = {}  # "sts", or "mteb:" and what follows it
    owner = ""
    for part in (part.strip() for part in re.split(r",(?![^()]*\))", text)):
        head, colon, rest = part.partition(":")
        if is_own_file(part):
            owner = f"{OWN}:"
        elif colon and head in known:
            owner, part = f"{head}:", rest.strip()
        elif part in (*known, ALL):
            owner = ""
        if owner:
            names.setdefault(owner, []).extend([part] if part else [])
        elif part:
            names.setdefault(part, [])
    return tuple(name + ",".join(theirs) for name, theirs in names.items())


def check_suite(name: str) -> None:
    """Raises UnknownName, with the nearest names, if "suite" or "suite:TASK" does not begin with a suite's name."""
    name, known = name.partition(":")[0], suite_names()
    if name in known:
        return
    owner = _suite_with_task(name)
    if owner is not None:
        raise BenchError(f"{name} is a task of the suite {owner}", f"--suite {owner}:{name}")
    raise UnknownName(
        "suite",
        name,
        known,
        hint="bench suites; your own data: --suite FILE; your own code: --plugin FILE.py",
    )


def _suite_with_task(name: str) -> str | None:
    """The first suite of this package that has a task of that name, whatever its case."""
    for known in _MODULES:
        if any(task.name.lower() == name.lower() for task in suite(known).tasks):
            return known
    return None


def suite(name: str) -> Suite:
    """The suite of that name, or with only the tasks of "suite:TASK,TASK". Raises UnknownName with the nearest names."""
    check_suite(name)
    name, colon, tasks = name.partition(":")
    whole, module = _find_suite(name)
    if not colon:
        return whole
    if hasattr(module, "choose_tasks"):
        return module.choose_tasks(tasks)
    return _with_tasks(whole, tasks.split(","))


def _find_suite(name: str) -> tuple[Suite, Any]:
    """The suite of that name, and the module of this package that defines it (None for a plugin's)."""
    plugin = suite_plugin(name)
    if plugin is not None:
        return plugin.suite, None
    module_name, _, attribute = _MODULES[name].partition(":")
    module = importlib.import_module(module_name)
    return getattr(module, attribute), module


def _with_tasks(whole: Suite, names: Sequence[str]) -> Suite:
    """The suite with these tasks only, in its own order. Raises UnknownName."""
    for name in names:
        whole.task(name)
    return replace_fields(whole, tasks=tuple(task for task in whole.tasks if task.name in names))


def find_metric(suite_name: str, name: str) -> Metric:
    """Find the metric of a score by its suite and its name.

    It is this package's, or that of the suite's tasks. If the suite is not here, only the name of
    the metric is known.
    """
    if name in METRICS:
        return METRICS[name]
    try:
        plugin = suite_plugin(suite_name)
    except BenchError:
        plugin = None  # a broken package is reported if its suite is asked for
    if plugin is not None:
        for task in plugin.suite.tasks:
            if task.metric.name == name:
                return task.metric
    return metric_named(name)


AnyScore = TypeVar("AnyScore")


def average(scores: Iterable[AnyScore]) -> AnyScore | None:
    """The papers' "Avg.": each value rounded to 2 decimals, their mean, rounded again; of one suite's scores.

    Takes Scores or TaskResults, in any order, and gives one more of the same kind, task "Avg.". None when a task of the average is missing,
    when the suite has no average, or when the tasks of the average are not of one metric, protocol and text form. Other tasks of the suite
    change nothing.
    """
    by_task: dict[str, Any] = {score.task: score for score in scores if score.task != AVERAGE}  # type: ignore[attr-defined]
    first: Any = next(iter(by_task.values()), None)
    names = None if first is None else suite(first.suite).average
    if not names or not by_task.keys() >= set(names):
        return None
    chosen = [by_task[name] for name in names]
    kinds = {(score.suite, score.protocol, score.metric) for score in chosen}
    forms = {score.text for score in chosen}
    known = [form for form in forms if not (form or "other-").startswith("other-")]
    if len(kinds) > 1 or (len(forms) > 1 and (None in forms or len(known) > 1)):
        return None
    text = chosen[0].text
    if len(forms) > 1:
        # a third tokenisation is named by its hash for each set (and may equal a known form of a set with nothing to split)
        joined = "\n".join(sorted(f"{score.task} {score.text}" for score in chosen))
        text = f"other-{hashlib.sha256(joined.encode()).hexdigest()[:8]}"
    # there are no predictions of the average: a TaskResult has the arrays, a Score their hash
    none: dict[str, Any] = (
        {"predictions": {}} if isinstance(chosen[0], TaskResult) else {"predictions_sha256": None}
    )
    return replace(
        chosen[0],
        task=AVERAGE,
        value=average_of(score.value for score in chosen),
        std=None,
        n=sum(score.n for score in chosen),
        text=text,
        detail={"tasks": list(names)},
        reduced_sha256=None,
        **none,
    )


# --- checks of vectors, for every suite ---


GOLD_IS_THE_CAUSE = (
    "the gold values of the task's data are the cause, and no model: correct the data"
)


@contextlib.contextmanager
def scoring(task: str, hint: str | None = None) -> Iterator[None]:
    """A metric that is undefined, or cannot be computed, fails the run: its ValueError becomes RunFailed, with the task's name.

    ``hint`` is about the model; gold values that are the cause have a hint of their own."""
    try:
        yield
    except UnusableGold as error:
        raise RunFailed(f"{task}: {error}", GOLD_IS_THE_CAUSE) from None
    except ValueError as error:
        raise RunFailed(f"{task}: {error}", hint) from None


Vectors = Callable[[Sequence[str]], np.ndarray]
"""Sentences to their vectors: (n, dim) float32, row i for sentence i."""


def check_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors as an array. Raises RunFailed for a wrong shape or type, NaN or infinity, naming the first bad sentence."""
    vectors_ND = np.asarray(vectors)
    if vectors_ND.ndim != 2 or len(vectors_ND) != len(sentences) or vectors_ND.shape[1] == 0:
        raise RunFailed(
            f"{task}: vectors of shape {vectors_ND.shape} for {len(sentences)} sentences, expected (n, dim)"
        )
    if not np.issubdtype(vectors_ND.dtype, np.floating):
        raise RunFailed(f"{task}: vectors of type {vectors_ND.dtype}, expected float32")
    if len(bad := np.flatnonzero(~np.isfinite(vectors_ND).all(axis=1))):
        raise RunFailed(
            f"{task}: {len(bad)} of {len(sentences)} vectors hold NaN or infinity, first for the sentence '{sentences[bad[0]][:60]}'",
            "the training diverged, or the backbone's weights are damaged: try a lower --set learning_rate=, or another backbone",
        )
    return vectors_ND


def float32_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """As :func:`check_vectors`, in float32: a number that does not fit is refused as infinity."""
    checked_ND = check_vectors(vectors, sentences, task)
    with np.errstate(over="ignore"):
        return check_vectors(np.asarray(checked_ND, dtype=np.float32), sentences, task)


def check_variety(vectors_ND: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors. Raises RunFailed if all of them are the same: nothing can be scored then."""
    if (vectors_ND == vectors_ND[0]).all():
        raise RunFailed(
            f"{task}: all {len(sentences)} vectors are constant, the same as for the sentence '{sentences[0][:60]}'",
            "did the training collapse (curve.jsonl in the run's folder has its losses), or is a prefix or prompt as long as all that the model reads?",
        )
    return vectors_ND


# --- what is known of a task without reading its data ---
# A second call of ``bench run`` should not read 100 MB of text to find that nothing is left to do. So what a task's data turned out
# to be (text form, checksum, number of items) is cached under the path, size and time of every file that reading it could touch; a
# file that was changed, added or removed is read and checked again.


@dataclass(frozen=True)
class KnownTask:
    """What a task's data is; the data itself is read when ``task`` is first asked for."""

    name: str
    form: str | None
    sha256: str
    n: int
    read: Callable[[], LoadedTask]
    suite: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def task(self) -> LoadedTask:
        """The data. Raises DataDamaged if it changed since the run was planned."""
        loaded = self.read()
        if (loaded.form, loaded.sha256) != (self.form, self.sha256):
            raise DataDamaged(
                f"{self.name}: its files changed since they were checked",
                "run the same command again",
            )
        return loaded


def survey(task: Task, data: DataFolder, text: str) -> KnownTask:
    """The task with its data in that text form, from the cache if no file changed. Raises DataMissing, DataDamaged, and BenchError if
    the task's ``n`` is not the number of items in its data."""
    known = survey_files(
        task.name, task.data, data, text, lambda: task.load(data, text), task.suite
    )
    # ``n`` is not that of other text forms
    if (known.form is None or text == "tokenised") and task.n and known.n != task.n:
        raise BenchError(
            f"{task.name} of the suite {task.suite} has n={task.n}, but its data has {known.n} items",
            f"n={known.n} in the suite's Task, or complete the data",
        )
    return known


def survey_files(
    name: str,
    sets: Sequence[str],
    data: DataFolder,
    text: str,
    read: Callable[[], LoadedTask],
    suite: str = "",
) -> KnownTask:
    """As ``survey``, for data that lies in these sets of the manifest. Without sets nothing is cached."""
    files = [entry for set_ in sets for entry in data.entries(data_set(set_))]
    entry = None
    if files and all(is_settled(changed) for _, _, changed in files):
        entry = CacheEntry("known", json.dumps([__version__, name, text, files]))
        if (known := entry.read()) is not None:
            return KnownTask(name, **known, read=read, suite=suite)
    loaded = read()
    known = {"form": loaded.form, "sha256": loaded.sha256, "n": loaded.n}
    if entry is not None:
        entry.write(known)
    return KnownTask(name, **known, read=lambda: loaded, suite=suite, notes=loaded.notes)


# --- from stored predictions to a score again: no model, no data set, no torch ---
# The suites' own ``rescore`` functions under one signature, with every way in which stored arrays can be wrong.

GIVEN = ("gold", "subset", "all_splits_gold", "image", "caption1", "caption2", "fold", "drawn")
"""Arrays that come from the data or the protocol alone: the same for every model on one set."""


def rescore(key: ScoreKey, arrays: Arrays, metric: str = "") -> TaskScore | None:
    """The score of one task from its stored arrays; None if they do not determine it (other kinds of tasks of mteb), and for a
    protocol that this bench does not know.

    ``metric`` is used for mteb's tasks only. Raises DataDamaged if the arrays are not what the suite stores, or give no number.
    """
    task = key[1]
    if "prediction" in arrays and not len(np.atleast_1d(arrays["prediction"])):
        raise DataDamaged(f"{task}: the predictions hold no items")
    try:
        with np.errstate(all="ignore"):
            score = _rescore_mteb(arrays, metric) if key[0] == "mteb" else _rescore(key, arrays)
    except RunFailed as error:
        raise DataDamaged(error.message) from None
    except KeyError as error:
        raise DataDamaged(f"{task}: the predictions have no array {error}") from None
    except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise DataDamaged(
            f"{task}: the predictions cannot be scored: {' '.join(str(error).split())[:200]}"
        ) from None
    if score is not None and not np.isfinite([score.value, score.std or 0.0]).all():
        raise DataDamaged(f"{task}: the predictions give no finite score")
    return score


def reduce_predictions(key: ScoreKey, arrays: Arrays) -> dict[str, np.ndarray] | None:
    """The stored arrays of one task that its score needs (``Task.reduced``); None if its suite does not say, or is not here."""
    task = find_task(key) if key[0] in suite_names() else None
    return None if task is None else task.reduced(arrays)


def find_task(key: ScoreKey) -> Task | None:
    """The task by its suite, name and protocol; None if the suite does not have it. Raises UnknownName if the suite is not here."""
    return suite(key[0]).find(key[1], key[2])


def _rescore(key: ScoreKey, arrays: Arrays) -> TaskScore | None:
    name, task = key[:2]
    scorer = _scorer_of(key) if name in suite_names() else None
    if scorer is None:
        return None
    try:
        score = scorer(arrays, task)
    except Exception as error:  # a third party's code may raise anything
        if suite_plugin(name) is None:
            raise
        raise DataDamaged(
            f"{task}: the scorer of the suite {name} fails: {located(error)}"
        ) from None
    if not isinstance(score, TaskScore):
        raise DataDamaged(
            f"{task}: the scorer of the suite {name} returns {type(score).__name__}, not a TaskScore"
        )
    return score


def _scorer_of(key: ScoreKey) -> Callable[[Arrays, str], TaskScore] | None:
    """The function that scores the stored predictions of a task again: its own, whatever other tasks of its protocol have.

    A record may name a task that its suite no longer has, or an earlier protocol: then the one function that all tasks of the protocol, or
    of the suite, share; None if they have several.
    """
    if (task := find_task(key)) is not None:
        return task.rescore
    name, task_name, protocol = key[:3]
    here = suite(name)
    alike = [one for one in here.tasks if one.protocol == protocol]
    if not alike and protocol in here.earlier:
        alike = [one for one in here.tasks if one.name == task_name] or list(here.tasks)
    if not alike or any(one.rescore is not alike[0].rescore for one in alike):
        return None
    return alike[0].rescore


_CORRELATIONS = {"cosine_spearman": spearman, "cosine_pearson": pearson}


def _rescore_mteb(arrays: Arrays, metric: str) -> TaskScore | None:
    """mteb's main score x 100: the mean over subsets and splits, of similarity tasks and of accuracy."""
    if "prediction" not in arrays or metric not in (*_CORRELATIONS, "accuracy"):
        return None
    prediction, gold, subset = arrays["prediction"], arrays["gold"], arrays["subset"]
    values = [
        100 * float((prediction[rows] == gold[rows].reshape(-1, 1)).mean())
        if metric == "accuracy"
        else _CORRELATIONS[metric](prediction[rows], gold[rows])
        for rows in (subset == part for part in dict.fromkeys(subset.tolist()))
    ]
    return TaskScore(float(np.mean(values)), len(prediction))
