"""The cost of a row: the columns of ``bench compare --cost``. A new column is an entry of
``COSTS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from bench.base.text import format_duration
from bench.compare.formatting import short_count
from bench.compare.statistics.table import Table
from bench.records.record import RunRecord
from bench.records.value_sources import search_of

Numbers = Mapping[str, Any]
"""The numbers of a row's cost, means over its runs; None if not all of them recorded it."""


@dataclass(frozen=True, kw_only=True)
class CostColumn:
    """One column of costs."""

    # its heading: "train"
    name: str
    # what it says, for the legend
    meaning: str
    # of its numbers, in CSV and JSON; the column is sorted by the first
    numbers: tuple[str, ...]
    # runs of one row -> these numbers, and others that only JSON has
    measure: Callable[[Sequence[RunRecord]], Numbers]
    # numbers -> "13m32s"; "" if they are not known
    text: Callable[[Numbers], str]
    # True if the numbers depend on the machine
    of_machine: bool = False


def with_costs(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """Add the cost of every row."""
    rows = []
    for row in table.rows:
        runs = [records[run] for run in row.runs]
        cost: dict[str, Any] = {}
        for column in COSTS:
            cost |= column.measure(runs)
        rows.append(replace(row, cost=cost))
    return replace(table, rows=tuple(rows))


def _parameters(runs: Sequence[RunRecord]) -> Numbers:
    costs = [run.cost for run in runs]
    return {
        "trainable_parameters": _mean([cost.trainable_parameters for cost in costs]),
        "total_parameters": _mean([cost.total_parameters for cost in costs]),
        "trainable_parts": _parts([cost.trainable_parts for cost in costs]),
    }


def _parameters_text(cost: Numbers) -> str:
    """Write the trained parameters and their share of the model: "98.6k (1.8 %)"."""
    trained, total = cost.get("trainable_parameters"), cost.get("total_parameters")
    text = short_count(trained)
    if trained is None or not total:
        return text
    share = 100 * min(trained / total, 1.0)
    return f"{text} ({share:.0f} %)" if share >= 10 else f"{text} ({share:.2g} %)"


def _training(runs: Sequence[RunRecord]) -> Numbers:
    return {"train_seconds": _mean([run.cost.train_seconds for run in runs])}


def _training_text(cost: Numbers) -> str:
    seconds = cost.get("train_seconds")
    return "" if seconds is None else format_duration(seconds)


def _tuning(runs: Sequence[RunRecord]) -> Numbers:
    """Return the cost of the one search behind all runs; None if it is not recorded, or invalid."""
    searches = [search_of(run) for run in runs]
    cost: dict[str, float | None] = {"tuning_seconds": None, "tuning_trials": None}
    if any(search.get("name") != searches[0].get("name") for search in searches):
        return cost
    seconds, trials = searches[0].get("seconds"), searches[0].get("trials")
    if isinstance(seconds, int | float) and 0 <= seconds < 1e12:
        cost["tuning_seconds"] = float(seconds)
    if type(trials) is int and 0 <= trials < 1e6:
        cost["tuning_trials"] = trials
    return cost


def _tuning_text(cost: Numbers) -> str:
    """Write "2h36m/12" for a search of twelve trials."""
    if cost.get("tuning_seconds") is None:
        return ""
    return f"{format_duration(cost['tuning_seconds'])}/{cost['tuning_trials'] or '?'}"


def _memory(runs: Sequence[RunRecord]) -> Numbers:
    return {"peak_memory_bytes": _mean([run.cost.peak_memory_bytes for run in runs])}


def _memory_text(cost: Numbers) -> str:
    return short_count(cost.get("peak_memory_bytes"))


def _parts(counts: Sequence[Mapping[str, int] | None]) -> dict[str, float] | None:
    """Return the mean of each part over runs; None if a run recorded none, or has other parts than
    the rest.
    """
    known = [parts for parts in counts if parts is not None]
    if len(known) < len(counts) or any(parts.keys() != known[0].keys() for parts in known):
        return None
    return {part: fmean(parts[part] for parts in known) for part in known[0]}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


COSTS = (
    CostColumn(
        name="params",
        meaning="trained, and their share of the model",
        numbers=("trainable_parameters", "total_parameters"),
        measure=_parameters,
        text=_parameters_text,
    ),
    CostColumn(
        name="train",
        meaning="training time",
        numbers=("train_seconds",),
        measure=_training,
        text=_training_text,
        of_machine=True,
    ),
    CostColumn(
        name="tuning",
        meaning="search time / number of trials, once for all seeds",
        numbers=("tuning_seconds", "tuning_trials"),
        measure=_tuning,
        text=_tuning_text,
        of_machine=True,
    ),
    CostColumn(
        name="memory",
        meaning="peak, in bytes",
        numbers=("peak_memory_bytes",),
        measure=_memory,
        text=_memory_text,
        of_machine=True,
    ),
)
"""The columns, in the order of a table."""
