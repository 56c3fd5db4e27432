"""The tables of a version, each with its address and with costs that may be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bench.base.text import slug
from bench.board.addresses import unused_name
from bench.board.making import checkpoint_rule, count_values, machine_of
from bench.compare.costs import COSTS
from bench.compare.statistics.table import Row, Table
from bench.compare.words.finding import verdict_word
from bench.compare.words.names import short_text
from bench.records.names import protocol_text
from bench.records.record import RunRecord

OF_MACHINE = [column for column in COSTS if column.of_machine]
MEASURED = {name for column in OF_MACHINE for name in column.numbers}
"""Costs that depend on the machine."""
SAME_WORK = 1.5
"""Seeds of one row do the same work. If one took this many times as long as another, times say more
of what else ran on the machine than of the method."""
PROTOCOLS = {"cxc": "cxc-promcse/1"}
"""The protocol of a suite with several that its papers print."""


@dataclass(frozen=True, kw_only=True)
class BoardTable:
    """One comparable set of numbers: rows are methods, columns are tasks."""

    # "unsupervised-builtin-sts-senteval-all-1"; the same in all versions
    anchor: str
    # judged against its baseline, if it has one
    table: Table
    # how checkpoints were chosen: "best on STS-B dev, scored every 125 steps"
    selection: str
    # the machine that times and memory refer to, or why they are left out; "" if there are none
    cost_note: str = ""


def board_tables(
    tables: Sequence[Table], records: Mapping[str, RunRecord]
) -> tuple[BoardTable, ...]:
    """Give each table its address and its notes, in the order in which they come.

    ``records``: by run id. Costs of submitted runs are left out: nobody saw them.
    """
    made: dict[str, BoardTable] = {}
    for table in tables:
        if table.sender:
            table = replace(table, rows=tuple(replace(row, cost=None) for row in table.rows))
        anchor = unused_name(_anchor(table), made)
        costed, cost_note = with_comparable_costs(table, records)
        made[anchor] = BoardTable(
            anchor=anchor,
            table=costed,
            selection=_selection(table, records),
            cost_note=cost_note,
        )
    return tuple(made.values())


def _anchor(table: Table) -> str:
    """Return the address of a table on its page, which is the same in all versions."""
    name = slug(
        "untrained" if table.setting == "none" else table.setting,
        table.backbone,
        table.suite,
        table.protocol,
        table.budget,
        table.text and f"on {short_text(table.text)}",
        table.question if table.is_further else None,
        table.sender and f"by {table.sender}",
    )
    return name or "table"


def _selection(table: Table, records: Mapping[str, RunRecord]) -> str:
    """Say how the checkpoints of a table's runs were chosen."""
    runs = [run for row in table.rows for run in row.runs]
    rules = count_values((checkpoint_rule(records[run]) for run in runs), "run")
    return f"Checkpoint: {rules}." if rules else ""


def with_comparable_costs(table: Table, records: Mapping[str, RunRecord]) -> tuple[Table, str]:
    """Keep times and memory only if one machine and version of bench made all of them, and seeds of
    one row took about as long.

    Returns the table and a note that names the machine, or says why times are left out; "" without
    times. Numbers of trained parameters are always kept.
    """
    machines: set[str | None] = set()
    slowest = 1.0
    for row in table.rows:
        if row.cost and any(row.cost.get(name) is not None for name in MEASURED):
            runs = [records[run] for run in row.runs]
            machines |= {machine_of(run) for run in runs}
            slowest = max(slowest, _slowest(runs))
    machine = next(iter(machines), None)
    if len(machines) == 1 and machine and slowest <= SAME_WORK:
        return table, f"Time and memory: {machine}."
    note = ""
    if slowest > SAME_WORK:
        note = (
            f"Times are left out: of two seeds of one row, one took {slowest:.1f} times as long, "
            "so other work ran on the machine."
        )
    return replace(table, rows=tuple(map(_without_measured, table.rows))), note


def _slowest(runs: Sequence[RunRecord]) -> float:
    """Return how many times as long as the fastest run the slowest one trained; 1 without times."""
    seconds = [run.cost.train_seconds for run in runs if run.cost.train_seconds]
    return max(seconds) / min(seconds) if seconds else 1.0


def _without_measured(row: Row) -> Row:
    if row.cost is None:
        return row
    kept = {name: None if name in MEASURED else value for name, value in row.cost.items()}
    return replace(row, cost=kept)


class PageTable(NamedTuple):
    """A table that pages show, and the tables of the same runs under other protocols, which it
    replaces: each with the largest difference between two scores of a row, in points."""

    shown: BoardTable
    others: tuple[tuple[BoardTable, float], ...]


def page_tables(tables: Sequence[BoardTable]) -> tuple[PageTable, ...]:
    """Return the tables that pages show: of two protocols with the same runs and the same words,
    the one of ``PROTOCOLS``."""
    folded: set[str] = set()
    others: dict[str, list[tuple[BoardTable, float]]] = {}
    for shown in tables:
        for other in tables:
            if _says_the_same(other.table, shown.table):
                apart = _largest_difference(other.table, shown.table)
                others.setdefault(shown.anchor, []).append((other, apart))
                folded.add(other.anchor)
    return tuple(
        PageTable(shown, tuple(others.get(shown.anchor, ())))
        for shown in tables
        if shown.anchor not in folded
    )


def _says_the_same(other: Table, usual: Table) -> bool:
    """Say if a table has the runs of one in its suite's usual protocol, and a word for each row
    that is the same."""
    if PROTOCOLS.get(usual.suite) != usual.protocol or protocol_text(other.protocol):
        return False
    if other.protocol == usual.protocol or other.head is None or other.columns != usual.columns:
        return False
    if replace(other, rows=(), protocol="", notes=(), tested=None) != replace(
        usual, rows=(), protocol="", notes=(), tested=None
    ):
        return False
    words = [{row.runs: verdict_word(row, table) for row in table.rows} for table in (other, usual)]
    return words[0] == words[1]


def _largest_difference(other: Table, usual: Table) -> float:
    """Return by how much two scores of the same runs differ at most, in points."""
    means = {row.runs: row.cells[-1] for row in usual.rows}
    found = []
    for row in other.rows:
        ours, theirs = row.cells[-1], means[row.runs]
        if ours is not None and theirs is not None:
            found.append(abs(ours.mean - theirs.mean))
    return max(found, default=0.0)


RowPlace = tuple[str, int]
"""The anchor of a table, and the number of a row in it."""


def row_anchors(tables: Sequence[PageTable]) -> dict[RowPlace, str]:
    """Return the id of each row on the page. It is made of the row's table and name, so that it is
    the same in all versions; the same runs under another protocol have the same."""
    taken = {page.shown.anchor for page in tables}
    anchors = {}
    for page in tables:
        of_runs = {}
        for place, row in enumerate(page.shown.table.rows):
            differs = [f"{key} {value}" for key, value in row.differs]
            backbone = None if page.shown.table.backbone else row.backbone
            name = slug(row.label, row.variant, backbone, *differs, longest=80) or "row"
            anchor = unused_name(f"{page.shown.anchor}--{name}", taken)
            taken.add(anchor)
            anchors[page.shown.anchor, place] = of_runs[row.runs] = anchor
        for other, _ in page.others:
            for place, row in enumerate(other.table.rows):
                anchors[other.anchor, place] = of_runs[row.runs]
    return anchors
