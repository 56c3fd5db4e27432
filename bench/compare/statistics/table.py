"""A table of scores: which runs share a row, which scores a table, and what a cell holds. Every form of output draws these.

Records are grouped into the tables that papers print: rows are methods, columns tasks, cells means over seeds. Two numbers meet in
one column only under one suite, protocol and text form. What makes two runs one row is in :mod:`bench.compare.statistics.rows`.
"""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING

from bench.base.errors import BenchError, UnknownName
from bench.compare.statistics.rows import (
    CODE,
    UNKNOWN_CODE,
    Differs,
    KnownCode,
    group_rows,
    title,
)
from bench.compare.statistics.spread import sample_sd

if TYPE_CHECKING:
    from bench.records.record import RunRecord, Score

# --- which scores share a table ---


AVERAGE = "Avg."
BASELINE = "simcse"
"""The row that others are compared with where no baseline is named."""


def by_protocol(record: RunRecord) -> dict[tuple[str, str, str], dict[str, Score]]:
    """(suite, protocol, text form) -> task -> score: what may stand side by side.

    Each set of a third tokenisation has a form of its own ("other-" and a hash), and a set in which there was nothing to split
    a known one; they belong together, under the name of their average's form.
    """
    groups: dict[tuple[str, str, str], dict[str, Score]] = {}
    for score in record.scores:
        groups.setdefault((score.suite, score.protocol, score.text or ""), {})[score.task] = score
    for suite, protocol in {key[:2] for key in groups}:
        others = [
            key for key in groups if key[:2] == (suite, protocol) and key[2].startswith("other-")
        ]
        if not others:
            continue
        mixed = {task: score for key in others for task, score in groups.pop(key).items()}
        for key in [
            key for key in groups if key[:2] == (suite, protocol) and AVERAGE not in groups[key]
        ]:
            mixed = groups.pop(key) | mixed
        forms = "\n".join(f"{task} {score.text}" for task, score in sorted(mixed.items()))
        name = mixed[AVERAGE].text if AVERAGE in mixed else None
        groups[
            suite, protocol, name or f"other-{hashlib.sha256(forms.encode()).hexdigest()[:8]}"
        ] = mixed
    return groups


def prediction_hashes(scores: Mapping[str, Score]) -> tuple[tuple[str, str], ...] | None:
    """(task, hash of the predictions) of every task; None where one was not recorded."""
    hashes = [
        (task, score.predictions_sha256)
        for task, score in sorted(scores.items())
        if task != AVERAGE
    ]
    known = tuple((task, sha256) for task, sha256 in hashes if sha256 is not None)
    return known if known and len(known) == len(hashes) else None


# --- what a table holds: numbers, and what is known of how sure they are ---


# as the papers print them; tasks of other suites keep the order of their record
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sts": ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
}
# of metrics, which every record names: a Score has no field for its direction
LOWER_IS_BETTER = ("alignment", "uniformity")
DECIMALS = {"alignment": 3, "uniformity": 3}  # as printed; 2 for all others
ALPHA = 0.05
BETTER, WORSE, INCONCLUSIVE = "better", "worse", "inconclusive"


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The 95 % interval of a cell's mean."""

    low: float
    high: float
    covers: str  # "items and seeds", "items" or "seeds": what else might have been there
    se: float
    level: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Against:
    """A cell minus the baseline's cell. Only the column that ranks is tested; elsewhere there is the difference alone."""

    difference: float
    se: float | None = None
    df: float | None = None  # None: infinite
    ci_low: float | None = None
    ci_high: float | None = None
    ci_level: float | None = (
        None  # that at which the interval leaves zero out where there is a verdict
    )
    p: float | None = None  # of this comparison alone, two-sided
    verdict: str | None = None  # BETTER, WORSE or INCONCLUSIVE; None: not tested
    mde: float | None = (
        None  # the smallest difference found with 80 % power (minimal detectable effect)
    )


