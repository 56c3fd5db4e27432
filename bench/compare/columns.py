"""The columns of a table, from the predictions behind its cells as far as there are any, and the
reasons why there are none elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError, DataMissing
from bench.base.text import list_names
from bench.compare.statistics.column import Answers, Column, column
from bench.compare.statistics.rows import by_protocol
from bench.compare.statistics.table import (
    AVERAGE,
    COLUMNS,
    Cell,
    Table,
)
from bench.compare.words.names import row_name
from bench.data.sets.sts import STS_TASKS
from bench.records.packed import has_predictions
from bench.records.predictions import Predicted, read_predicted, same_items
from bench.records.record import RunRecord, Score
from bench.records.run import Run
from bench.score.influences import Influence, influences
from bench.score.metrics.metric import Metric
from bench.score.suites import find_metric, suite_names

APART = 0.02
"""Points that a recorded value may differ by from the value of its predictions: classifiers' scores
are rounded within folds."""

Position = tuple[int, int]
"""Row and column of a table."""

Cells = Mapping[Position, tuple[Predicted, Influence]]
"""Of a table's cells: what statistics are made of."""


class NoInterval(BenchError):
    """A metric with an unknown influence of its items."""


@dataclass(frozen=True)
class Columns:
    """The columns of one table."""

    of_place: Mapping[int, tuple[Column, tuple[int, ...]]]
    """Place of a column -> the predictions of its methods together, and the places of the rows
    that take part."""
    notes: tuple[str, ...]
    """The reasons why cells have no statistics, and the gaps in the statistics."""
    no_interval: Mapping[int, str]
    """Row of the table -> why nobody can say how far other items would move its score, if its
    metric is the reason."""


def read_columns(table: Table, runs: Mapping[str, Run]) -> Columns:
    """Return the columns of a table, from the predictions of its runs as far as there are any."""
    missing: dict[Position, str] = {}
    stored = any(has_predictions(runs[run].folder) for row in table.rows for run in row.runs)
    no_interval: dict[int, str] = {}
    cells = _read(table, runs, missing, no_interval) if stored else {}
    average = _averaged(table, runs)
    texts = [runs[row.runs[0]].record.provenance.corpus.sha256 for row in table.rows]
    last = len(table.columns) - 1
    of_place = {}
    for j in range(len(table.columns)):
        if any(row.cells[j] for row in table.rows):
            tasks = average if j == last and average else (j,)
            of_place[j] = _column(table, cells, j, tasks, texts, missing)
    return Columns(of_place, (*_reasons(table, missing), *_limits(cells)), no_interval)


def _column(
    table: Table,
    cells: Cells,
    j: int,
    tasks: Sequence[int],
    texts: Sequence[str | None],
    missing: dict[Position, str],
) -> tuple[Column, tuple[int, ...]]:
    """Return column j of the rows that have it, also of rows without known predictions.

    ``tasks``: the columns that it averages, or itself. ``texts``: the training text of each row.
    """
    having: dict[int, Cell] = {}
    for i, row in enumerate(table.rows):
        own_cell = row.cells[j]
        if own_cell is not None:
            having[i] = own_cell
    answers: list[Answers | None] = []
    for i, cell in having.items():
        known = []
        for task in tasks:
            if (i, task) not in cells:
                continue
            predicted, moved = cells[i, task]
            if set(cell.seeds) <= set(predicted.seeds):
                known.append(
                    (predicted.of_seeds(cell.seeds), moved.of(predicted.seeds, cell.seeds))
                )
        answers.append(known if len(known) == len(tasks) else None)
    values = [cell.values for cell in having.values()]
    # nothing of a start was learned: its seeds say nothing of those of trained rows
    random = [cell.seeds != (None,) and not table.rows[i].is_start for i, cell in having.items()]
    seeds = [cell.seeds for cell in having.values()]
    texts = [texts[i] for i in having]
    try:
        return column(answers, values, random, seeds, texts), tuple(having)
    except ValueError as error:
        missing |= {(i, j): str(error) for i in having}
        return Column(values, random, seeds=seeds, texts=texts), tuple(having)


def _limits(cells: Cells) -> list[str]:
    """Return a note if sentences shared by pairs are not taken into account."""
    unknown = list_names(
        p.task
        for p in {column: p for (_, column), (p, _) in cells.items()}.values()
        if p.metric == "spearman" and p.task in STS_TASKS and p.shared_NK is None
    )
    note = f"pairs of {unknown} are taken to share no sentence: the data is not the known one"
    return [note] if unknown else []


