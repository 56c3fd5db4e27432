"""The cost of a row: means over its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from bench.compare.statistics.table import (
    RowCost,
    Table,
)
from bench.records.record import RunRecord
from bench.records.value_sources import search_of


def with_costs(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """Add the cost of every row: means over its runs."""
    return replace(
        table,
        rows=tuple(
            replace(row, cost=_cost([records[run] for run in row.runs])) for row in table.rows
        ),
    )


def _cost(runs: Sequence[RunRecord]) -> RowCost:
    costs, (seconds, trials) = [run.cost for run in runs], tuning_cost(runs)
    return RowCost(
        tuning_seconds=seconds,
        tuning_trials=trials,
        trainable_parameters=_mean([cost.trainable_parameters for cost in costs]),
        total_parameters=_mean([cost.total_parameters for cost in costs]),
        trainable_parts=_parts([cost.trainable_parts for cost in costs]),
        train_seconds=_mean([cost.train_seconds for cost in costs]),
        peak_memory_bytes=_mean([cost.peak_memory_bytes for cost in costs]),
    )


def tuning_cost(runs: Sequence[RunRecord]) -> tuple[float | None, int | None]:
    """Return (seconds, trials) of the one search behind all runs of a row; None if not recorded, or
    invalid.
    """
    searches = [search_of(run) for run in runs]
    if any(search.get("name") != searches[0].get("name") for search in searches):
        return None, None
    seconds, trials = searches[0].get("seconds"), searches[0].get("trials")
    return (
        float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e12 else None,
        trials if type(trials) is int and 0 <= trials < 1e6 else None,
    )


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
