"""Our score and a printed value: would as many new runs as the paper had give the printed one?

The items are the paper's own, so only seeds vary. The mean of our seeds has a 95 %
prediction interval for the mean of as many runs as the paper had: half of it is t * SD * sqrt(1 /
n_ours + 1 / n_paper), with the SD over seeds pooled over the rows that were scored on the same
task, and t with the degrees of freedom of that SD. With the print inside, ours is *within*;
else it is *below* or *above*; and if no spread is known the cell is *not tested*, with the reason.
Used by ``bench compare --with-paper``, ``--paper`` and the pages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

import msgspec

from bench.base.text import list_names
from bench.compare.consistency import NOT_TESTED, PrintVerdict, judge_print, pooled_sd
from bench.compare.statistics.table import Cell, Printed, Row, Table
from bench.compare.words.names import row_name
from bench.data.sets.sts import STS_TASKS
from bench.papers import (
    AVERAGE,
    DEV,
    SUITES,
    UNKNOWN,
    WEIGHTED,
    WHOLE,
    ReferenceResult,
    RunTerms,
    find_checkpoint,
    find_printed,
    meaning,
)
from bench.papers.remarks import remarks
from bench.records.names import OWN_DATA, protocol_text
from bench.records.record import RunRecord, Score, ScoreKey, is_given_by_user
from bench.score.metrics.metric import metric_named

DEV_SET = "STS-B dev"


def score_of(record: RunRecord, cell: ReferenceResult) -> Score | None:
    """Find our score for a printed value, under its protocol.

    If the paper's is not known, any protocol counts that has the papers' texts.
    """
    if cell.metric == DEV:
        return _dev_score(record)
    if cell.protocol == WEIGHTED:
        return _weighted_score(record, cell)
    for score in record.scores:
        if (score.suite, score.task) != (SUITES[cell.metric], cell.task):
            continue
        if score.protocol == cell.protocol:
            return score
        if cell.protocol == UNKNOWN and not protocol_text(score.protocol):
            return score
    return None


def _weighted_score(record: RunRecord, cell: ReferenceResult) -> Score | None:
    """Return Spearman's correlation within each sub-dataset, weighted by size: a detail of the
    score over all pairs. "Avg." is the mean over the tasks, and missing if one of them is missing.
    """
    whole = replace(cell, protocol=WHOLE)
    average = score_of(record, whole)
    tasks = STS_TASKS if cell.task == AVERAGE else (cell.task,)
    scores = [score_of(record, replace(whole, task=task)) for task in tasks]
    known = []
    for score in scores:
        value = None if score is None else score.detail.get("wmean")
        if isinstance(value, int | float):
            known.append(float(value))
    if average is None or len(known) < len(tasks):
        return None
    return msgspec.structs.replace(
        average, protocol=WEIGHTED, value=fmean(known), predictions_sha256=None
    )


def _dev_score(record: RunRecord) -> Score | None:
    """Return the score of the selected checkpoint, on the set that selected it."""
    trained = record.training
    if trained is None or trained.dev_score is None or trained.dev_task != DEV_SET:
        return None
    return Score(
        suite=SUITES[DEV],
        task=DEV_SET,
        protocol="stsb-dev/1",
        metric=DEV,
        value=trained.dev_score,
        n=trained.dev_pairs or 1500,
    )


@dataclass(frozen=True)
class Beside:
    """Cells of one printed row, and our finished runs of it, one per seed. ``why_not``: why they
    are not meant to be the paper's."""

    cells: Sequence[ReferenceResult]
    records: Sequence[RunRecord]
    why_not: str = ""


@dataclass(frozen=True, kw_only=True)
class Reproduced(PrintVerdict):
    """One printed value, and its use in the table."""

    printed: ReferenceResult
    mean: float | None = None  # over our seeds
    seeds: tuple[int | None, ...] = ()
    runs: tuple[str, ...] = ()
    protocol: str | None = None  # of ours
    notes: tuple[str, ...] = ()  # the audit's remarks on the published value

    @property
    def decimals(self) -> int:
        return metric_named(self.printed.metric).decimals


Scored = Sequence[tuple[RunRecord, Score]]


def judge_rows(rows: Sequence[Beside]) -> list[list[Reproduced]]:
    """Compare every printed cell of these rows.

    Spreads are pooled over all rows that were scored on the same task, each run once."""
    scored = [[_scored(row, cell) for cell in row.cells] for row in rows]
    samples: dict[ScoreKey, dict[tuple[str, ...], list[float]]] = {}
    for of_cell in chain.from_iterable(scored):
        if not of_cell:
            continue
        first_record, first_score = of_cell[0]
        if first_record.seed is None:
            continue
        runs = tuple(record.run_id for record, _ in of_cell)
        samples.setdefault(first_score.key, {})[runs] = [score.value for _, score in of_cell]
    spreads = {key: pooled_sd(values.values()) for key, values in samples.items()}
    return [
        [
            _reproduced(cell, of_cell, spreads, row.why_not)
            for cell, of_cell in zip(row.cells, cells, strict=True)
        ]
        for row, cells in zip(rows, scored, strict=True)
    ]


