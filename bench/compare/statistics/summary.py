"""Groups records into the tables that papers print: rows are methods, columns tasks, cells means over seeds.

Two numbers meet in one column only under one suite, protocol and text form. Runs share a row only when nothing but the seed
differs: another recipe value, corpus or backbone revision makes another row, which names what differs; of runs of the method's
older code a footnote says how to see them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, UnknownName
from bench.compare.statistics.table import (
    AVERAGE,
    BASELINE,
    COLUMNS,
    DECIMALS,
    LOWER_IS_BETTER,
    SENDER,
    Against,
    Cell,
    Footnote,
    Row,
    Table,
    by_protocol,
    rows_of,
    title,
)

if TYPE_CHECKING:
    from bench.runs.record import RunRecord, Score


def summarise(
    records: Iterable[RunRecord], *, together: bool = False, tasks: Sequence[str] = ()
) -> tuple[Table, ...]:
    """The tables that the finished ones among ``records`` make.

    Runs in which nothing was trained stand in the unsupervised table of their backbone where there is one, as in the papers; the
    others, such as finished encoders, stand in one table.
    ``together``: all settings and backbones in one table. ``tasks``: only these columns; a single one is what the table ranks by.
    """
    finished = [record for record in records if record.status == "finished"]
    scored = [
        (key, record, scores) for record in finished for key, scores in by_protocol(record).items()
    ]
    trained = {
        (key, record.backbone_name) for key, record, _ in scored if record.setting == "unsupervised"
    }
    groups: dict[tuple[str, ...], list[tuple[RunRecord, dict[str, Score]]]] = {}
    for key, record, scores in scored:
        if tasks and not any(task in scores for task in tasks):
            continue
        place = ("", "") if together else (record.setting, record.backbone_name)
        if not together and record.setting == "none":
            place = (
                ("unsupervised", record.backbone_name)
                if (key, record.backbone_name) in trained
                else ("none", "")
            )
        groups.setdefault((*key, *place), []).append((record, scores))
    return tuple(_table(key, groups[key], tasks) for key in sorted(groups, key=_table_order))


def _table_order(key: tuple[str, ...]) -> tuple[object, ...]:
    suite, protocol, text, setting, backbone = key
    order = ("unsupervised", "supervised", "none", "")
    return (
        suite not in COLUMNS,
        suite,
        order.index(setting),
        backbone,
        protocol,
        text != "tokenised",
        text,
    )


def _table(
    key: tuple[str, ...],
    scored: Sequence[tuple[RunRecord, dict[str, Score]]],
    wanted: Sequence[str],
) -> Table:
    suite, protocol, text, setting, backbone = key
    if not backbone:  # of several backbones: what they share is still said once
        setting = _only(
            {record.setting for record, _ in scored if record.setting != "none"} or {"none"}
        )
        backbone = _only({record.backbone_name for record, _ in scored})
    tasks = _columns(suite, [scores for _, scores in scored])
    by_run = {record.run_id: _with_average(suite, scores) for record, scores in scored}
    has_average = suite in COLUMNS or any(AVERAGE in scores for scores in by_run.values())
    columns = tasks + ((AVERAGE,) if has_average else ())
    columns = tuple(column for column in columns if not wanted or column in wanted)
    metrics = {task: score.metric for scores in by_run.values() for task, score in scores.items()}
    ranks = columns[-1:] == (AVERAGE,) or (
        len(columns) == 1 and metrics[columns[0]] not in LOWER_IS_BETTER
    )
    notes: list[str] = []
    rows, footnotes = list[Row](), list[Footnote]()
    for runs, differs, other_code in rows_of([record for record, _ in scored], notes):
        first = runs[0]
        cells = tuple(
            _cell({run.seed: by_run[run.run_id].get(column) for run in runs}) for column in columns
        )
        for column, cell in zip(columns, cells, strict=True):
            if cell is not None and len(cell.values) < len(runs):
                notes.append(
                    f"{title(first, differs)}: {column} from {len(cell.values)} of {len(runs)} seeds"
                )
        rows.append(
            Row(
                method=first.method,
                variant=first.variant,
                setting=first.setting,
                backbone=first.backbone_name,
                differs=differs,
                runs=tuple(run.run_id for run in runs),
                seeds=tuple(run.seed for run in runs),
                cells=cells,
                model=first.model_name,
                footnotes=(len(footnotes),) if other_code else (),
            )
        )
        footnotes += [other_code] if other_code else []
    rows = sorted(_marked(rows, columns, metrics), key=_best_first if ranks else _by_name)
    untrained = dict.fromkeys(row.name for row in rows if row.setting == "none")
    if untrained and setting == "unsupervised":
        notes.insert(0, f"encoder not trained: {', '.join(untrained)}")
    if falling := [column for column in columns if metrics.get(column) in LOWER_IS_BETTER]:
        notes.insert(0, f"lower is better: {', '.join(falling)}")
    return Table(
        setting=setting or None,
        backbone=backbone or None,
        suite=suite,
        protocol=protocol,
        text=text or None,
        metric=", ".join(dict.fromkeys(metrics.values())),
        columns=columns,
        rows=tuple(rows),
        notes=tuple(notes),
        footnotes=tuple(footnotes),
    )


def _only(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 else ""


def _by_name(row: Row) -> tuple[object, ...]:
    return row.name, row.backbone, row.setting, row.differs


def _best_first(row: Row) -> tuple[object, ...]:
    average = row.cells[-1]
    return average is None, -average.mean if average else 0.0, *_by_name(row)


def _columns(suite: str, scored: Iterable[Mapping[str, Score]]) -> tuple[str, ...]:
    seen = dict.fromkeys(task for scores in scored for task in scores if task != AVERAGE)
    known = COLUMNS.get(suite, ())
    return known + tuple(task for task in seen if task not in known)


def _with_average(suite: str, scores: Mapping[str, Score]) -> dict[str, Score]:
    """With the suite's average as recorded; where a task is missing there is none, whatever the record says."""
    whole = all(task in scores for task in COLUMNS.get(suite, ()))
    return {task: score for task, score in scores.items() if whole or task != AVERAGE}


