"""The content of a version of the leaderboards: pure data, made from runs and printed results,
before any page is drawn.

It says which runs have a row, which page has a run's scores, and the order of rows. Every page,
figure and data file of a version is a function of one ``Board``. Nothing here depends on the clock,
on the network or on the order in which runs were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bench.base.errors import BenchError, UnknownName
from bench.board.making import how_it_was_made
from bench.board.matrix import Matrix, make_matrix
from bench.board.repeat import repeat
from bench.board.tables import (
    BoardTable,
    PageTable,
    RowPlace,
    board_tables,
    page_tables,
    row_anchors,
)
from bench.compare.claims import JudgedClaim, judge_claims
from bench.compare.gain_sizes import SpreadOfRow, row_spreads
from bench.compare.grouping import recorded_budget
from bench.compare.senders import with_sender
from bench.compare.statistics.table import Row, Table
from bench.compare.tables import make_tables
from bench.compare.words.finding import find, main_table
from bench.records.record import RunRecord
from bench.records.run import Run
from bench.records.searches import Search

PREVIEW = "preview"
"""Stands in for a version's name before anything is published."""
PREVIEW_NOTE = "A preview, not published."
PAGES = 100
"""Runs of a version up to which each has a page.

In a larger one the first run of each row has one, with the scores of every seed.
"""
MOST_FINISHED = 6
"""Backbones that a table shows for scale."""


@dataclass(frozen=True, kw_only=True)
class MethodDescription:
    """The class of a method, with summary and paper, and the files next to it, as pages show
    them."""

    # a subclass of bench.method.Method
    cls: Any
    # the docstring of the class, or else of its module
    about: str
    # variant -> recipe values that it changes
    variants: Mapping[str, Mapping[str, Any]]
    # a bench.method.recipe_files.RecipeFile: recipes, disagreements
    file: Any


@dataclass(frozen=True, kw_only=True)
class Board:
    """One version, or a preview of one."""

    # "v1"
    version: str
    # date of the newest own run: "2026-11-21"
    date: str
    title: str
    # the publisher's note to readers, such as that the setting is not the papers'
    note: str | None
    # the finding in computed sentences
    answer: str
    # in the order of their ids
    runs: tuple[Run, ...]
    # run id -> who submitted it
    senders: Mapping[str, str] = field(default_factory=dict)
    # failed, interrupted, damaged, replaced by newer runs: one line each
    left_out: tuple[str, ...]
    tables: tuple[BoardTable, ...]
    # topic -> how the version was made
    made: Mapping[str, str] = field(default_factory=dict)
    # the row that the others are compared with, as it was asked for; None: simcse
    baseline: str | None = None
    # the budget of the tables that come first, as it was asked for
    main_budget: str = ""
    # the question and the plan to answer it, in Markdown
    plan: bytes | None = None
    # searches that found recipe values of own runs
    searches: tuple[Search, ...] = ()
    # by method
    described: Mapping[str, MethodDescription] = field(default_factory=dict)
    # the address of the folder of all versions, with a slash at its end; "" if none was given
    address: str = ""
    # the address of the documentation's folder or first page; "" if none was given
    docs: str = ""
    # True for a preview before the first version: no page of all versions exists yet
    alone: bool = False
    # True if one page holds everything: links lead to places on it
    one_file: bool = False

    @cached_property
    def records(self) -> Mapping[str, RunRecord]:
        """Run id -> record."""
        return {run.record.run_id: run.record for run in self.runs}

    @property
    def methods(self) -> list[str]:
        return sorted({run.record.method for run in self.runs})

    @cached_property
    def rows(self) -> list[tuple[BoardTable, Row]]:
        """The rows of all tables, in their order."""
        return [(table, row) for table in self.tables for row in table.table.rows]

    @cached_property
    def page_tables(self) -> tuple[PageTable, ...]:
        """The tables that pages show."""
        return page_tables(self.tables)

    @cached_property
    def row_anchors(self) -> Mapping[RowPlace, str]:
        """The id of each row on the main page."""
        return row_anchors(self.page_tables)

    @cached_property
    def page_of(self) -> Mapping[str, str]:
        """Run id -> the run on the page with its scores: itself, or the first run of its row."""
        pages = {run_id: run_id for run_id in self.records}
        # counted apart, so that submissions never change the pages of own runs
        for submitted in (False, True):
            alike = [run_id for run_id in pages if (run_id in self.senders) == submitted]
            if len(alike) <= PAGES:
                continue
            firsts = []
            # backwards, because a run of several rows has the page of the first of them
            for shown, row in reversed(self.rows):
                if bool(shown.table.sender) == submitted:
                    firsts.append(row.runs[0])
                    pages |= dict.fromkeys(row.runs, row.runs[0])
            pages |= {run_id: run_id for run_id in firsts}
        return pages

    @cached_property
    def paged(self) -> list[Run]:
        """The runs that have a page."""
        return [run for run in self.runs if self.page_of[run.record.run_id] == run.record.run_id]

    @cached_property
    def main(self) -> Table | None:
        """The table that the finding is about; None if no table ranks."""
        return main_table([shown.table for shown in self.tables])

    @cached_property
    def spreads(self) -> list[SpreadOfRow]:
        """The spreads of the rows of the table that the finding is about; none if it has no
        baseline with several seeds."""
        if self.main is None or not self.main.has_verdicts:
            return []
        return row_spreads(self.main, {run.record.run_id: run for run in self.runs})

    @cached_property
    def matrix(self) -> Matrix | None:
        """Methods by suites, around the table that the finding is about."""
        return make_matrix(self.tables)

    @cached_property
    def claims(self) -> list[JudgedClaim]:
        """The claims of the papers' texts, each held against the rows that test it."""
        own = [shown.table for shown in self.tables if not shown.table.sender]
        length = self.main.length if self.main is not None else ""
        return judge_claims(own, {run.record.run_id: run for run in self.runs}, length)

    def command_again(self, runs: Sequence[Run]) -> str:
        """Return the command that makes runs again. It is typed beside the folder of the runs."""
        return repeat(runs, runs[0].folder.parent.name if self.one_file else "runs")

    def rows_of(self, run_id: str) -> list[tuple[BoardTable, Row]]:
        """Return the rows that a run is in, each with its table."""
        return [(table, row) for table, row in self.rows if run_id in row.runs]

    def rows_for_scale(self, table: Table) -> list[tuple[Table, Row]]:
        """Return the best untrained row of each other backbone, unranked, to show the scale.

        They are scored as the table is, the best first.
        """
        if table.setting == "none" or table.sender:
            return []
        form = ("none", *_form(table))
        best: dict[str, tuple[Table, Row]] = {}
        for other, row in self.rows:
            if (other.table.setting, *_form(other.table)) == form and not other.table.sender:
                best.setdefault(row.backbone, (other.table, row))  # the best of a table come first
        best.pop(table.backbone or "", None)

        def mean(pair: tuple[Table, Row]) -> float:
            cell = pair[1].cells[-1]
            return 0.0 if cell is None else cell.mean

        return sorted(best.values(), key=mean, reverse=True)[:MOST_FINISHED]


