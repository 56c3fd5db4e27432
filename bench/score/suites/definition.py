"""Checks of a plugin's suite: can it be run next to this package's suites?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from bench.base.errors import BenchError
from bench.base.text import list_names
from bench.score.metrics.metric import METRICS, SUITE_METRICS
from bench.score.suites.task import Suite, Task

NAME = "[a-z0-9]+(-[a-z0-9]+)*"
RESERVED = ("all",)
# A metric's name that is at least this similar (difflib) to one of this package's suites counts as
# a misspelling of it.
ALIKE = 0.85


def check_definition(
    defined: object, plugin: str, suites: Sequence[str], tasks: Mapping[str, str]
) -> Suite:
    """Return a plugin's SUITE; raise BenchError if it cannot be run next to this package's suites.

    ``plugin``: how messages name the plugin. ``suites``: names of this package's suites. ``tasks``:
    name of a task -> the suite of this package that has it.
    """
    if not isinstance(defined, Suite):
        raise BenchError(
            f"{plugin}: SUITE is of type {type(defined).__name__}",
            "SUITE = Suite(...), see docs/add-a-suite.md",
        )
    name = str(defined.name)
    if not re.fullmatch(NAME, name) or name in RESERVED:
        raise BenchError(f"{plugin}: a suite cannot be called {name!r}", "use a-z, 0-9 and '-'")
    if name in suites:
        raise BenchError(f"{plugin}: the suite {name} exists already", "rename the suite")
    if not defined.tasks:
        raise BenchError(f"{plugin}: the suite {name} has no tasks", "tasks=(Task(...),)")
    taken = dict(tasks)
    for task in defined.tasks:
        _check_task(task, defined, plugin)
        if task.name in taken:
            raise BenchError(
                f"{plugin}: the suite {taken[task.name]} already has a task {task.name}",
                "rename the task: predictions are stored under its name",
            )
        taken[task.name] = name
    for task in defined.on_request:
        _check_task(task, defined, plugin)
    if defined.average is not None:
        check_average(defined, defined.average, plugin)
    for part in defined.parts.values():
        check_average(defined, part.tasks, plugin)
    return defined


def _check_task(task: Task, suite: Suite, plugin: str) -> None:
    """Raise BenchError if a task names another suite, or a metric that nobody can mean."""
    start = f"{plugin}: the task {task.name} has"
    if task.suite != suite.name:
        raise BenchError(f"{start} suite={task.suite!r}", f"suite={suite.name!r}")
    name = task.metric.name
    if name in METRICS:
        if task.metric != METRICS[name]:
            raise BenchError(
                f"{start} a metric of its own with the name {name!r}, which bench knows",
                f"metric={name!r} for bench's, or another name",
            )
        return
    ours = [metric.name for metric in SUITE_METRICS]
    for near in get_close_matches(name.lower(), ours, 1, ALIKE):
        raise BenchError(
            f"{start} metric={name!r}; bench knows {near!r}",
            f"metric={near!r}, or a less similar name for a metric of your own",
        )


def check_average(defined: Suite, names: Sequence[str], plugin: str) -> None:
    """Raise BenchError for an average that no run could have.

    It names no task, a task twice or one that is not there, or tasks of several metrics or
    protocols.
    """
    if not names:
        raise BenchError(f"{plugin}: average names no task", "average=None, or name its tasks")
    absent = sorted(set(names) - {task.name for task in defined.tasks})
    if absent:
        raise BenchError(
            f"{plugin}: average names {', '.join(absent)}, which the suite does not have",
            "name its tasks",
        )
    twice = list(dict.fromkeys(name for name in names if names.count(name) > 1))
    if twice:
        raise BenchError(
            f"{plugin}: average names {list_names(twice)} more than once", "name each task once"
        )
    averaged = [task for task in defined.tasks if task.name in names]
    for protocol in dict.fromkeys(task.protocol for task in averaged):
        same_protocol = [task for task in averaged if task.protocol == protocol]
        complete = {task.name for task in same_protocol} == set(names)
        if complete and len({task.metric for task in same_protocol}) == 1:
            return
    metrics = list_names(dict.fromkeys(task.metric.name for task in averaged))
    protocols = list_names(dict.fromkeys(task.protocol for task in averaged))
    raise BenchError(
        f"{plugin}: these tasks cannot be averaged: metrics {metrics}; protocols {protocols}",
        "average only tasks of one metric and one protocol, or average=None",
    )
