"""Groups of tables of one setting and backbone, and the points that figures draw of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from bench.base.foreign_text import make_visible
from bench.base.text import slug
from bench.board.board import Board
from bench.board.figures.sheet import DataRow, Figure
from bench.compare.statistics.table import Cell, Row, Table, most_seeds
from bench.compare.words.names import budget_words, place_words, row_name
from bench.records.record import Score
from bench.records.run import Run

LONGEST = 26
"""Characters of a label."""
PREFERRED = ("senteval-all/1", "cxc-promcse/1", "geometry-stsb/1", "senteval-fewshot/1")
"""The protocols that the papers' figures show, if a suite has several."""
MOST_GROUPS = 6


@dataclass(frozen=True)
class Point:
    """A row, and its cell in the column that is drawn."""

    label: str
    row: Row
    cell: Cell

    @property
    def ends(self) -> tuple[float, ...]:
        """The error bar of the mean, of the same kind as the table's: the interval, else one
        standard deviation each way; () if neither is known."""
        cell = self.cell
        if cell.spread is not None:
            return cell.spread.low, cell.spread.high
        return () if cell.sd is None else (cell.mean - cell.sd, cell.mean + cell.sd)

    @property
    def method(self) -> tuple[str, str]:
        """Name and setting: equal for rows that differ only in their recipe."""
        return self.row.name, self.row.setting


@dataclass(frozen=True)
class Group:
    """The tables of one setting and backbone, one for each suite, which a figure may show
    together.
    """

    setting: str
    backbone: str
    # by suite
    tables: Mapping[str, Table]
    # by run id
    runs: Mapping[str, Run]

    @property
    def length(self) -> str:
        """The length of training in words, if the tables name one and the same; else ""."""
        lengths = {table.length for table in self.tables.values()}
        return budget_words(lengths.pop()) if len(lengths) == 1 else ""

    def points(self, suite: str, column: str | None = None) -> list[Point]:
        """Return the rows of a suite that have a number in ``column``, in the table's order.

        None: in the column that ranks.
        """
        table = self.tables.get(suite)
        column = column or (table.head if table else None)
        if table is None or column not in table.columns:
            return []
        cells = [(row, row.cells[table.columns.index(column)]) for row in table.rows]
        return [
            Point(make_visible(row_name(row, table), limit=LONGEST), row, cell)
            for row, cell in cells
            if cell is not None
        ]

    def score(self, run: str, suite: str, task: str) -> Score | None:
        """Return the score of a run by the protocol of the suite's table."""
        table = self.tables[suite]
        return self.runs[run].record.score(suite, task, table.protocol)

    def by_run(self, suite: str, column: str | None = None) -> dict[str, Point]:
        """Return run id -> the point of its row."""
        return {run: p for p in self.points(suite, column) for run in p.row.runs}

    def methods(self, suite: str, column: str | None = None) -> list[Point]:
        """Return one row for each method and variant: of rows that differ in their recipe that with
        most seeds.

        If several have as many, all stay: taking the best of them would be a choice by test scores.
        """
        points = self.points(suite, column)
        most = most_seeds(point.row for point in points)
        return [point for point in points if len(point.row.runs) == most[point.method]]

    def figure(
        self,
        kind: str,
        title: str,
        caption: str,
        data: Sequence[DataRow],
        *,
        more: Sequence[str] = (),
        fewest: int = 2,
        **rest: Any,
    ) -> Figure | None:
        """Make a figure named after the group; None if ``data`` begin with fewer than ``fewest``
        names."""
        if len({row[0] for row in data}) < fewest:
            return None
        backbone = short_name(self.backbone)
        words = place_words(self.setting or None, backbone or None)
        return Figure(
            name=slug(kind, *more, self.setting or "any", backbone or "any", longest=80),
            kind=kind,
            title=f"{title} ({', '.join(filter(None, (words, self.length)))})",
            caption=caption,
            data=data,
            **rest,
        )


def table_groups(board: Board) -> list[Group]:
    """Return the settings and backbones of at least two rows, in the order of the board's tables.

    Submitted rows are in none.
    """
    own = [shown.table for shown in board.tables if not shown.table.sender]
    own.sort(key=lambda table: table.protocol not in PREFERRED)
    tables: dict[tuple[str, str], dict[str, Table]] = {}
    for table in own:
        suites = tables.setdefault((table.setting or "", table.backbone or ""), {})
        suites.setdefault(table.suite, table)
    runs = {run.record.run_id: Run(run.record, run.folder) for run in board.runs}
    groups = []
    for (setting, backbone), suites in tables.items():
        if any(len(table.rows) > 1 for table in suites.values()):
            groups.append(Group(setting, backbone, suites, runs))
    return groups[:MOST_GROUPS]


def short_name(backbone: str) -> str:
    """Return a backbone's name; if it is a folder, its last part."""
    return PurePath(backbone).name or backbone
