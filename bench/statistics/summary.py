"""Groups records into the tables that papers print: rows are methods, columns tasks, cells means over seeds.

Two numbers meet in one column only under one suite, protocol and text form. Runs share a row only when nothing but the seed
differs: another recipe value, corpus or backbone revision makes another row, which names what differs. Pure Python, so that
``bench compare`` does not wait for numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import stdev
from typing import TYPE_CHECKING

from bench.errors import UnknownName
from bench.statistics.grouping import AVERAGE, Differs, by_protocol, rows_of, title

if TYPE_CHECKING:
    from bench.runs.record import RunRecord, Score

# as the papers print them; tasks of other suites keep the order of their record
COLUMNS: Mapping[str, tuple[str, ...]] = {"sts": ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")}
# of metrics, which every record names: a Score has no field for its direction
LOWER_IS_BETTER = ("alignment", "uniformity")
DECIMALS = {"alignment": 3, "uniformity": 3}  # as printed; 2 for all others


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method on one task."""

    mean: float  # over seeds
    sd: float | None  # over seeds, divided by n - 1; None with one seed
    values: tuple[float, ...]  # one per run, in the order of the row's runs
    n: int  # items scored
    mark: str = ""  # "best", "second" or ""
    decimals: int = 2  # that are printed, and that a mark goes by


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method as configured. ``cells`` belong to the table's columns, None where nothing was scored."""

    method: str
    variant: str
    setting: str
    backbone: str
    differs: Differs  # what sets it apart from rows of the same name: (recipe key, value)
    runs: tuple[str, ...]  # run ids, by seed
    seeds: tuple[int | None, ...]
    cells: tuple[Cell | None, ...]
    difference: float | None = None  # of the table's head column, from the baseline's
    is_baseline: bool = False

    @property
    def name(self) -> str:
        return f"{self.method}+{self.variant}" if self.variant else self.method


@dataclass(frozen=True, kw_only=True)
class Table:
    """One comparable set of numbers. ``columns`` end with the average where the suite has one."""

    setting: str | None  # None: several, each row names its own
    backbone: str | None
    suite: str
    protocol: str
    text: str | None
    metric: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    baseline: str | None = None

    @property
    def head(self) -> str | None:
        """The column that ranks: the average, or the only task (where more is better)."""
        single = len(self.columns) == 1 and self.metric not in LOWER_IS_BETTER
        return self.columns[-1] if self.columns[-1:] == (AVERAGE,) or single else None

    @property
    def seeds(self) -> tuple[int, int]:
        """Fewest and most seeds of a row."""
        counts = [len(row.runs) for row in self.rows]
        return min(counts), max(counts)


def summarise(records: Iterable[RunRecord], *, baseline: str | None = None, together: bool = False) -> tuple[Table, ...]:
    """The tables that the finished ones among ``records`` make.

    Runs in which nothing was trained stand in the unsupervised table of their backbone where there is one, as in the papers.
    ``together``: all settings and backbones in one table. ``baseline``: a method or ``method+variant``; each table that has it
    gets differences of the averages (of the only task, where there is one). Raises UnknownName where no table has it.
    """
    finished = [record for record in records if record.status == "finished"]
    scored = [(key, record, scores) for record in finished for key, scores in by_protocol(record).items()]
    trained = {(key, record.backbone) for key, record, _ in scored if record.setting == "unsupervised"}
    groups: dict[tuple[str, ...], list[tuple[RunRecord, dict[str, Score]]]] = {}
    for key, record, scores in scored:
        joins = record.setting == "none" and (key, record.backbone) in trained
        place = ("", "") if together else ("unsupervised" if joins else record.setting, record.backbone)
        groups.setdefault((*key, *place), []).append((record, scores))
    tables = [_table(key, groups[key], baseline) for key in sorted(groups, key=_table_order)]
    if baseline is not None and not any(table.baseline for table in tables):
        raise UnknownName("baseline", baseline, {row.name for table in tables for row in table.rows}, "among these runs")
    return tuple(tables)


def _table_order(key: tuple[str, ...]) -> tuple[object, ...]:
    suite, protocol, text, setting, backbone = key
    order = ("unsupervised", "supervised", "none", "")
    return (suite not in COLUMNS, suite, order.index(setting), backbone, protocol, text != "tokenised", text)


