"""The tables of a board, in the order in which a reader wants them, each with its address and what its columns are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.publish import costs, selection
from bench.publish.board import Beside, BoardTable
from bench.publish.judging import Judged
from bench.publish.names import public_name, slug, unused
from bench.runs.record import RunRecord
from bench.statistics.table import Cell, Row, Table

SUITES = ("sts", "cxc", "transfer", "fewshot", "clustering", "geometry", "mteb")
SETTINGS = ("unsupervised", "supervised", "none", None)
BESIDE = {"sts": (("cxc", "cxc-promcse/1"),)}
"""Suites of one column that are shown beside another's average, as the papers set domain shift beside STS."""


def board_tables(judged: Sequence[Judged], records: Mapping[str, RunRecord]) -> tuple[BoardTable, ...]:
    """Blocks of one setting and backbone, the largest first within a setting; in a block the suites in the papers' order."""
    rows: dict[tuple[str | None, str | None], int] = {}
    for one in judged:
        place = (one.table.setting, one.table.backbone)
        rows[place] = max(rows.get(place, 0), len(one.table.rows))
    ordered = sorted(judged, key=lambda one: _place(one, rows))
    taken: set[str] = set()
    made = []
    for one in ordered:
        made.append(_board_table(one, records, taken))
        taken.add(made[-1].anchor)
    return tuple(replace(one, beside=_beside(one, made)) for one in made)


def _place(one: Judged, rows: Mapping[tuple[str | None, str | None], int]) -> tuple[object, ...]:
    table = one.table
    suite = SUITES.index(table.suite) if table.suite in SUITES else len(SUITES)
    return (bool(one.chosen_on), SETTINGS.index(table.setting), -rows[table.setting, table.backbone], table.backbone or "", suite,
            table.suite, table.protocol, table.text != "tokenised", table.text or "", one.chosen_on)  # fmt: skip


def _board_table(one: Judged, records: Mapping[str, RunRecord], taken: set[str]) -> BoardTable:
    costed = costs.comparable(one.table, records)
    table = _public(costed.table)
    untrained = "untrained" if table.setting == "none" else table.setting
    address = slug(
        untrained, table.backbone, table.suite, table.protocol, table.text, f"on {one.chosen_on}" if one.chosen_on else None
    )
    said = selection.words(table, records)
    if one.chosen_on:
        said += " This is no development set: these scores stand in a table of their own."
    return BoardTable(
        anchor=unused(address, taken), table=table, selection=said, costs_comparable=costed.comparable, cost_note=costed.note,
        baselines={name: _public(_costs_of(costed.table, other)) for name, other in one.baselines.items()}, cost_of=costed.of,
    )  # fmt: skip


def _costs_of(table: Table, other: Table) -> Table:
    """``other`` with the costs of the same rows of ``table``."""
    return replace(other, rows=tuple(replace(b, cost=a.cost) for a, b in zip(table.rows, other.rows, strict=True)))


def _public(table: Table) -> Table:
    """With backbones by their public names."""
    rows = tuple(replace(row, backbone=public_name(row.backbone)) for row in table.rows)
    return replace(table, rows=rows, backbone=None if table.backbone is None else public_name(table.backbone))


def _beside(one: BoardTable, every: Sequence[BoardTable]) -> tuple[Beside, ...]:
    found = []
    for suite, protocol in BESIDE.get(one.table.suite, ()):
        for other in every:
            table = other.table
            same = (table.setting, table.backbone, table.text) == (one.table.setting, one.table.backbone, one.table.text)
            if not same or (table.suite, table.protocol) != (suite, protocol) or table.columns != table.columns[:1]:
                continue
            cells = tuple(_cell_of(row, table) for row in one.table.rows)
            if any(cells):
                found.append(Beside(name=table.columns[0], suite=suite, protocol=protocol, metric=table.metric, anchor=other.anchor,
                                    cells=cells))  # fmt: skip
    return tuple(found)


def _cell_of(row: Row, table: Table) -> Cell | None:
    """The cell of the same runs in a table of one column; None where it has other runs, even other seeds."""
    return next((other.cells[0] for other in table.rows if set(other.runs) == set(row.runs)), None)
