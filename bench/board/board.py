"""What a version of the leaderboards holds: pure data, made from runs and printed results, before any page is drawn.

Every page, figure and data file of a version is a function of one ``Board``. Nothing here depends on the clock, on the network
or on the order in which runs were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from bench.compare.printed import Beside as PrintedRow
from bench.compare.printed import Reproduced, changed_by_hand, judge_rows, printed_for
from bench.compare.statistics.table import SENDER, Cell, Row, Table
from bench.references import ReferenceResult, results, rows, tables
from bench.run.recipe_file import RecipeFile
from bench.runs.packed import NAME
from bench.runs.record import RecipeValue, RunRecord

if TYPE_CHECKING:
    from bench.board.changes import Changes
    from bench.runs.searches import Search


PLAN = "plan.md"
PREVIEW = "preview"
"""The name in the place of a version's, of what is not published."""
PREVIEW_NOTE = "A preview, not published."
YOURS = "Add your row"
"""Topic of the facts that say how a reader's run gets into a table."""
PAGES = 100
"""Runs of a version up to which each has a page. In a larger one the first run of a row has one, which tells of the others, too."""
MOST_FINISHED = 5
"""Backbones beside which a table is set for scale."""


@dataclass(frozen=True, kw_only=True)
class MethodDescription:
    """What pages show of a method."""

    name: str
    package: str  # the distribution that registers it
    summary: str
    paper: str
    settings: tuple[str, ...]
    trains: str
    about: str  # docstring of the class, or else of its module
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    file: RecipeFile = RecipeFile()  # recipes, disagreements, and what the papers' tables call it


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """A finished run whose scores follow from its predictions, and who ran it."""

    record: RunRecord
    folder: Path  # where its curve and predictions lie
    submitted_by: str | None = None  # None: an own run


def separate_record(run: PublishedRun) -> RunRecord:
    """The record as tables group it: one that was submitted never shares a row with the board's own runs, nor with another sender's.

    Otherwise a newer run of the same seed would replace an own one, and a forged one would move its mean.
    """
    if run.submitted_by is None:
        return run.record
    sender = RecipeValue(value=run.submitted_by, source="the submission")
    return structs.replace(run.record, recipe={**run.record.recipe, SENDER: sender})


def dating_runs(runs: Sequence[PublishedRun]) -> Sequence[PublishedRun]:
    """Those whose days date a version: the own ones, where there are any. A sender may write any day into a record."""
    return [run for run in runs if run.submitted_by is None] or runs


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A column of another suite, shown beside a table's own: CxC-STS beside the seven STS tasks. It is never part of an average."""

    name: str  # of the task: "CxC-STS"
    suite: str
    protocol: str
    metric: str
    anchor: str  # of the table that it is a column of
    cells: tuple[Cell | None, ...]  # one per row


@dataclass(frozen=True, kw_only=True, order=True)
class CostOf:
    """Hardware and harness that the times and memory of a table are of."""

    device: str  # "cpu: Intel(R) Xeon(R) Processor, 2 cores"
    bench_version: str


