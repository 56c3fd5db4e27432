"""Records grouped into the tables that papers print: rows are methods, columns tasks, cells means
over seeds.

Two numbers meet in one column only under one suite and protocol. What makes two runs one
row is in :mod:`bench.compare.statistics.rows`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from bench.compare.statistics.rows import (
    RowRuns,
    by_protocol,
    group_rows,
    is_start,
    was_trained,
)
from bench.compare.statistics.table import (
    AVERAGE,
    COLUMNS,
    Cell,
    Row,
    Table,
)
from bench.records.names import protocol_text
from bench.records.record import SMALLER
from bench.score.suites import find_metric, name_average

if TYPE_CHECKING:
    from bench.records.record import RunRecord, Score


class Apart(NamedTuple):
    """What gives a run a table of its own; "" for what it shares with most runs."""

    budget: str = ""
    text: str = ""
    """The name of its training text."""


class Place(NamedTuple):
    """A table."""

    suite: str
    protocol: str
    setting: str
    backbone: str
    """Setting and backbone are "" if it mixes several."""
    apart: Apart


def summarise(
    records: Iterable[RunRecord],
    *,
    together: bool = False,
    tasks: Sequence[str] = (),
    apart: Mapping[str, Apart] | None = None,
) -> tuple[Table, ...]:
    """Group finished records into tables.

    Untrained runs go into the unsupervised tables of their backbone if there are some, as in the
    papers, of every length and text; if they fit something, into those of their text. Other
    untrained runs, such as finished encoders, share one table. The start of a method, a run
    without a step, is in the tables of its setting and backbone. ``together``: put all settings and
    backbones into one table. ``tasks``: only these columns; the table ranks by a single one.
    ``apart``: by run id, what gives runs tables of their own.
    """
    apart = apart or {}
    scored = []
    for record in records:
        if record.status == "finished":
            scored += [(key, record, scores) for key, scores in by_protocol(record).items()]
    trained: dict[Place, set[str | None]] = {}
    for key, record, _ in scored:
        if was_trained(record):
            own = apart.get(record.run_id, Apart())
            place = Place(*key, record.setting, record.backbone_name, own)
            trained.setdefault(place, set()).add(record.provenance.corpus.sha256)
    groups: dict[Place, list[tuple[RunRecord, dict[str, Score]]]] = {}
    for key, record, scores in scored:
        if tasks and not any(task in scores for task in tasks):
            continue
        own = apart.get(record.run_id, Apart())
        places = [Place(*key, "", "", own)] if together else _places(record, key, own, trained)
        for place in places:
            groups.setdefault(place, []).append((record, scores))
    return tuple(_table(place, groups[place], tasks) for place in sorted(groups, key=_table_order))


def _places(
    record: RunRecord,
    key: tuple[str, str],
    own: Apart,
    trained: Mapping[Place, set[str | None]],
) -> list[Place]:
    """Return the tables of a record's scores under one suite and protocol.

    ``trained``: the tables with trained rows, each with the texts that its rows were trained on.
    """
    if was_trained(record):
        return [Place(*key, record.setting, record.backbone_name, own)]
    setting = "unsupervised" if record.setting == "none" else record.setting
    text = None if is_start(record) else record.provenance.corpus.sha256
    places = []
    for place, texts in trained.items():
        is_alike = place[:4] == (*key, setting, record.backbone_name)
        is_near = own in (Apart(), place.apart) and (text is None or text in texts)
        if is_alike and is_near:
            places.append(place)
    if places:
        return places
    if is_start(record):
        return [Place(*key, record.setting, record.backbone_name, own)]
    return [Place(*key, "none", "", own)]


def _table_order(place: Place) -> tuple[object, ...]:
    suite, protocol, setting, backbone, apart = place
    return (
        apart,
        suite not in COLUMNS,
        suite,
        ("unsupervised", "supervised", "none", "").index(setting),
        backbone,
        bool(protocol_text(protocol)),
        protocol,
    )


def _table(
    place: Place,
    scored: Sequence[tuple[RunRecord, dict[str, Score]]],
    wanted: Sequence[str],
) -> Table:
    suite, protocol, setting, backbone, apart = place
    if not backbone:
        # it has several backbones: the title still names a setting or backbone that all share
        settings = {record.setting for record, _ in scored if record.setting != "none"}
        setting = _only(settings or {"none"})
        backbone = _only({record.backbone_name for record, _ in scored})
    by_run = {record.run_id: _with_average(suite, scores) for record, scores in scored}
    columns = _columns(suite, by_run.values(), wanted)
    metrics = {
        task: find_metric(suite, score.metric)
        for scores in by_run.values()
        for task, score in scores.items()
    }
    falling = tuple(
        name for name in columns if name in metrics and not metrics[name].higher_is_better
    )

    grouped = group_rows([record for record, _ in scored])
    rows = [_row(row_runs, columns, by_run) for row_runs in grouped]
    if setting == "none":  # every row is a ready-made encoder, which its own name tells best
        encoders = [row_runs.runs[0].evaluated_as for row_runs in grouped]
        rows = [replace(row, model=name) for row, name in zip(rows, encoders, strict=True)]
    if any(SMALLER & record.recipe.keys() for record, _ in scored):
        sizes = [_vector_bytes(row_runs.runs[0]) for row_runs in grouped]
        rows = [replace(row, vector_bytes=size) for row, size in zip(rows, sizes, strict=True)]
    notes = []
    if falling:
        notes.append(f"lower is better: {', '.join(falling)}")
    holds = name_average(suite, protocol)
    if AVERAGE in columns and holds:
        notes.append(f"{AVERAGE} is the mean of {holds}")
    table = Table(
        setting=setting or None,
        backbone=backbone or None,
        suite=suite,
        protocol=protocol,
        metric=", ".join(dict.fromkeys(metric.name for metric in metrics.values())),
        columns=columns,
        rows=tuple(_marked(rows, columns, falling)),
        notes=tuple(notes),
        budget=apart.budget,
        text=apart.text,
        falling=falling,
    )
    order = _best_first if table.head else _by_name
    return replace(table, rows=tuple(sorted(table.rows, key=order)))


def _columns(
    suite: str, scored: Collection[Mapping[str, Score]], wanted: Sequence[str]
) -> tuple[str, ...]:
    """List the tasks, then the average if there is one; only ``wanted`` ones if any are named."""
    columns = dict.fromkeys(COLUMNS.get(suite, ()))
    for scores in scored:
        columns |= dict.fromkeys(task for task in scores if task != AVERAGE)
    if suite in COLUMNS or any(AVERAGE in scores for scores in scored):
        columns[AVERAGE] = None
    return tuple(column for column in columns if not wanted or column in wanted)


def _vector_bytes(record: RunRecord) -> int | None:
    """Return the bytes of a vector, of float32 if nothing else is recorded; None if its dimension
    is not known.
    """
    model = record.provenance.backbone.model or {}
    size, dimension = model.get("vector_bytes"), model.get("dimension")
    if isinstance(size, int):
        return size
    return 4 * dimension if isinstance(dimension, int) else None


def _row(
    row_runs: RowRuns, columns: Sequence[str], by_run: Mapping[str, Mapping[str, Score]]
) -> Row:
    """Make the row of these runs. ``by_run``: run id -> its scores by column."""
    runs = row_runs.runs
    first = runs[0]
    return Row(
        method=first.method,
        variant=first.variant,
        setting=first.setting,
        backbone=first.backbone_name,
        differs=row_runs.differs,
        is_fitted=not is_start(first)
        and (first.training is not None or first.provenance.corpus.sha256 is not None),
        is_start=is_start(first),
        runs=tuple(run.run_id for run in runs),
        seeds=tuple(run.seed for run in runs),
        cells=tuple(
            _cell({run.seed: by_run[run.run_id].get(column) for run in runs}) for column in columns
        ),
        model=first.model_name,
        other_code=row_runs.other_code,
        older=row_runs.older,
    )


def _only(names: set[str]) -> str:
    return next(iter(names)) if len(names) == 1 else ""


def _by_name(row: Row) -> tuple[object, ...]:
    return row.name, row.backbone, row.setting, row.differs, row.is_start


def _best_first(row: Row) -> tuple[object, ...]:
    average = row.cells[-1]
    return average is None, -average.mean if average else 0.0, *_by_name(row)


def _with_average(suite: str, scores: Mapping[str, Score]) -> dict[str, Score]:
    """Keep the recorded average of the suite only if every task is there."""
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
        decimals=find_metric(first.suite, first.metric).decimals,
        beside=_beside([score.beside for score in known.values()]),
    )


def _beside(details: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean over seeds of each further number that all records have."""
    names = [name for name in details[0] if all(name in numbers for numbers in details)]
    return {name: fmean(numbers[name] for numbers in details) for name in names}


def _marked(rows: list[Row], columns: Sequence[str], falling: Sequence[str]) -> list[Row]:
    """Mark best and second of each column by the printed value; equal values share a mark.

    A single row is not marked.
    """
    cells = [list(row.cells) for row in rows]
    for i, column in enumerate(columns):
        values = []
        for row in rows:
            cell = row.cells[i]
            if cell is not None:
                values.append(cell.rounded)
        ordered = sorted(set(values), reverse=column not in falling)
        # two values have a best one, three also a second
        names = ("best", "second")[: max(0, len(values) - 1)]
        marks = dict(zip(ordered, names, strict=False))
        for row_cells in cells:
            own = row_cells[i]
            if own is not None:
                row_cells[i] = replace(own, mark=marks.get(own.rounded, ""))
    marked = []
    for row, row_cells in zip(rows, cells, strict=True):
        marked.append(replace(row, cells=tuple(row_cells)))
    return marked