def _reasons(table: Table, missing: Mapping[Position, str]) -> list[str]:
    """Return a line for each reason why cells have no statistics."""
    lines = []
    for why in dict.fromkeys(missing.values()):
        cells = [place for place, reason in missing.items() if reason == why]
        shown = list_names(dict.fromkeys(row_name(table.rows[i], table) for i, _ in cells))
        tasks = ", ".join(dict.fromkeys(table.columns[j] for _, j in cells))
        lines.append(f"without statistics: {shown} on {tasks} ({why})")
    return lines


def _read(
    table: Table,
    runs: Mapping[str, Run],
    missing: dict[Position, str],
    no_interval: dict[int, str],
) -> Cells:
    """Read the predictions behind the table's cells. Nothing missing or damaged is fatal:
    ``missing`` gets the reason, and ``no_interval`` for each row the first one that is its metric.
    """
    cells: dict[Position, tuple[Predicted, Influence]] = {}
    stored = _read_rows(table, runs)
    for j in range(len(table.columns)):
        read: dict[int, Predicted] = {}
        reasons: dict[int, str] = {}
        first: Predicted | None = None
        for i in range(len(table.rows)):
            found = stored.get((i, j))
            if isinstance(found, Predicted):
                first = first or found
                try:
                    same_items(first, found)
                    read[i] = found
                except ValueError as error:
                    reasons[i] = str(error)
            elif found is not None:
                reasons[i] = _reason(found)
                if isinstance(found, NoInterval):
                    no_interval.setdefault(i, reasons[i])
        if first is not None:
            metric = find_metric(table.suite, first.metric)  # all have it: they have the same items
            moved_of = influences(list(read.values()), metric)
            for (i, p), moved in zip(read.items(), moved_of, strict=True):
                if isinstance(moved, ValueError):
                    reasons[i] = str(moved)
                    continue
                problem = _other_score(p, moved, metric)
                if problem:
                    reasons[i] = problem
                else:
                    cells[i, j] = p, moved
        for i in sorted(reasons):
            missing[i, j] = reasons[i]
    return cells


def _read_rows(table: Table, runs: Mapping[str, Run]) -> dict[Position, Predicted | Exception]:
    """Read the predictions behind each cell, or the error that says why there are none."""
    stored: dict[Position, Predicted | Exception] = {}
    for i, row in enumerate(table.rows):
        scores = [(runs[run], scores_in_table(runs[run].record, table)) for run in row.runs]
        for j, task in enumerate(table.columns):
            having = [(run, of_run[task]) for run, of_run in scores if task in of_run]
            if task == AVERAGE or not having:
                continue
            score = having[0][1]
            metric = find_metric(score.suite, score.metric)
            if metric.influence is None:
                stored[i, j] = NoInterval(_no_interval(score))
                continue
            try:
                stored[i, j] = read_predicted(
                    [run for run, _ in having],
                    score.key,
                    by_query=metric.by_query,
                    has_gold=metric.has_gold,
                )
            except (BenchError, ValueError) as error:
                stored[i, j] = error
    return stored


def _reason(error: Exception) -> str:
    if isinstance(error, DataMissing):
        return "no predictions"
    return error.message if isinstance(error, BenchError) else str(error)


def _other_score(p: Predicted, moved: Influence, metric: Metric) -> str:
    """Say by how much the recorded value differs from the one that the predictions give; "" if they
    agree."""
    if not metric.exact or p.score_S is None:
        return ""
    off = float(abs(moved.value_SR.mean(axis=1) - p.score_S).max())
    if off <= APART:
        return ""
    return f"{p.task}: its predictions give another score, by {off:.2f}; see bench verify"


def _no_interval(score: Score) -> str:
    """Say why a metric without an influence function has no interval."""
    if score.suite not in suite_names():
        return (
            f"{score.metric} is computed by the suite {score.suite}, which is not known here: add "
            "--plugin FILE"
        )
    return f"{score.metric} has no interval over items"


def scores_in_table(record: RunRecord, table: Table) -> Mapping[str, Score]:
    return by_protocol(record).get((table.suite, table.protocol), {})


def _averaged(table: Table, runs: Mapping[str, Run]) -> tuple[int, ...]:
    """Return the columns that the papers' average covers: the suite's, else those in a record."""
    if table.columns[-1:] != (AVERAGE,):
        return ()
    stored = (
        scores_in_table(runs[run].record, table).get(AVERAGE)
        for row in table.rows
        for run in row.runs
    )
    recorded = (
        tasks
        for tasks in (score.detail.get("tasks") for score in stored if score is not None)
        if isinstance(tasks, list) and tasks and all(task in table.columns for task in tasks)
    )
    return tuple(
        table.columns.index(name)
        for name in COLUMNS.get(table.suite) or next(recorded, table.columns[:-1])
    )
