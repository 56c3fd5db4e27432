"""The suites of this package and of the files of ``--plugin``.

Listing their names imports none of this package.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.base.entry_points import method_points
from bench.base.errors import BenchError, UnknownName
from bench.base.plugin_files import check_plugin_files, hash_plugin, import_file
from bench.base.text import list_names
from bench.data.own.naming import is_own_file
from bench.records.record import ScoreKey
from bench.score.metrics.metric import METRICS, Metric, metric_named
from bench.score.suites.definition import check_definition
from bench.score.suites.task import Suite, Task

# Suite -> the module that defines it, and its name there.
BUILT_IN = {
    "sts": "bench.score.suites.sts:SUITE",
    "sts-multi": "bench.score.suites.sts_multi:SUITE",
    "cxc": "bench.score.suites.cxc:SUITE",
    "transfer": "bench.score.suites.transfer:SUITE",
    "fewshot": "bench.score.suites.fewshot:SUITE",
    "clustering": "bench.score.suites.clustering:SUITE",
    "geometry": "bench.score.suites.geometry:SUITE",
    "mteb": "bench.score.suites.mteb:SUITE",
    "check": "bench.score.suites.check:SUITE",
    "own": "bench.score.suites.own:SUITE",
}
ALL, OWN = "all", "own"
# a small sample, other languages, and tasks that have to be named one by one
NOT_IN_ALL = ("check", "sts-multi", "mteb", OWN)


@dataclass(frozen=True)
class SuitePlugin:
    """A suite that is not part of this package."""

    suite: Suite
    # the file of ``--plugin``
    file: str
    # of the file and those that it imports (``bench.base.plugin_files``)
    sha256: str


_from_files: dict[str, SuitePlugin] = {}


def use_files(files: Sequence[Path]) -> None:
    """Make the suites of these plugin files known, in the place of earlier files' suites.

    A file that defines no suite is skipped. Raises BenchError if a file is missing, is given twice
    or does not import, or if its suite is invalid or has the name of another plugin's.
    """
    _from_files.clear()
    check_plugin_files(files)
    for file in files:
        if b"SUITE" not in file.read_bytes():
            continue
        found = getattr(import_file(file), "SUITE", None)
        if found is None:
            continue
        defined = _checked(found, f"--plugin {file}")
        other = suite_plugin(defined.name)
        if other is not None:
            raise BenchError(
                f"{file} and {other.file} both define a suite '{defined.name}'",
                f"rename the suite in {file}",
            )
        _from_files[defined.name] = SuitePlugin(defined, str(file), hash_plugin(file))


def _checked(defined: object, plugin: str) -> Suite:
    """Return a plugin's SUITE. Raises BenchError if it cannot be run next to this package's."""
    tasks = {}
    for name in BUILT_IN:
        if name != "mteb":  # its tasks have the names of other suites' sets
            tasks.update({task.name: name for task in suite(name).tasks})
    return check_definition(defined, plugin, tuple(BUILT_IN), tasks)


def suite_plugin(name: str) -> SuitePlugin | None:
    """Return the suite of a plugin file, or None for a suite of this package."""
    return _from_files.get(name)


def suite_names() -> list[str]:
    """Names of all suites that are known: of this package, and of plugin files."""
    return [*BUILT_IN, *_from_files]


def expand_suites(names: Iterable[str]) -> list[str]:
    """Return the names, each once; "all" means every suite of this package that papers report."""
    expanded: list[str] = []
    for name in names:
        if name == ALL:
            expanded += [ours for ours in BUILT_IN if ours not in NOT_IN_ALL]
        else:
            expanded.append(name)
    return list(dict.fromkeys(expanded))


def split_suites(text: str) -> tuple[str, ...]:
    """Split the text of ``--suite`` into its parts.

    A comma separates, except within parentheses (of mteb's "MTEB(eng, v2)"). Names after "mteb:"
    are mteb's, up to the next name of a suite; they stay together, in one part:
    "sts,mteb:STSBenchmark,SICK-R,cxc" -> ("sts", "mteb:STSBenchmark,SICK-R", "cxc"). So do a user's
    files and their columns: "sts,pairs.tsv:a,b,rating" -> ("sts", "own:pairs.tsv:a,b,rating").
    """
    known = suite_names()
    names: dict[str, list[str]] = {}  # "sts", or "mteb:" and the names that follow it
    owner = ""
    for part in (part.strip() for part in re.split(r",(?![^()]*\))", text)):
        part = part.removeprefix(f"{OWN}:")  # as records and plans name it
        head, colon, rest = part.partition(":")
        if is_own_file(part):
            owner = f"{OWN}:"
        elif colon and head in known:
            owner, part = f"{head}:", rest.strip()
        elif part in (*known, ALL):
            owner = ""
        if owner:
            owned = names.setdefault(owner, [])
            if part:
                owned.append(part)
        elif part:
            names.setdefault(part, [])
    return tuple(name + ",".join(owned) for name, owned in names.items())


def check_suite_name(name: str) -> None:
    """Raise UnknownName, with the nearest names, if "suite" or "suite:TASK" names no suite."""
    name, known = name.partition(":")[0], suite_names()
    if name in known:
        return
    owner = _suite_with_task(name)
    if owner is not None:
        raise BenchError(
            f"{name} is a task of the suite {owner}",
            f"--suite {owner}:{name}; bench suites {owner} shows it",
        )
    hint = "bench suites lists them; your own files are suites, too: docs/own-data.md"
    if name.lower() in [point.name for point in method_points()]:
        hint = f"{name.lower()} is a method: bench run {name.lower()}; the suites: bench suites"
    raise UnknownName("suite", name, known, hint=hint)


def _suite_with_task(name: str) -> str | None:
    """Return the first suite of this package that has a task of that name, in any case."""
    for known in BUILT_IN:
        if any(task.name.lower() == name.lower() for task in suite(known).tasks):
            return known
    return None


def suite(name: str) -> Suite:
    """Return the suite of that name; "suite:TASK,TASK" has only these tasks, "suite:PROTOCOL" those
    under this protocol. Raises UnknownName.
    """
    check_suite_name(name)
    name, colon, tasks = name.partition(":")
    whole = _find_suite(name)
    if not colon:
        return whole
    if whole.choose_tasks is not None:
        return whole.choose_tasks(tasks)
    return _with_tasks(whole, tasks.split(","))


def _find_suite(name: str) -> Suite:
    plugin = suite_plugin(name)
    if plugin is not None:
        return plugin.suite
    module, _, attribute = BUILT_IN[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _with_tasks(whole: Suite, names: Sequence[str]) -> Suite:
    """Return the suite with the tasks of these names and protocols only, in its own order.

    Raises UnknownName, and BenchError if a named task is not scored under a named protocol.
    """
    every = (*whole.tasks, *whole.on_request)
    known = dict.fromkeys([*(task.name for task in every), *(task.protocol for task in every)])
    for name in names:
        if name not in known:
            raise UnknownName("task", name, known, where=f"in suite {whole.name}")
    chosen: Sequence[Task] = [task for task in every if task.protocol in names]
    if not chosen:
        chosen = whole.tasks
    named = [name for name in names if any(task.name == name for task in every)]
    for name in named:
        if not any(task.name == name for task in chosen):
            protocols = list_names(dict.fromkeys(task.protocol for task in chosen))
            raise BenchError(
                f"{name} of the suite {whole.name} is not scored under {protocols}",
                f"bench suites {whole.name}",
            )
    if named:
        chosen = [task for task in chosen if task.name in named]
    return replace(whole, tasks=tuple(chosen), on_request=())


def find_task(key: ScoreKey) -> Task | None:
    """Find a task by suite, name and protocol; None if the suite does not have it.

    Raises UnknownName if there is no such suite.
    """
    return suite(key[0]).find(key[1], key[2])


def find_metric(suite_name: str, name: str) -> Metric:
    """Find the metric of a score by its suite and its name.

    It is a metric of this package or of the suite's tasks. If the suite is not here, only the name
    of the metric is known.
    """
    if name in METRICS:
        return METRICS[name]
    plugin = suite_plugin(suite_name)
    if plugin is not None:
        for task in plugin.suite.tasks:
            if task.metric.name == name:
                return task.metric
    return metric_named(name)
