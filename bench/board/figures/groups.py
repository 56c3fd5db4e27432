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

LONGEST = 26
"""Characters of a label."""
PREFERRED = ("senteval-all/1", "cxc-promcse/1")
"""The protocols that the papers' figures show, if a suite has several."""
MOST_GROUPS = 6


@dataclass(frozen=True)
class Point:
    """A row, and its cell in the column that ranks."""

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

    @property
    def length(self) -> str:
        """The length of training in words, if the tables name one and the same; else ""."""
        lengths = {table.length for table in self.tables.values()}
        return budget_words(lengths.pop()) if len(lengths) == 1 else ""

    def points(self, suite: str) -> list[Point]:
        """Return the rows of a suite that have a number in the column that ranks, in the table's
        order."""
        table = self.tables.get(suite)
        if table is None or table.head is None:
            return []
        points = []
        for row in table.rows:
            cell = row.cells[-1]
            if cell is not None:
                label = make_visible(row_name(row, table), limit=LONGEST)
                points.append(Point(label, row, cell))
        return points

    def methods(self, suite: str) -> list[Point]:
        """Return one row for each method and variant: of rows that differ in their recipe that with
        most seeds.

        If several have as many, all stay: taking the best of them would be a choice by test scores.
        """
        points = self.points(suite)
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
        **rest: Any,
    ) -> Figure:
        """Make a figure named after the group."""
        backbone = short_name(self.backbone)
        words = place_words(self.setting or None, backbone or None)
        return Figure(
            name=slug(kind, *more, self.setting or "any", backbone or "any", longest=80),
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
    groups = []
    for (setting, backbone), suites in tables.items():
        if any(len(table.rows) > 1 for table in suites.values()):
            groups.append(Group(setting, backbone, suites))
    return groups[:MOST_GROUPS]


def short_name(backbone: str) -> str:
    """Return a backbone's name; if it is a folder, its last part."""
    return PurePath(backbone).name or backbone
