"""What a row took, and the settings of a training that its neighbours in a table may not share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from bench.compare.statistics.table import Cost, Table
from bench.runs.record import RunRecord
from bench.runs.searches import is_tuned, search_of


def with_costs(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """The table with what every row took: means over its runs."""
    rows = [replace(row, cost=_cost([records[run] for run in row.runs])) for row in table.rows]
    return replace(table, rows=tuple(rows))


TERMS = ("learning_rate", "batch_size", "max_seq_length", "select_on")
"""Recipe values that two methods may have unlike each other without being other methods for it."""
SEARCHED = "searched"
"""What a footnote calls a value that a search chose."""


def terms(record: RunRecord) -> dict[str, str]:
    """What a trained run was given besides its method and its corpus: term -> value in words; empty where nothing was trained.

    Rows of one table that differ in one of them get a footnote, and ``--strict`` refuses them. What a search chose is SEARCHED,
    whatever it is: that methods were searched alike is what they share. So is the rate of a recipe that no trial of its search beat.
    """
    done = record.training
    if done is None:
        return {}
    rate = "learning_rate" if search_of(record) else None
    words = {
        key: SEARCHED if key == rate or is_tuned(value) else str(value.value)
        for key in TERMS
        if (value := record.recipe.get(key)) is not None and value.value is not None
    }
    return words | {"steps": f"{done.steps:,}"} if "learning_rate" in record.recipe else words


def _cost(runs: Sequence[RunRecord]) -> Cost:
    costs, (seconds, trials) = [run.cost for run in runs], tuning_cost(runs)
    return Cost(
        tuning_seconds=seconds,
        tuning_trials=trials,
        trainable_parameters=_mean([cost.trainable_parameters for cost in costs]),
        trainable_parts=_parts([cost.trainable_parts for cost in costs]),
        train_seconds=_mean([cost.train_seconds for cost in costs]),
        peak_memory_bytes=_mean([cost.peak_memory_bytes for cost in costs]),
    )


def tuning_cost(runs: Sequence[RunRecord]) -> tuple[float | None, int | None]:
    """(seconds, trials) of the one search behind all runs of a row; None for what it does not say, or says wrong."""
    searches = [search_of(run) for run in runs]
    if any(search.get("name") != searches[0].get("name") for search in searches):
        return None, None
    seconds, trials = searches[0].get("seconds"), searches[0].get("trials")
    known = float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e12 else None
    return known, trials if type(trials) is int and 0 <= trials < 1e6 else None


def _parts(counts: Sequence[Mapping[str, int] | None]) -> dict[str, float] | None:
    """Means over runs, of each part; None where a run recorded none, or other parts than the rest."""
    known = [parts for parts in counts if parts is not None]
    if len(known) < len(counts) or any(parts.keys() != known[0].keys() for parts in known):
        return None
    return {part: fmean(parts[part] for parts in known) for part in known[0]}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
