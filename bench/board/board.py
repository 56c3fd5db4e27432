"""What a version of the leaderboards holds: pure data, made from runs and printed results, before any page is drawn.

Every page, figure and data file of a version is a function of one ``Board``. Nothing here depends on the clock, on the network
or on the order in which runs were found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bench.compare.printed import Beside, Reproduced, changed_by_hand, judge_rows, printed_for
from bench.compare.statistics.table import Cell, Row, Table
from bench.references import ReferenceResult, results, rows, tables
from bench.runs.packed import NAME
from bench.runs.record import RunRecord
from bench.runs.run import Run

if TYPE_CHECKING:
    from bench.board.changes import Changes
    from bench.runs.searches import Search


PREVIEW = "preview"
"""The name in the place of a version's, of what is not published."""
PREVIEW_NOTE = "A preview, not published."
PAGES = 100
"""Runs of a version up to which each has a page. In a larger one the first run of each row has one, with the scores of every seed."""
MOST_FINISHED = 5
"""Backbones that a table shows for scale."""
ADJACENT = {"sts": ("cxc", "cxc-promcse/1")}
"""Suite -> (suite, protocol) of one column that stands beside its average, as the papers set domain shift beside STS."""


@dataclass(frozen=True, kw_only=True)
class MethodDescription:
    """What pages show of a method: its class, which has a summary, a paper and more, and what lies next to it."""

    cls: Any  # of bench.method.Method
    about: str  # docstring of the class, or else of its module
    variants: Mapping[str, Mapping[str, Any]]
    file: Any  # of bench.run.recipes.RecipeFile: recipes, disagreements


@dataclass(frozen=True, kw_only=True)
class BoardTable:
    """One comparable set of numbers: rows are methods, columns tasks. ``table`` is judged against its baseline, where it has one."""

    anchor: str  # "unsupervised-builtin-sts-senteval-all-1-tokenised"; the same in all versions
    table: Table
    selection: str  # how checkpoints were chosen: "best on STS-B dev, scored every 125 steps"
    cost_note: str = ""  # what times and memory are of; "" where there are none