def _table(key: tuple[str, ...], scored: Sequence[tuple[RunRecord, dict[str, Score]]], baseline: str | None) -> Table:
    suite, protocol, text, setting, backbone = key
    if not backbone:  # all together: what they share is still said once
        setting = _only({record.setting for record, _ in scored if record.setting != "none"} or {"none"})
        backbone = _only({record.backbone for record, _ in scored})
    tasks = _columns(suite, [scores for _, scores in scored])
    by_run = {record.run_id: _with_average(suite, scores) for record, scores in scored}
    has_average = suite in COLUMNS or any(AVERAGE in scores for scores in by_run.values())
    columns = tasks + ((AVERAGE,) if has_average else ())
    metrics = {task: score.metric for scores in by_run.values() for task, score in scores.items()}
    ranks = has_average or (len(columns) == 1 and metrics[columns[0]] not in LOWER_IS_BETTER)
    notes: list[str] = []
    rows = []
    for runs, differs in rows_of([record for record, _ in scored], notes):
        cells = tuple(_cell([by_run[run.run_id].get(column) for run in runs]) for column in columns)
        for column, cell in zip(columns, cells, strict=True):
            if cell is not None and len(cell.values) < len(runs):
                notes.append(f"{title(runs[0], differs)}: {column} from {len(cell.values)} of {len(runs)} seeds")
        first = runs[0]
        rows.append(Row(method=first.method, variant=first.variant, setting=first.setting, backbone=first.backbone,
                        differs=differs, runs=tuple(run.run_id for run in runs), seeds=tuple(run.seed for run in runs),
                        cells=cells))  # fmt: skip
    rows = sorted(_marked(rows, columns, metrics), key=_best_first if ranks else _by_name)
    untrained = dict.fromkeys(row.name for row in rows if row.setting == "none")
    if untrained and setting == "unsupervised":
        notes.insert(0, f"nothing trained: {', '.join(untrained)}")
    if falling := [column for column in columns if metrics.get(column) in LOWER_IS_BETTER]:
        notes.insert(0, f"lower is better: {', '.join(falling)}")
    table = Table(
        setting=setting or None,
        backbone=backbone or None,
        suite=suite,
        protocol=protocol,
        text=text or None,
        metric=", ".join(dict.fromkeys(metrics.values())),
        columns=columns,
        rows=tuple(rows),
        notes=tuple(notes),
    )
    return _against(table, baseline)  # fmt: skip


def _only(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 else ""


def _by_name(row: Row) -> tuple[object, ...]:
    return row.name, row.backbone, row.setting, row.differs


def _best_first(row: Row) -> tuple[object, ...]:
    average = row.cells[-1]
    return average is None, -average.mean if average else 0.0, *_by_name(row)


def _columns(suite: str, found: Iterable[Mapping[str, Score]]) -> tuple[str, ...]:
    seen = dict.fromkeys(task for scores in found for task in scores if task != AVERAGE)
    known = COLUMNS.get(suite, ())
    if not known:
        return tuple(seen)
    return known + tuple(task for task in seen if task not in known)


def _with_average(suite: str, scores: Mapping[str, Score]) -> dict[str, Score]:
    """With the suite's average as recorded, else as the papers take it: of the printed values, rounded again.

    Where a task is missing there is none, whatever the record says.
    """
    found = dict(scores)
    known = COLUMNS.get(suite)
    if known is None:
        return found
    stored = found.pop(AVERAGE, None)
    if all(task in found for task in known):
        mean = round(math.fsum(round(found[task].value, 2) for task in known) / len(known), 2)
        found[AVERAGE] = stored or replace(found[known[0]], task=AVERAGE, value=mean, n=sum(found[t].n for t in known), std=None)
    return found


def _cell(scores: Sequence[Score | None]) -> Cell | None:
    found = [score for score in scores if score is not None]
    if not found:
        return None
    values = tuple(score.value for score in found)
    sd = stdev(values) if len(values) > 1 else None
    return Cell(
        mean=math.fsum(values) / len(values), sd=sd, values=values, n=found[0].n, decimals=DECIMALS.get(found[0].metric, 2)
    )


def _marked(rows: list[Row], columns: Sequence[str], metrics: Mapping[str, str]) -> list[Row]:
    """Best and second of each column, by the printed value; equal ones share the mark. With one row there is nothing to mark."""
    marks: list[dict[float, str]] = []
    for i, column in enumerate(columns):
        printed = {round(cell.mean, cell.decimals) for row in rows if (cell := row.cells[i]) is not None}
        ordered = sorted(printed, reverse=metrics.get(column) not in LOWER_IS_BETTER)
        enough = sum(row.cells[i] is not None for row in rows)
        marks.append(dict(zip(ordered, ("best", "second")[: 0 if enough < 2 else 1 if enough < 3 else 2], strict=False)))
    return [
        replace(row, cells=tuple(
            cell and replace(cell, mark=marks[i].get(round(cell.mean, cell.decimals), "")) for i, cell in enumerate(row.cells)
        ))
        for row in rows
    ]  # fmt: skip


def _against(table: Table, baseline: str | None) -> Table:
    """With differences of the head column from the baseline's; of several such rows the one with the best average counts."""
    if baseline is None or table.head is None:
        return table
    named = [row for row in table.rows if baseline in (row.name, row.method) and row.cells[-1] is not None]
    exact = [row for row in named if row.name == baseline] or named
    if not exact or (base := exact[0].cells[-1]) is None:
        return table
    rows = tuple(
        replace(row, difference=round(row.cells[-1].mean, 2) - round(base.mean, 2) if row.cells[-1] else None,
                is_baseline=row is exact[0])
        for row in table.rows
    )  # fmt: skip
    return replace(table, rows=rows, baseline=exact[0].name)
