"""From the tables of a board to the points of its figures: which tables belong together, and the
label of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from bench.base.text import slug
from bench.compare.formatting import setting_words, variant_words, visible
from bench.compare.statistics.table import SENDER, Cell, Row, Table
from bench.show.figures.drawing import Figure

if TYPE_CHECKING:
    from bench.board.board import Board
    from bench.runs.run import Run

LONGEST = 26  # characters of a label
PREFERRED = ("senteval-all/1", "cxc-promcse/1", "geometry-stsb/1", "senteval-fewshot/1")
"""Of several protocols of a suite, the ones that the papers' figures show."""
MOST_GROUPS = 6


@dataclass(frozen=True)
class Point:
    """A row, and its cell in the column that is drawn."""

    label: str
    row: Row
    cell: Cell

    @property
    def ends(self) -> tuple[float, float] | None:
        """The error bar of the mean, of the same kind as the table's: the interval, else one
        standard deviation each way."""
        cell = self.cell
        if cell.spread is not None:
            return cell.spread.low, cell.spread.high
        return None if cell.sd is None else (cell.mean - cell.sd, cell.mean + cell.sd)


@dataclass(frozen=True)
class Group:
    """The tables of one setting and backbone, one per suite: what a figure may show together."""

    setting: str
    backbone: str
    tables: Mapping[str, Table]  # by suite
    runs: Mapping[str, Run]
    alone: bool  # the board has no other group

    @property
    def suites(self) -> list[str]:
        """The STS sets first, then by name."""
        return sorted(self.tables, key=lambda suite: (suite != "sts", suite))

    def points(self, suite: str, column: str | None = None) -> list[Point]:
        """The points of the suite's table; none where there is no such table."""
        return points(self.tables[suite], column) if suite in self.tables else []

    def methods(self, suite: str, column: str | None = None) -> list[Point]:
        """One point per method and variant where that is clear: of rows that differ in their recipe
        the one with most seeds.

        Where several have as many, all stay: taking the best of them would be a choice by test
        scores.
        """
        seeds: dict[tuple[str, ...], list[int]] = {}
        every = self.points(suite, column)
        for point in every:
            seeds.setdefault(_method(point.row), []).append(len(point.row.runs))
        chosen = []
        for point in every:
            counts, sender = seeds[_method(point.row)], _sender(point.row)
            if counts.count(max(counts)) == 1 < len(counts):  # its recipe need not be named
                label = _label(replace(point.row, differs=sender), self.tables[suite])
                point = replace(point, label=label)
            if len(point.row.runs) == max(counts):
                chosen.append(point)
        return chosen

    def name(self, kind: str, *more: str) -> str:
        parts = (kind, *more, self.setting or "any", short_name(self.backbone) or "any")
        return slug(*parts, longest=80)

    def figure(
        self, kind: str, title: str, caption: str, *, more: Sequence[str] = (), **rest: Any
    ) -> Figure:
        """A figure named after the group; its title says where it is from unless that is the same
        for all."""
        where = f" ({setting_words(self.setting)}, {short_name(self.backbone)})"
        title += "" if self.alone else where
        return Figure(name=self.name(kind, *more), kind=kind, title=title, caption=caption, **rest)


def points(table: Table, column: str | None = None) -> list[Point]:
    """The rows that have a number in ``column``, in the table's order; None: in the column that
    ranks."""
    column = column or table.head
    if column not in table.columns:
        return []
    having = [(row, row.cells[table.columns.index(column)]) for row in table.rows]
    return [Point(_label(row, table), row, cell) for row, cell in having if cell is not None]


def _method(row: Row) -> tuple[str, ...]:
    """Rows of one method; a submitted row is never one with somebody else's."""
    return row.name, row.setting, row.backbone, *(value for _, value in _sender(row))


def _sender(row: Row) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in row.differs if key == SENDER)


def _label(row: Row, table: Table) -> str:
    """The text next to a row's point; it may be cut."""
    variant = variant_words(row, table)
    return visible(f"{row.label}{'+' if row.variant else ' '}{variant}".strip(), limit=LONGEST)


def table_groups(board: Board) -> list[Group]:
    """Settings and backbones of at least two rows, those with most rows first."""
    chosen: dict[tuple[str, str], dict[str, Table]] = {}
    for table in sorted((one.table for one in board.tables), key=_preference):
        tables = chosen.setdefault((table.setting or "", table.backbone or ""), {})
        tables.setdefault(table.suite, table)
    sizes = {place: max(len(t.rows) for t in tables.values()) for place, tables in chosen.items()}
    order = sorted((p for p in sizes if sizes[p] > 1), key=lambda place: (-sizes[place], place))
    runs = {run.record.run_id: run for run in board.runs}
    return [Group(*place, chosen[place], runs, len(order) == 1) for place in order[:MOST_GROUPS]]


def _preference(table: Table) -> tuple[Any, ...]:
    text, known = table.text or "", table.text in (None, "tokenised")
    return table.protocol not in PREFERRED, not known, -len(table.rows), table.protocol, text


def join_points(first: Sequence[Point], second: Sequence[Point]) -> list[tuple[Point, Point]]:
    """The points of the same runs."""
    by_run = {run: point for point in second for run in point.row.runs}
    return [
        (point, other)
        for point in first
        if (other := next((by_run[r] for r in point.row.runs if r in by_run), None))
    ]


def short_name(backbone: str) -> str:
    """A backbone's name; of a folder its last part."""
    return PurePath(backbone).name or backbone