@dataclass(frozen=True, kw_only=True)
class Board:
    """All of one version."""

    version: str  # "v1"
    date: str  # of the newest own run: "2026-11-21"
    title: str
    note: str | None  # what the publisher has to say, such as that it is not the papers' setting
    answer: str  # one computed sentence
    runs: tuple[Run, ...]  # by run id
    senders: Mapping[str, str] = field(default_factory=dict)  # run id -> who submitted it
    left_out: tuple[str, ...]  # failed, interrupted, damaged, replaced by newer runs: one line each
    tables: tuple[BoardTable, ...]
    changes: Changes | None = None
    made: Mapping[str, str] = field(default_factory=dict)  # topic -> how the version was made
    plan: bytes | None = None  # what was to be found out and how, in Markdown
    searches: tuple[Search, ...] = ()  # that found recipe values of own runs
    described: Mapping[str, MethodDescription] = field(default_factory=dict)  # by method
    predictions: str = NAME  # the file of all predictions: below the version's folder, or a URL
    one_file: bool = False  # its page holds everything: links lead to places on it

    @cached_property
    def records(self) -> Mapping[str, RunRecord]:
        """By run id."""
        return {run.record.run_id: run.record for run in self.runs}

    @property
    def methods(self) -> list[str]:
        return sorted({run.record.method for run in self.runs})

    @property
    def alone(self) -> bool:
        """A preview where nothing is published yet, so that there is no page of all versions to go to."""
        return self.version == PREVIEW and self.changes is None

    @cached_property
    def rows(self) -> list[tuple[BoardTable, Row]]:
        """The rows of all tables, in their order."""
        return [(table, row) for table in self.tables for row in table.table.rows]

    @cached_property
    def page_of(self) -> Mapping[str, str]:
        """Run id -> the run whose page has its scores: its own, or that of the first run of its row."""
        pages = {run_id: run_id for run_id in self.records}
        if len(pages) <= PAGES:
            return pages
        rows = [row.runs for _, row in reversed(self.rows)]  # the first row's stays
        shared = {run: runs[0] for runs in rows for run in runs}
        return pages | shared | {runs[0]: runs[0] for runs in rows}

    @cached_property
    def paged(self) -> list[Run]:
        """The runs that have a page."""
        return [run for run in self.runs if self.page_of[run.record.run_id] == run.record.run_id]

    def rows_of(self, run_id: str) -> list[tuple[BoardTable, Row]]:
        return [(table, row) for table, row in self.rows if run_id in row.runs]

    def finished(self, table: Table) -> list[tuple[Table, Row]]:
        """The best untrained row of each other backbone that is scored as the table is, the best first: for scale, not ranked. It is
        what a reader needs to judge the numbers of a small backbone.
        """
        form = ("none", *_form(table))
        best: dict[str, tuple[Table, Row]] = {}
        for other, row in self.rows if table.setting != "none" else ():
            if (other.table.setting, *_form(other.table)) == form:
                best.setdefault(row.backbone, (other.table, row))  # the best of a table come first
        best.pop(table.backbone or "", None)
        return sorted(best.values(), key=lambda pair: _mean(pair[1]), reverse=True)[:MOST_FINISHED]

    @cached_property
    def _single(self) -> Mapping[tuple[object, ...], Cell | None]:
        """The cells of tables of one column."""
        return {
            (*_form(shown.table), row.runs): row.cells[0]
            for shown, row in self.rows
            if len(shown.table.columns) == 1
        }

    def cell_of_same_runs(self, row: Row, other: Table) -> Cell | None:
        """What the runs of a row have in a table of one column; None where it has other runs, even other seeds."""
        return self._single.get((*_form(other), row.runs))

    def adjacent_tables(self, table: Table) -> list[BoardTable]:
        """The tables of one column that are shown beside a table's average: CxC-STS beside the seven STS tasks. Never part of it."""
        form = (ADJACENT.get(table.suite), table.setting, table.backbone, table.text)
        return [
            shown
            for shown in self.tables
            if ((other := shown.table).suite, other.protocol) == form[0]
            and (other.setting, other.backbone, other.text) == form[1:]
            and any(self.cell_of_same_runs(row, other) for row in table.rows)
        ]

    @cached_property
    def reproduced(self) -> Mapping[ReferenceResult, Reproduced]:
        """Printed number -> what became of it here, judged as ``bench reproduce`` does. Submitted runs, and rows with recipe values
        that a command set, are not among them."""
        records = {run: self.records[run] for run in self.records if run not in self.senders}
        runs_of = _runs_of(self, records)
        verdicts: dict[ReferenceResult, Reproduced] = {}
        for paper, table in tables():
            pairs = []
            for row in rows(results(paper=paper, table=table)):
                ours = dict.fromkeys(run for cell in row.cells for run in runs_of.get(cell, ()))
                pairs += [Beside(row.cells, [records[run] for run in ours])] if ours else []
            for cells in judge_rows(pairs, "tokenised"):
                verdicts |= {cell.printed: cell for cell in cells if cell.mean is not None}
        return verdicts


def _form(table: Table) -> tuple[object, ...]:
    """What tables share whose numbers may stand in one column."""
    return table.suite, table.protocol, table.text, table.columns


def _mean(row: Row) -> float:
    return 0.0 if row.cells[-1] is None else row.cells[-1].mean


def _runs_of(
    board: Board, records: Mapping[str, RunRecord]
) -> dict[ReferenceResult, tuple[str, ...]]:
    """Printed number -> runs of the row that means it; of several rows that one of most seeds, the first of them in the table."""
    runs_of: dict[ReferenceResult, tuple[str, ...]] = {}
    for shown, row in board.rows:
        if (record := records.get(row.runs[0])) is None:
            continue
        for task in shown.table.columns:
            for printed in printed_for(row, task, shown.table, record):
                more = len(row.runs) > len(runs_of.get(printed, ()))
                if more and not changed_by_hand(record, printed):
                    runs_of[printed] = row.runs
    return runs_of