def _scored(row: Beside, cell: ReferenceResult) -> Scored:
    """Return the records of a row that have a score for a printed cell, each with the score."""
    scored = []
    for record in row.records:
        score = score_of(record, cell)
        if score is not None:
            scored.append((record, score))
    return scored


def _reproduced(
    cell: ReferenceResult,
    scored: Scored,
    spreads: Mapping[ScoreKey, tuple[float, float]],
    why_not: str,
) -> Reproduced:
    notes = tuple(remark.text for remark in remarks(cell) if remark.kind not in ("differs", "same"))
    if not scored:
        return Reproduced(
            printed=cell,
            verdict=NOT_TESTED,
            reason="no finished run of ours has this score",
            notes=notes,
        )
    record, first = scored[0]
    spread = (0.0, math.inf) if record.seed is None else spreads[first.key]
    mean = fmean(score.value for _, score in scored)
    return Reproduced(
        **vars(judge_print(mean, len(scored), cell, spread, why_not)),
        printed=cell,
        mean=mean,
        seeds=tuple(record.seed for record, _ in scored),
        runs=tuple(record.run_id for record, _ in scored),
        protocol=first.protocol,
        notes=notes,
    )


def with_paper(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """Return the table with the printed value in each cell that a paper has one for.

    A note names the rows without any. Only numbers of the table's own protocol are taken. Untrained
    starts get none: papers print trained rows.
    """
    trained = [row for row in table.rows if not row.is_start]
    pooled = []
    for i in range(len(table.columns)):
        samples = []
        for row in trained:
            cell = row.cells[i]
            if row.seeds[0] is not None and cell is not None:
                samples.append(cell.values)
        pooled.append(pooled_sd(samples))
    rows = []
    missing = []
    for row in table.rows:
        if row.is_start:
            rows.append(row)
            continue
        spreads = pooled if row.seeds[0] is not None else [(0.0, math.inf)] * len(pooled)
        cells = tuple(
            cell and _with_print(cell, task, row, table, records[row.runs[0]], spread)
            for task, cell, spread in zip(table.columns, row.cells, spreads, strict=True)
        )
        rows.append(replace(row, cells=cells))
        if not any(cell and cell.printed for cell in cells):
            missing.append(row_name(row, table))
    notes = _untested(rows, table)
    if table.suite == OWN_DATA:
        notes.append("no published number: no paper has scores on own files")
    elif missing:
        of = ""
        if len(missing) < len(trained):
            of = f": {list_names(dict.fromkeys(missing), most=10)}"
        notes.append(f"no published number for this backbone and protocol{of}")
    return replace(table, rows=tuple(rows), notes=(*table.notes, *notes))


def _untested(rows: Sequence[Row], table: Table) -> list[str]:
    """Return a note for each reason why rows are not tested against the print."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        for cell in row.cells:
            if cell and cell.printed and cell.printed.reason:
                names.setdefault(cell.printed.reason, {})[row_name(row, table)] = None
    return [
        f"not compared with the published value: {list_names(named, most=10)} ({reason})"
        for reason, named in names.items()
    ]


def _with_print(
    cell: Cell, task: str, row: Row, table: Table, record: RunRecord, spread: tuple[float, float]
) -> Cell:
    recipe = {key: value.value for key, value in record.recipe.items()}
    run = RunTerms(row.method, row.setting, record.backbone, row.variant, recipe)
    printed = find_printed(run, task, suite=table.suite, protocol=table.protocol)
    # the protocol of a print on unknown texts is a guess
    result = next((one for one in printed if one.text != UNKNOWN), None)
    if result is None:
        return cell
    judged = judge_print(
        cell.mean, len(cell.values), result, spread, changed_by_hand(record, result)
    )
    return replace(
        cell,
        printed=Printed(
            value=result.value,
            std=result.std,
            source=f"{result.paper}:{result.table}",
            own=result.own_result,
            difference=round(cell.rounded - result.value, cell.decimals),
            verdict=judged.verdict,
            half=judged.half,
            reason=judged.reason,
            note=", ".join(
                filter(None, ("" if result.own_result else "copied by the paper", result.runs))
            ),
        ),
    )


def changed_by_hand(record: RunRecord, result: ReferenceResult) -> str:
    """Say why a run with a recipe that a user changed is not meant to be a printed one; "" if the
    print names those values itself."""
    named = dict(meaning(result.method, result.variant, result.setting, result.backbone).set)
    checkpoint = find_checkpoint(record.backbone)
    if checkpoint is not None:
        named |= checkpoint.set
    changed = [
        f"{key}={value.value}"
        for key, value in record.recipe.items()
        if is_given_by_user(value.source) and key not in named
    ]
    return f"not the recipe: {', '.join(changed)}" if changed else ""