def _form(table: Table) -> tuple[object, ...]:
    """Return all that tables must share for their numbers to be in one column."""
    return table.suite, table.protocol, table.columns


def build_board(
    runs: Sequence[Run],
    *,
    version: str,
    title: str,
    senders: Mapping[str, str] | None = None,
    note: str | None = None,
    baseline: str | None = None,
    main_budget: str = "",
) -> Board:
    """Make the board of these runs, in any order. ``senders``: run id -> who submitted it.
    ``main_budget``: as for ``make_tables``.

    A run that no table has is not on the board: a line of its ``left_out`` says why. Raises
    BenchError if none of the runs is finished and has a score, UnknownName for a baseline or a main
    budget that no table has.
    """
    senders = senders or {}
    finished = [run for run in runs if run.record.status == "finished"]
    finished.sort(key=lambda run: run.record.run_id)
    if not any(run.record.scores for run in finished):
        raise BenchError(
            "none of these runs is finished and has a score",
            "bench run ... --suite sts, then bench publish",
        )
    labelled = [with_sender(run, senders.get(run.record.run_id)) for run in finished]
    made = make_tables(labelled, baseline=baseline, paper=True, cost=True, main_budget=main_budget)
    tables = board_tables(made, {run.record.run_id: run.record for run in finished})
    _check_main_budget([run.record for run in finished], main_budget)
    in_rows: set[str] = set()
    for table in tables:
        in_rows.update(run for row in table.table.rows for run in row.runs)
    shown = tuple(run for run in finished if run.record.run_id in in_rows)
    by_sender = {run: senders[run] for run in sorted(in_rows & senders.keys())}
    own_records = [run.record for run in shown if run.record.run_id not in senders]
    # a sender may write any day into a record: only own runs date a board that has some
    dating = own_records or [run.record for run in shown]
    replaced = [
        f"{run.record.run_id}: replaced: its row has newer runs, of the same seed or of newer code"
        for run in finished
        if run not in shown
    ]
    own_tables = [table.table for table in tables if not table.table.sender]
    return Board(
        version=version,
        date=max(record.provenance.created for record in dating)[:10],
        title=title,
        note=note or None,
        answer=find([table.table for table in tables]).text,
        runs=shown,
        senders=by_sender,
        left_out=tuple(replaced),
        tables=tables,
        made=how_it_was_made(version, dating, by_sender, own_tables),
        baseline=baseline,
        main_budget=main_budget,
    )


def _check_main_budget(records: Sequence[RunRecord], main_budget: str) -> None:
    """Raise UnknownName for a main budget that no run has."""
    budgets = {recorded_budget(record) for record in records}
    if main_budget and main_budget not in budgets:
        raise UnknownName(
            "main budget",
            main_budget,
            budgets - {""},
            "among these runs",
            '--main-budget "" begins with the tables of most runs',
        )
