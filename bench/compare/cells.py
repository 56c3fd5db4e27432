"""The predictions behind the cells of tables, as far as there are any, and why there are none elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.errors import BenchError
from bench.runs.predictions import Key, Run, has_statistics, predicted
from bench.statistics.grouping import AVERAGE, by_protocol
from bench.statistics.table import COLUMNS, Table

if TYPE_CHECKING:
    from bench.runs.record import Score
    from bench.statistics.cells import Predicted

Place = tuple[int, int]
"""Row and column of a table."""


@dataclass
class Loaded:
    """One table's predictions. ``missing``: why a cell that has a score has none, in words."""

    table: Table
    found: dict[Place, Predicted] = field(default_factory=dict)
    missing: dict[Place, str] = field(default_factory=dict)
    seeds: dict[Place, tuple[int | None, ...]] = field(default_factory=dict)
    """Of every cell that has a score, in the order of its values."""
    average: tuple[int, ...] = ()  # columns that the last one averages; empty where there is no average


def load(
    table: Table, runs: Mapping[str, Run], report: Callable[[str, int, int], None] | None = None, *, predictions: bool = True
) -> Loaded:
    """Read what the table's cells are made of. Nothing that is missing or damaged is fatal: it is named in ``missing``."""
    loaded = Loaded(table, average=_averaged(table, runs))
    kept = predictions and any((runs[run][1] / "predictions").is_dir() for row in table.rows for run in row.runs)
    scores = [[(runs[run], _scores(runs[run], table)) for run in row.runs] for row in table.rows]
    for j, task in enumerate(table.columns):
        if report is not None and kept:
            report(task, j, len(table.columns))
        for i, row in enumerate(table.rows):
            if (cell := row.cells[j]) is None:
                continue
            having = [(run, found[task]) for run, found in scores[i] if task in found]
            if task == AVERAGE:  # taken of the runs that have all tasks
                parts = [table.columns[part] for part in loaded.average]
                whole = [run for run, found in scores[i] if all(part in found for part in parts)]
                loaded.seeds[i, j] = tuple(run[0].seed for run in whole if len(whole) == len(cell.values)) or (-1,) * len(
                    cell.values
                )
                continue
            loaded.seeds[i, j] = tuple(run[0].seed for run, _ in having)
            if not kept or not has_statistics(having[0][1].metric):
                continue
            try:
                loaded.found[i, j] = _predicted(having)
            except BenchError as error:
                loaded.missing[i, j] = error.message
    return loaded


def _predicted(having: Sequence[tuple[Run, Score]]) -> Predicted:
    keys: dict[Key, None] = dict.fromkeys(score.key for _, score in having)
    if len(keys) > 1:
        raise BenchError(f"{having[0][1].task}: its seeds were scored on texts of different forms")
    return predicted([run for run, _ in having], next(iter(keys)))


def _scores(run: Run, table: Table) -> Mapping[str, Score]:
    return by_protocol(run[0]).get((table.suite, table.protocol, table.text or ""), {})


def _averaged(table: Table, runs: Mapping[str, Run]) -> tuple[int, ...]:
    """Columns that the papers' average is of: the suite's own, else those that a record names."""
    if table.columns[-1:] != (AVERAGE,):
        return ()
    names: Sequence[str] = COLUMNS.get(table.suite, ())
    for run in (runs[run] for row in table.rows for run in row.runs):
        if names:
            break
        stored = _scores(run, table).get(AVERAGE)
        tasks = stored.detail.get("tasks") if stored else None
        if isinstance(tasks, list) and all(task in table.columns for task in tasks):
            names = tasks
    return tuple(table.columns.index(name) for name in names or table.columns[:-1])
