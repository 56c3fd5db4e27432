"""What a version of the leaderboards holds: pure data, made from runs and printed results, before any page is drawn.

Every page, figure and data file of a version is a function of one ``Board``. Nothing here depends on the clock, on the network
or on the order in which runs were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bench.board.reference_tables import ReferenceTable
from bench.board.repeat import SET
from bench.compare.statistics.table import Cell, Row, Table
from bench.references import ReferenceResult, results, rows, tables
from bench.references.ours import find_printed, meaning
from bench.runs.record import RunRecord

if TYPE_CHECKING:
    from bench.board.changes import Changes
    from bench.run.reproduce.verdicts import Reproduced
    from bench.runs.searches import Search


PREVIEW = "preview"
"""The name in the place of a version's, of what is not published."""
PREVIEW_NOTE = "A preview, not published."
YOURS = "Your run in this table"
"""Topic of the facts that say how a reader's run gets there."""
PAGES = 100
"""Runs of a version up to which each has a page. In a larger one the first run of a row has one, which tells of the others, too."""
MOST_FINISHED = 5
"""Backbones beside which a table is set for scale."""
GRADES = ("submitted", "own", "checkpoint", "retrained")
"""Of runs, from the weakest to the strongest; ``bench.board.grades.WORDS`` says whose word each is."""
OWN = "own"
Key = tuple[str, ...]
"""Of a printed number: paper, table, label, setting, backbone, variant, task."""


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """A finished run, and how far it was checked here."""

    record: RunRecord
    folder: Path  # where its curve and predictions lie
    grade: str = OWN  # one of GRADES
    submitted_by: str | None = None  # None: an own run
    reason: str = ""  # why it has this grade, in words
    held_by: str | None = None  # the older version in which its files lie; None: in this one

    @property
    def checked(self) -> bool:
        """Whether it may be ranked: an own run, or one whose predictions were made again here."""
        return self.submitted_by is None or GRADES.index(self.grade) >= GRADES.index("checkpoint")


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
    checked: bool = (
        True  # False: runs that were sent in and that nobody here made again; nothing is ranked
    )


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
    references: tuple[ReferenceTable, ...]
    changes: Changes | None = None
    made: tuple[Fact, ...] = ()
    methods: tuple[str, ...] = ()  # of the runs, by name
    older: Mapping[str, str] = field(default_factory=dict)
    """Path below the version, of a file that is none of a run -> the older version in which it lies."""
    plan: bytes | None = (
        None  # what was to be found out and how, in Markdown, as it lay beside the versions
    )
    searches: tuple[Search, ...] = ()  # that found recipe values of own runs

    def finished(self, board_table: BoardTable) -> tuple[tuple[BoardTable, int], ...]:
        """(table, place of the row in it) of the best untrained row of each other backbone that is scored as it is, the best
        first: for scale, not ranked. It is what a reader needs to judge the numbers of a small backbone.
        """
        mine = board_table.table
        if mine.setting == "none":
            return ()
        form = ("none", mine.suite, mine.protocol, mine.text, mine.columns)
        best: dict[str, tuple[BoardTable, int]] = {}
        for other in self.tables:
            table = other.table
            if (table.setting, table.suite, table.protocol, table.text, table.columns) == form:
                for i, row in enumerate(table.rows):  # the best first
                    if row.backbone != mine.backbone:
                        best.setdefault(row.backbone, (other, i))

        def mean(place: tuple[BoardTable, int]) -> float:
            cell = place[0].table.rows[place[1]].cells[-1]
            return 0.0 if cell is None else cell.mean

        return tuple(sorted(best.values(), key=mean, reverse=True)[:MOST_FINISHED])

    @cached_property
    def page_of(self) -> Mapping[str, str]:
        """Run id -> the run whose page tells of it: its own, or that of the first run of its row."""
        own = {run.record.run_id: run.record.run_id for run in self.runs}
        if len(own) <= PAGES:
            return own
        rows = [
            row.runs for table in reversed(self.tables) for row in table.table.rows
        ]  # of several rows the first one's
        told = {run: runs[0] for runs in rows for run in runs}
        return own | told | {runs[0]: runs[0] for runs in rows}

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

    @property
    def _places(self) -> list[TableRow]:
        return [TableRow(table, row) for table in self.tables for row in table.table.rows]

    @cached_property
    def reproduced(self) -> Mapping[Key, Reproduced]:
        """Printed number -> what became of it here, where checked runs of this board are of it."""
        return _reproduced(self)

    @property
    def alone(self) -> bool:
        """A preview where nothing is published yet, so that there is no page of all versions to go to."""
        return self.version == PREVIEW and self.changes is None


# --- what became of a printed number here: the board's own runs of the same method, backbone and recipe, judged as ``bench reproduce`` does ---


def key(cell: ReferenceResult) -> Key:
    return (
        cell.paper,
        cell.table,
        cell.label,
        cell.setting,
        cell.backbone,
        cell.variant,
        cell.task,
    )


def _reproduced(board: Board) -> Mapping[Key, Reproduced]:
    """Verdicts of the printed numbers that have runs here. What is not checked, and rows with recipe values given by hand, are not among them."""
    runs = {run.record.run_id: run for run in board.runs if run.checked}
    having = _having(board, runs)
    if not having:
        return {}
    from bench.run.reproduce.verdicts import judge_cells
    from bench.run.reproduce.wanted import WantedRun

    verdicts: dict[Key, Reproduced] = {}
    for paper, table in tables():
        listed = []
        for row in rows([result for result in results(paper=paper) if result.table == table]):
            ours = dict.fromkeys(run for cell in row.cells for run in having.get(key(cell), ()))
            if ours:
                listed.append(
                    (
                        WantedRun(rows=(row,), method=row.first.method),
                        [(runs[run].record, runs[run].folder) for run in ours],
                    )
                )
        for cells in judge_cells(listed, "tokenised") if listed else ():
            verdicts.update({key(cell.printed): cell for cell in cells if cell.mean is not None})
    return verdicts


def _having(board: Board, runs: Mapping[str, PublishedRun]) -> dict[Key, tuple[str, ...]]:
    """Printed number -> runs of the row that means it; of several rows that one of most seeds, the first of them in the table."""
    having: dict[Key, tuple[str, ...]] = {}
    for table in board.tables:
        for row in table.table.rows if table.checked else ():
            record = runs[row.runs[0]].record
            recipe = {name: entry.value for name, entry in record.recipe.items()}
            by_hand = {
                name for name, entry in record.recipe.items() if entry.source.startswith(SET)
            }
            for task in table.table.columns:
                for cell in find_printed(
                    row.method,
                    task,
                    suite=table.table.suite,
                    setting=row.setting,
                    backbone=record.backbone,
                    variant=row.variant,
                    protocol=table.table.protocol,
                    recipe=recipe,
                ):
                    fits = (
                        not cell.text or table.table.text is None or table.table.text == cell.text
                    )
                    if (
                        fits
                        and by_hand
                        <= set(meaning(cell.method, cell.variant, cell.setting, cell.backbone).set)
                        and len(row.runs) > len(having.get(key(cell), ()))
                    ):
                        having[key(cell)] = row.runs
    return having