def _cell(by_seed: Mapping[int | None, Score | None]) -> Cell | None:
    known = {seed: score for seed, score in by_seed.items() if score is not None}
    if not known:
        return None
    first, *others = known.values()
    values = tuple(score.value for score in known.values())
    return Cell(
        mean=fmean(values),
        sd=stdev(values) if others else None,
        values=values,
        seeds=tuple(known),
        n=first.n,
        decimals=DECIMALS.get(first.metric, 2),
    )


def _marked(rows: list[Row], columns: Sequence[str], metrics: Mapping[str, str]) -> list[Row]:
    """Best and second of each column, by the printed value; equal ones share the mark. With one row there is nothing to mark."""
    cells = [list(row.cells) for row in rows]
    for i, column in enumerate(columns):
        values = [cell.rounded for row in rows if (cell := row.cells[i]) is not None]
        ordered = sorted(set(values), reverse=metrics.get(column) not in LOWER_IS_BETTER)
        marks = dict(zip(ordered, ("best", "second")[: max(0, len(values) - 1)], strict=False))
        for row_cells in cells:
            if (cell := row_cells[i]) is not None:
                row_cells[i] = replace(cell, mark=marks.get(cell.rounded, ""))
    return [
        replace(row, cells=tuple(row_cells)) for row, row_cells in zip(rows, cells, strict=True)
    ]


def with_baseline(tables: Sequence[Table], baseline: str | None) -> list[Table]:
    """The tables with differences from a method or ``method+variant``; without one, from the row ``simcse`` of each. Raises UnknownName
    where no table has it, BenchError where it means several rows of a table."""
    made = [against(table, baseline) for table in tables]
    if baseline is not None and not any(table.baseline for table in made):
        names = {row.name for table in tables for row in table.rows}
        raise UnknownName("baseline", baseline, names, "among these runs")
    return made


def against(table: Table, baseline: str | None) -> Table:
    """With differences from the baseline's cells, as printed. The table itself where it has no such row.

    The baseline is fixed before the scores: the one row that is called so; without a name, the row ``simcse``, if there is exactly one
    without a variant. Raises BenchError where the name means several rows.
    """
    base = _default(table) if baseline is None else _named(table, baseline)
    if base is None:
        return table
    rows = [
        replace(row, is_baseline=True)
        if row is base
        else replace(row, cells=tuple(map(_less, row.cells, base.cells)))
        for row in table.rows
    ]
    alone = table.backbone is not None or sum(row.name == base.name for row in table.rows) == 1
    name = base.name if alone else f"{base.name} {base.backbone}"
    return replace(table, rows=tuple(rows), baseline=name)


def _default(table: Table) -> Row | None:
    rows = [row for row in _candidates(table) if row.name == BASELINE]
    return rows[0] if len(rows) == 1 else None


def _named(table: Table, name: str) -> Row | None:
    rows = _candidates(table)
    for names_of in (
        lambda row: row.runs,
        _full_names,
        lambda row: (row.name,),
        lambda row: (row.method, row.backbone),
    ):
        named = [row for row in rows if name in names_of(row)]
        if len(named) == 1:
            return named[0]
        if named:
            names = sorted({max(_full_names(row), key=len) for row in named})
            raise BenchError(
                f"--baseline: {name} is {len(named)} rows of {table.suite}",
                "name one: " + "; ".join(map(shlex.quote, names)),
            )
    return None


def _candidates(table: Table) -> list[Row]:
    """Rows with a value; one that was sent in only where the table has no other of its name."""
    rows = [row for row in table.rows if any(row.cells)]
    ours = {row.name for row in rows if SENDER not in dict(row.differs)}
    return [row for row in rows if row.name not in ours or SENDER not in dict(row.differs)]


def _full_names(row: Row) -> tuple[str, ...]:
    """ "simcse learning_rate=1e-05", "simcse builtin", "simcse learning_rate=1e-05 builtin" """
    differs = " ".join([row.name, *(f"{key}={value}" for key, value in row.differs)])
    names = (f"{row.name} {row.backbone}", f"{differs} {row.backbone}")
    return (*names, differs) if row.differs else names


def _less(cell: Cell | None, base: Cell | None) -> Cell | None:
    if cell is None or base is None:
        return cell
    return replace(cell, against=Against(difference=cell.rounded - round(base.mean, cell.decimals)))
