"""A method's rows on all tables of a board: one table per suite and protocol, whatever the setting and backbone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.pages.addresses import link, run_page
from bench.pages.places import Place
from bench.pages.says import says
from bench.publish.names import public_name
from bench.statistics.table import Cell
from bench.tables.lines import SIGNS
from bench.tables.words import is_top, metric_words, rank_words, score, signed, spread

VERDICTS = {"better": "better than", "worse": "worse than", "equivalent": "equivalent to", "unknown": "cannot be told from"}


@dataclass(frozen=True, kw_only=True)
class RowCell:
    """One number of the method."""

    text: str = field(metadata=says("mean over seeds"))
    spread: str = field(metadata=says("what stands after the plus-minus sign; empty where nothing does"))
    mark: str = field(metadata=says("best, second or empty: among all rows of its table"))
    top: bool = field(metadata=says("on the column that ranks: its row may be the best"))
    title: str = field(metadata=says("in words: seeds, items, interval, difference from the baseline"))


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """The method as configured, in one setting on one backbone."""

    name: str = field(metadata=says("variant and whatever sets the row apart; empty where nothing does"))
    setting: str = field(metadata=says("setting in words"))
    backbone: str = field(metadata=says("public name of the backbone"))
    table: str = field(metadata=says("link to its table on the main page"))
    rank: str = field(metadata=says("place among all rows of that table; empty where it was not tested"))
    verdict: str = field(metadata=says("sign of the difference from the table's baseline; may be empty"))
    verdict_words: str = field(metadata=says("the same in words; may be empty"))
    runs: tuple[tuple[str, str], ...] = field(metadata=says("(seed, link) of each run"))
    cells: tuple[RowCell | None, ...] = field(metadata=says("one per column, None where nothing was scored"))


@dataclass(frozen=True, kw_only=True)
class MethodTable:
    """Numbers of one suite and protocol, which can be compared along a column as far as setting and backbone allow."""

    suite: str = field(metadata=says("name of the suite"))
    metric: str = field(metadata=says("what the numbers are, in words"))
    protocol: str = field(metadata=says("how it was scored, and of which text form"))
    columns: tuple[str, ...] = field(metadata=says("tasks, and the average last where the suite has one"))
    average: int | None = field(metadata=says("index of the average"))
    rows: tuple[MethodRow, ...] = field(metadata=says("in the order of the board's tables"))


def method_tables(found: Sequence[Place], up: int) -> tuple[MethodTable, ...]:
    """From a page that lies ``up`` folders deep."""
    groups: dict[tuple[object, ...], list[Place]] = {}
    for place in found:
        table = place.of.table
        groups.setdefault((table.suite, table.protocol, table.text, table.metric, table.columns), []).append(place)
    return tuple(_table(places, up) for places in groups.values())


def _table(places: Sequence[Place], up: int) -> MethodTable:
    table = places[0].of.table
    return MethodTable(
        suite=table.suite, metric=metric_words(table.metric), protocol=table.protocol + (f", {table.text} text" if table.text else ""),
        columns=table.columns, rows=tuple(_row(place, up) for place in places),
        average=len(table.columns) - 1 if len(table.columns) > 2 and table.head == table.columns[-1] else None,
    )  # fmt: skip


def _row(place: Place, up: int) -> MethodRow:
    row, table = place.row, place.of.table
    head = None if table.head is None else row.cells[table.columns.index(table.head)]
    verdict = head.against.verdict if head is not None and head.against is not None else None
    parts = ([row.variant] if row.variant else []) + [f"{key}={value}" for key, value in row.differs]
    runs = zip(row.runs, row.seeds, strict=True)
    return MethodRow(
        name=" ".join(parts), setting="nothing trained" if row.setting == "none" else row.setting, backbone=public_name(row.backbone),
        table=f"{link('index.html', up)}#{place.of.anchor}", rank="" if row.rank is None else f"{rank_words(row)} of {len(table.rows)}",
        verdict=SIGNS.get(verdict or "", ""), verdict_words=f"{VERDICTS[verdict]} {table.baseline}" if verdict in VERDICTS else "",
        runs=tuple(("any" if seed is None else str(seed), link(run_page(run_id), up)) for run_id, seed in runs),
        cells=tuple(None if cell is None else _cell(cell, place, top=cell is head and is_top(row)) for cell in row.cells),
    )  # fmt: skip


def _cell(cell: Cell, place: Place, *, top: bool) -> RowCell:
    half = spread(cell)
    d = cell.decimals
    told = [f"{len(cell.values)} seed{'s' * (len(cell.values) != 1)}, {cell.n:,} items"]
    if cell.spread is not None:
        told.append(f"{100 * cell.spread.level:g} % interval {score(cell.spread.low, d)} to {score(cell.spread.high, d)}")
    if cell.against is not None and not place.row.is_baseline:
        told.append(f"{signed(cell.against.difference, d)} from {place.of.table.baseline}")
    if top:
        told.append("its row may be the best")
    return RowCell(
        text=score(cell.mean, d).replace("-", "\N{MINUS SIGN}"), spread="" if half is None else score(half, d), mark=cell.mark,
        top=top, title="; ".join(told).replace("-", "\N{MINUS SIGN}"),
    )  # fmt: skip
