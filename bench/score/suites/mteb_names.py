"""The names behind ``mteb:``: tasks, benchmarks, and some subsets (languages) of a task."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from typing import Any

from bench.base.errors import BenchError, UnknownName

SUBSETS, AND = ":", "+"  # between a task's name and the subsets that are scored, and between these


def named_tasks(mteb: Any, name: str) -> list[Any]:
    """Return the task of that name, or a benchmark's tasks."""
    name, colon, subsets = name.partition(SUBSETS)
    if colon:
        return [_chosen_subsets(mteb, name, subsets.split(AND))]
    with contextlib.suppress(KeyError):
        return [mteb.get_task(name)]
    try:
        return [copy.deepcopy(task) for task in mteb.get_benchmark(name).tasks]
    except KeyError:
        raise UnknownName(
            "mteb task or benchmark",
            name,
            [
                *(task.metadata.name for task in mteb.get_tasks(exclude_superseded=False)),
                *(benchmark.name for benchmark in mteb.get_benchmarks()),
            ],
            hint="mteb available-tasks, mteb available-benchmarks",
        ) from None


def _chosen_subsets(mteb: Any, name: str, chosen: Sequence[str]) -> Any:
    """Return the task of that name with these subsets alone, in mteb's order.

    Raises BenchError for a benchmark and for a task without subsets, UnknownName for a subset that
    the task does not have.
    """
    try:
        task = mteb.get_task(name)
    except KeyError:
        named_tasks(mteb, name)  # raises UnknownName if it is no benchmark either
        raise BenchError(
            f"mteb: {name} is a benchmark, and subsets are chosen of a task", f"mteb:{name}"
        ) from None
    known = list(task.metadata.hf_subsets)
    if known == ["default"]:
        raise BenchError(f"mteb: {name} has no subsets to choose", f"mteb:{name}")
    for subset in chosen:
        if subset not in known:
            raise UnknownName("subset", subset, known, where=f"of {name}")
    return mteb.get_task(name, hf_subsets=[subset for subset in known if subset in chosen])


def with_subsets(task: Any) -> str:
    """Return the name of a task with the subsets that are scored, if these are not all."""
    name = str(task.metadata.name)
    if set(task.hf_subsets) == set(task.metadata.hf_subsets):
        return name
    return f"{name}{SUBSETS}{AND.join(task.hf_subsets)}"
