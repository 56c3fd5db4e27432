"""The suites of this package, of installed packages, and of the files of ``--plugin``.

Listing their names imports none of them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.base.imported_code import hash_file, hash_module
from bench.base.plugin_files import check_files, import_file
from bench.base.text import list_names
from bench.base.user_code import located
from bench.data.own.naming import is_own_file
from bench.records.record import ScoreKey
from bench.score.metrics.metric import METRICS, SUITE_METRICS, Metric, metric_named
from bench.score.suites.task import Suite, Task

_MODULES = {
    "sts": "bench.score.suites.sts:SUITE",
    "cxc": "bench.score.suites.cxc:SUITE",
    "transfer": "bench.score.suites.transfer:SUITE",
    "transfer-quick": "bench.score.suites.transfer_quick:SUITE",
    "fewshot": "bench.score.suites.fewshot:SUITE",
    "clustering": "bench.score.suites.clustering:SUITE",
    "geometry": "bench.score.suites.geometry:SUITE",
    "mteb": "bench.score.suites.mteb:SUITE",
    "check": "bench.score.suites.check:SUITE",
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


def find_task(key: ScoreKey) -> Task | None:
    """The task by its suite, name and protocol; None if the suite does not have it. Raises UnknownName if the suite is not here."""
    return suite(key[0]).find(key[1], key[2])


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