@dataclass(frozen=True, kw_only=True)
class Printed:
    """What a paper printed for a cell."""

    value: float
    std: float | None
    source: str  # "promcse:1": paper and table
    own: bool  # False: the paper quotes somebody else
    difference: float  # ours minus the paper's
    inside: bool | None  # of the 95 % prediction interval (bench.compare.printed); None: not tested
    half: float | None = None  # of that interval's width
    reason: str = ""  # why it is not tested
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a row took, each a mean over its runs; None where not all of them recorded it."""

    trainable_parameters: float | None = None
    trainable_parts: Mapping[str, float] | None = (
        None  # of the same parts in all runs: "prompt" -> how many of them
    )
    train_seconds: float | None = None
    peak_memory_bytes: float | None = None
    tuning_seconds: float | None = (
        None  # of all trials of the search that found the values; None: none did
    )
    tuning_trials: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One method on one task."""

    mean: float  # over seeds
    sd: float | None  # over seeds, divided by n - 1; None with one seed
    values: tuple[float, ...]  # one per run, in the order of the row's runs
    seeds: tuple[int | None, ...] = ()  # of these runs
    n: int  # items scored
    mark: str = ""  # "best", "second" or ""
    decimals: int = 2  # that are printed, and that a mark goes by
    spread: Spread | None = None
    against: Against | None = None
    printed: Printed | None = None

    @property
    def rounded(self) -> float:
        """The mean as it is shown."""
        return round(self.mean, self.decimals)


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
    is_baseline: bool = False
    may_be_best: bool = False  # on the head column; the only thing that is shaded or marked
    untested: str = ""  # why it takes no part in the tests; "" where it does
    cost: Cost | None = None  # None: not asked for
    footnotes: tuple[int, ...] = ()  # places in the table's ``footnotes``
    values: str = ""  # where its values come from: "paper", "recipe", "tuned: 12 trials"; "" where nothing is trained
    model: str = ""  # the name of an evaluated object, of vectors or of a server, which stands in the place of a method

    @property
    def label(self) -> str:
        """What stands first in the row."""
        return self.model or self.method

    @property
    def name(self) -> str:
        return f"{self.label}+{self.variant}" if self.variant else self.label


@dataclass(frozen=True, kw_only=True)
class Tested:
    """The one family of tests of a table: the head column of the rows that could be tested."""

    rows: int  # tested, the baseline among them
    comparisons: int  # with the baseline; without one, of each row with the best
    ci_level: float  # of the intervals of differences
    alpha: float = ALPHA


@dataclass(frozen=True)
class Footnote:
    """A setting in which some rows differ from the others of their table."""

    setting: str
    value: str
    rows: str  # their names, with seeds where not all of a row differ
    most: str = ""  # what most rows have

    def __str__(self) -> str:
        more = f"; {self.most} in most rows" if self.most else ""
        return f"{self.setting}: {self.value} in {self.rows}{more}"


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
    footnotes: tuple[Footnote, ...] = ()  # differences between its runs; rows point to them
    tested: Tested | None = None  # None: nothing was tested
    chosen_on: str = (
        ""  # the set on which its checkpoints were chosen, where that is no development set
    )
    budget: str = ""  # how long its rows were trained, where most runs have another budget
    sender: str = ""  # who submitted all of its runs; "" for the publisher's own
    together: bool = False  # of all settings and backbones

    @property
    def head(self) -> str | None:
        """The column that ranks: the average, or the only task (where more is better)."""
        single = len(self.columns) == 1 and self.metric not in LOWER_IS_BETTER
        return self.columns[-1] if self.columns[-1:] == (AVERAGE,) or single else None

    @property
    def seeds(self) -> tuple[int, int]:
        """Fewest and most seeds of a row in which something is random; of all rows where there is no such row."""
        random = [row for row in self.rows if row.seeds != (None,)] or self.rows
        counts = [self.n(row) for row in random]
        return min(counts), max(counts)

    @cached_property
    def kinds_of_values(self) -> Counter[str]:
        """Where the values of trained rows come from -> how many rows."""
        return Counter(row.values for row in self.rows if row.values and row.setting != "none")

    @cached_property
    def has_verdicts(self) -> bool:
        """Say if a row was compared with the baseline on the column that ranks."""
        cells = [row.cells[-1] for row in self.rows]
        return any(cell and cell.against and cell.against.verdict for cell in cells)

    def n(self, row: Row) -> int:
        """Seeds behind the row's value in the column that ranks, where it has one."""
        cell = row.cells[-1] if self.head is not None else None
        return len(row.runs) if cell is None else len(cell.values)


# --- records, grouped into tables ---


