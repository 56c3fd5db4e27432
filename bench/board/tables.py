"""The tables of a version, each with its address and with costs that may be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.base.text import slug
from bench.board.addresses import unused_name
from bench.board.making import checkpoint_rule, count_values, machine_of
from bench.compare.statistics.table import Row, Table
from bench.compare.words.names import row_name, short_text
from bench.records.record import RunRecord

MEASURED = ("train_seconds", "peak_memory_bytes")
"""Costs that depend on the machine."""


@dataclass(frozen=True, kw_only=True)
class BoardTable:
    """One comparable set of numbers: rows are methods, columns are tasks."""

    # "unsupervised-builtin-sts-senteval-all-1"; the same in all versions
    anchor: str
    # judged against its baseline, if it has one
    table: Table
    # how checkpoints were chosen: "best on STS-B dev, scored every 125 steps"
    selection: str
    # the machine that times and memory refer to; "" if there are none
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
        table.chosen_on and f"on {table.chosen_on}",
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
    said = f"Checkpoint: {rules}." if rules else ""
    if table.chosen_on:
        said += " This is not a development set, so these scores have a table of their own."
    return said


def with_comparable_costs(table: Table, records: Mapping[str, RunRecord]) -> tuple[Table, str]:
    """Keep times and memory only for rows that ran on the most common machine and version of bench.

    Returns the table and a note that names the machine and the other rows ("" if nothing was
    timed). Numbers of trained parameters are always kept.
    """
    machines = {}
    for row in table.rows:
        if row.cost and any(getattr(row.cost, name) is not None for name in MEASURED):
            machines[row.runs] = {machine_of(records[run]) for run in row.runs}
    if not machines:
        return table, ""
    usual = _most_common(machines.values())
    elsewhere = {runs for runs, found in machines.items() if usual is None or found != {usual}}
    note = f"Time and memory: {usual or 'unknown hardware or version'}."
    names = [row_name(row, table) for row in table.rows if row.runs in elsewhere]
    if names:
        note += f" Not shown, because they ran elsewhere: {', '.join(names)}."
    rows = tuple(_without_measured(row) if row.runs in elsewhere else row for row in table.rows)
    return replace(table, rows=rows), note


def _most_common(machines: Collection[set[str | None]]) -> str | None:
    """Return the machine that ran most rows as a whole, the first by name if there are several."""
    counts: Counter[str] = Counter()
    for found in machines:
        if len(found) == 1:
            counts.update(machine for machine in found if machine)
    return min(counts, key=lambda machine: (-counts[machine], machine), default=None)


def _without_measured(row: Row) -> Row:
    if row.cost is None:
        return row
    return replace(row, cost=replace(row.cost, **dict.fromkeys(MEASURED)))
