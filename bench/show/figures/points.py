"""From the tables of a board to the points of its figures: which tables belong together, and what a row is called."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from bench.compare.formatting import setting_words, variant_words, visible
from bench.compare.statistics.table import SENDER, Cell, Row, Table

if TYPE_CHECKING:
    from bench.board.board import Board, BoardTable

LONGEST = 26  # characters of a label
PREFERRED = ("senteval-all/1", "cxc-promcse/1", "geometry-stsb/1", "senteval-fewshot/1")
"""Of several protocols of a suite, the ones that the papers' figures show."""
MOST_GROUPS = 6
LONGEST_NAME = 80


@dataclass(frozen=True)
class Group:
    """The tables of one setting and backbone, one per suite: what a figure may show together."""

    setting: str
    backbone: str
    tables: Mapping[str, BoardTable]  # by suite
    alone: bool  # the board has no other group

    @property
    def where(self) -> str:
        """ "unsupervised, builtin" """
        return f"{setting_words(self.setting)}, {short_name(self.backbone)}"

    @property
    def suites(self) -> list[str]:
        """The STS sets first, then by name."""
        return sorted(self.tables, key=lambda suite: (suite != "sts", suite))

    def table(self, suite: str) -> Table | None:
        """None where the suite was not scored."""
        return self.tables[suite].table if suite in self.tables else None

    def titled(self, title: str) -> str:
        """The title, with where it is of unless that is the same for all."""
        return title if self.alone else f"{title} ({self.where})"

    def name(self, kind: str, *more: str) -> str:
        return slug(kind, *more, self.setting or "any", short_name(self.backbone) or "any")


@dataclass(frozen=True)
class Point:
    """A row, and its cell in the column that is drawn."""

    label: str
    row: Row
    cell: Cell


def table_groups(board: Board) -> list[Group]:
    """Settings and backbones of at least two rows, those with most rows first."""
    chosen: dict[tuple[str, str], dict[str, BoardTable]] = {}
    for board_table in sorted(board.tables, key=_preference):
        place = board_table.table.setting or "", board_table.table.backbone or ""
        chosen.setdefault(place, {}).setdefault(board_table.table.suite, board_table)
    sizes = {
        place: max(len(board_table.table.rows) for board_table in tables.values())
        for place, tables in chosen.items()
    }
    order = sorted(
        (place for place, size in sizes.items() if size > 1),
        key=lambda place: (-sizes[place], place),
    )
    return [Group(*place, chosen[place], len(order) == 1) for place in order[:MOST_GROUPS]]


def _preference(board_table: BoardTable) -> tuple[object, ...]:
    table = board_table.table
    return (
        table.protocol not in PREFERRED,
        table.text not in (None, "tokenised"),
        -len(table.rows),
        table.protocol,
        table.text or "",
    )


def points(table: Table, column: str | None) -> list[Point]:
    """The rows that have a number in ``column``, in the table's order."""
    if column is None or column not in table.columns:
        return []
    i = table.columns.index(column)
    return [
        Point(label(row, table), row, cell)
        for row in table.rows
        if (cell := row.cells[i]) is not None
    ]


def one_point_per_method(points: Sequence[Point], table: Table) -> list[Point]:
    """One point per method and variant where that is clear: of rows that differ in their recipe the one with most seeds.

    Where several have as many, all stay: taking the best of them would be a choice by test scores.
    """
    named: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        sender = tuple(
            value for key, value in point.row.differs if key == SENDER
        )  # a submitted row stands for nobody else's
        named.setdefault(
            (point.row.name, point.row.setting, point.row.backbone, *sender), []
        ).append(point)
    kept: set[tuple[str, ...]] = set()
    for alike in named.values():
        most = max(len(point.row.runs) for point in alike)
        chosen = [point for point in alike if len(point.row.runs) == most]
        kept.update(point.row.runs for point in chosen)
        if len(chosen) == 1 < len(alike):
            points = [
                replace(
                    p,
                    label=label(
                        replace(p.row, differs=tuple(d for d in p.row.differs if d[0] == SENDER)),
                        table,
                    ),
                )
                if p.row is chosen[0].row
                else p
                for p in points
            ]
    return [point for point in points if point.row.runs in kept]


def label(row: Row, table: Table) -> str:
    """What a row is called beside its point; it may be cut."""
    beside = variant_words(row, table)
    text = f"{row.label}+{beside}" if row.variant else f"{row.label} {beside}".strip()
    return visible(text, limit=LONGEST)


def join_points(first: Sequence[Point], second: Sequence[Point]) -> list[tuple[Point, Point]]:
    """The points of the same runs."""
    by_run = {run: point for point in second for run in point.row.runs}
    return [
        (point, other)
        for point in first
        if (other := next((by_run[r] for r in point.row.runs if r in by_run), None))
    ]


def mean_and_ends(cell: Cell) -> tuple[float | str, ...]:
    """(mean, low, high) as a figure's data have them; "" for ends that there are not."""
    bar = ends(cell)
    return round(cell.mean, 4), *(("", "") if bar is None else (round(bar[0], 4), round(bar[1], 4)))


def ends(cell: Cell) -> tuple[float, float] | None:
    """The ends of a cell's error bar, of the same kind as the table's: the interval, else one standard deviation each way."""
    if cell.spread is not None:
        return cell.spread.low, cell.spread.high
    return None if cell.sd is None else (cell.mean - cell.sd, cell.mean + cell.sd)


def short_name(backbone: str) -> str:
    """A backbone's name; of a folder its last part."""
    return PurePath(backbone).name or backbone


def slug(*parts: str) -> str:
    """Letters, digits and hyphens: fit for a file's name and an id. Where that loses something, a hash keeps different ones apart."""
    whole = "-".join(parts).replace("+", "-with-")
    plain = unicodedata.normalize("NFKD", whole).encode("ascii", "ignore").decode().lower()
    plain = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if plain == whole and len(plain) <= LONGEST_NAME:
        return plain
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{plain[:LONGEST_NAME].strip('-')}-{digest}".lstrip("-")