def summarise(
    records: Iterable[RunRecord],
    *,
    together: bool = False,
    tasks: Sequence[str] = (),
    beside: Iterable[RunRecord] = (),
    code: KnownCode = UNKNOWN_CODE,
) -> tuple[Table, ...]:
    """The tables that the finished ones among ``records`` make.

    Runs in which nothing was trained stand in the unsupervised table of their backbone where there is one, as in the papers; the
    others, such as finished encoders, stand in one table.
    ``together``: all settings and backbones in one table. ``tasks``: only these columns; a single one is what the table ranks by.
    ``beside``: records that are in none of these tables, but for which there may be an unsupervised table of the same backbone.
    ``code``: what is known of the methods' code on this machine.
    """
    scored = [
        (key, record, scores)
        for record in records
        if record.status == "finished"
        for key, scores in by_protocol(record).items()
    ]
    trained = {
        (key, record.backbone_name) for key, record, _ in scored if record.setting == "unsupervised"
    }
    for record in beside:
        if record.status == "finished" and record.setting == "unsupervised":
            trained |= {(key, record.backbone_name) for key in by_protocol(record)}
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
    made = [_table(key, groups[key], tasks, code) for key in sorted(groups, key=_table_order)]
    return tuple(replace(table, together=together) for table in made)


def _table_order(key: tuple[str, ...]) -> tuple[object, ...]:
    suite, protocol, text, setting, backbone = key
    return (
        suite not in COLUMNS,
        suite,
        ("unsupervised", "supervised", "none", "").index(setting),
        backbone,
        protocol,
        text != "tokenised",
        text,
    )


def _table(
    key: tuple[str, ...],
    scored: Sequence[tuple[RunRecord, dict[str, Score]]],
    wanted: Sequence[str],
    code: KnownCode,
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
    columns = tuple(
        column
        for column in (*tasks, *((AVERAGE,) if has_average else ()))
        if not wanted or column in wanted
    )
    metrics = {task: score.metric for scores in by_run.values() for task, score in scores.items()}
    ranks = columns[-1:] == (AVERAGE,) or (
        len(columns) == 1 and metrics[columns[0]] not in LOWER_IS_BETTER
    )
    notes: list[str] = []
    rows, footnotes = list[Row](), list[Footnote]()
    for row_runs in group_rows([record for record, _ in scored], notes, code):
        runs, differs, first = row_runs.runs, row_runs.differs, row_runs.runs[0]
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
                footnotes=(len(footnotes),) if row_runs.other_code else (),
            )
        )
        if row_runs.other_code:
            footnotes.append(Footnote(CODE, row_runs.other_code, title(first, differs)))
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
    seen = (task for scores in scored for task in scores if task != AVERAGE)
    return tuple(dict.fromkeys((*COLUMNS.get(suite, ()), *seen)))


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
        sd=sample_sd(values) if others else None,
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
        raise UnknownName(
            "baseline",
            baseline,
            {row.name for table in tables for row in table.rows},
            "among these runs",
        )
    return made


def against(table: Table, baseline: str | None) -> Table:
    """With differences from the baseline's cells, as printed. The table itself where it has no such row.

    The baseline is fixed before the scores: the one row that is called so; without a name, the row ``simcse``, if there is exactly one
    without a variant. Raises BenchError where the name means several rows.
    """
    base = _default(table) if baseline is None else _named(table, baseline)
    if base is None:
        return table
    alone = table.backbone is not None or sum(row.name == base.name for row in table.rows) == 1
    return replace(
        table,
        rows=tuple(
            replace(row, is_baseline=True)
            if row is base
            else replace(row, cells=tuple(map(_less, row.cells, base.cells)))
            for row in table.rows
        ),
        baseline=base.name if alone else f"{base.name} {base.backbone}",
    )


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
                f"--baseline: {name} matches {len(named)} rows of {table.suite}",
                "choose one: " + "; ".join(map(shlex.quote, names)),
            )
    return None


def _candidates(table: Table) -> list[Row]:
    """Rows with a value."""
    return [row for row in table.rows if any(row.cells)]


def _full_names(row: Row) -> tuple[str, ...]:
    """ "simcse learning_rate=1e-05", "simcse builtin", "simcse learning_rate=1e-05 builtin" """
    differs = " ".join([row.name, *(f"{key}={value}" for key, value in row.differs)])
    names = (f"{row.name} {row.backbone}", f"{differs} {row.backbone}")
    return (*names, differs) if row.differs else names


def _less(cell: Cell | None, base: Cell | None) -> Cell | None:
    if cell is None or base is None:
        return cell
    return replace(cell, against=Against(difference=cell.rounded - round(base.mean, cell.decimals)))