@dataclass(frozen=True, kw_only=True)
class BoardTable:
    """One comparable set of numbers: rows are methods, columns tasks.

    ``table`` is judged against its baseline, where it has one.
    """

    anchor: (
        str  # "unsupervised-builtin-sts-senteval-all-1-tokenised"; stays from version to version
    )
    table: Table
    selection: str  # how checkpoints were chosen: "best on STS-B dev, scored every 125 steps"
    costs_comparable: bool  # every time and memory of ``table`` that was recorded is shown; False: those of ``cost_of`` alone
    cost_note: str  # what times and memory are of, one sentence; "" where there are none
    cost_of: CostOf | None = None  # None: nothing recorded
    beside: tuple[Beside, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something about how a version was made, or how to go on from it: PAGES, main page, 6."""

    topic: str  # "Protocols"
    text: str  # one or two sentences
    command: str | None = None  # what to type for it


@dataclass(frozen=True)
class TableRow:
    """One row of one table."""

    of: BoardTable
    row: Row


@dataclass(frozen=True, kw_only=True)
class Board:
    """All of one version."""

    version: str  # "v1"
    date: str  # of the newest own run: "2026-11-21"
    title: str
    note: str | None  # what the publisher has to say, such as that it is not the papers' setting
    answer: str  # one computed sentence
    runs: tuple[PublishedRun, ...]  # by run id
    left_out: tuple[str, ...]  # failed, interrupted, damaged, replaced by newer runs: one line each
    tables: tuple[BoardTable, ...]
    changes: Changes | None = None
    made: tuple[Fact, ...] = ()
    methods: tuple[str, ...] = ()  # of the runs, by name
    plan: bytes | None = (
        None  # what was to be found out and how, in Markdown, as it lay beside the versions
    )
    searches: tuple[Search, ...] = ()  # that found recipe values of own runs
    described: Mapping[str, MethodDescription] = field(
        default_factory=dict
    )  # method -> what it says of itself
    predictions: str = NAME  # the file of all predictions: below the version's folder, or a URL
    one_file: bool = False  # its page holds everything: links lead to places on it

    def finished(self, board_table: BoardTable) -> tuple[tuple[BoardTable, int], ...]:
        """(table, place of the row in it) of the best untrained row of each other backbone that is scored as it is, the best
        first: for scale, not ranked. It is what a reader needs to judge the numbers of a small backbone.
        """
        mine = board_table.table
        form = ("none", mine.suite, mine.protocol, mine.text, mine.columns)
        best: dict[str, tuple[float, BoardTable, int]] = {}
        for other in self.tables if mine.setting != "none" else ():
            table = other.table
            if (table.setting, table.suite, table.protocol, table.text, table.columns) == form:
                for i, row in enumerate(table.rows):  # the best first
                    mean = 0.0 if row.cells[-1] is None else row.cells[-1].mean
                    if row.backbone != mine.backbone:
                        best.setdefault(row.backbone, (mean, other, i))
        ordered = sorted(best.values(), key=lambda one: one[0], reverse=True)
        return tuple((other, i) for _, other, i in ordered[:MOST_FINISHED])

    @cached_property
    def page_of(self) -> Mapping[str, str]:
        """Run id -> the run whose page tells of it: its own, or that of the first run of its row."""
        own = {run.record.run_id: run.record.run_id for run in self.runs}
        if len(own) <= PAGES:
            return own
        rows = [place.row.runs for place in reversed(self._places)]  # the first row's stays
        shared = {run: runs[0] for runs in rows for run in runs}
        return own | shared | {runs[0]: runs[0] for runs in rows}

    @cached_property
    def paged(self) -> tuple[PublishedRun, ...]:
        """The runs that have a page, and a file of their scores beside it."""
        return tuple(
            run for run in self.runs if self.page_of[run.record.run_id] == run.record.run_id
        )

    @cached_property
    def by_run(self) -> Mapping[str, Sequence[TableRow]]:
        """Run id -> the rows that it is in, in the order of the board's tables."""
        places: dict[str, list[TableRow]] = {}
        for place in self._places:
            for run_id in place.row.runs:
                places.setdefault(run_id, []).append(place)
        return places

    @cached_property
    def by_method(self) -> Mapping[str, Sequence[TableRow]]:
        """Method -> its rows, in the order of the board's tables."""
        places: dict[str, list[TableRow]] = {}
        for place in self._places:
            places.setdefault(place.row.method, []).append(place)
        return places

    @cached_property
    def _places(self) -> list[TableRow]:
        return [TableRow(table, row) for table in self.tables for row in table.table.rows]

    @cached_property
    def reproduced(self) -> Mapping[ReferenceResult, Reproduced]:
        """Printed number -> what became of it here, where checked runs of this board are of it."""
        return _reproduced(self)

    @property
    def alone(self) -> bool:
        """A preview where nothing is published yet, so that there is no page of all versions to go to."""
        return self.version == PREVIEW and self.changes is None


# --- what became of a printed number here: the board's own runs of the same method, backbone and recipe, judged as ``bench reproduce`` does ---


def _reproduced(board: Board) -> Mapping[ReferenceResult, Reproduced]:
    """Verdicts of the printed numbers that have runs here. Submitted runs, and rows with recipe values that a command set, are not
    among them."""
    records = {run.record.run_id: run.record for run in board.runs if run.submitted_by is None}
    runs_of = _runs_of(board, records)
    verdicts: dict[ReferenceResult, Reproduced] = {}
    for paper, table in tables():
        pairs = []
        for row in rows(results(paper=paper, table=table)):
            ours = dict.fromkeys(run for cell in row.cells for run in runs_of.get(cell, ()))
            pairs += [PrintedRow(row.cells, [records[run] for run in ours])] if ours else []
        for cells in judge_rows(pairs, "tokenised"):
            verdicts |= {cell.printed: cell for cell in cells if cell.mean is not None}
    return verdicts


def _runs_of(
    board: Board, records: Mapping[str, RunRecord]
) -> dict[ReferenceResult, tuple[str, ...]]:
    """Printed number -> runs of the row that means it; of several rows that one of most seeds, the first of them in the table."""
    runs_of: dict[ReferenceResult, tuple[str, ...]] = {}
    for place in board._places:
        row, table, record = place.row, place.of.table, records.get(place.row.runs[0])
        for task in table.columns if record else ():
            for printed in printed_for(row, task, table, record):
                more = len(row.runs) > len(runs_of.get(printed, ()))
                if more and not changed_by_hand(record, printed):
                    runs_of[printed] = row.runs
    return runs_of
