"""One row per method over all suites: its rank in each, and how far each task lies from the baseline. No total: suites have no common scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.board.board import BoardTable
from bench.compare.formatting import variant_words
from bench.compare.statistics.table import LOWER_IS_BETTER, Row, Table

MOST_ROWS = 100
"""Rows of an overview; a page of a thousand runs has the others in its tables."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One task of a row: how far it lies from the baseline's."""

    task: str
    difference: float  # points
    told: bool  # the comparison says better or worse, as one of the single tasks


@dataclass(frozen=True, kw_only=True)
class SuiteRow:
    """One row in one suite."""

    row: Row
    steps: tuple[Step, ...]  # the tasks that both have, in the suite's order; empty for the baseline, and where nothing was compared


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The suites of one setting and backbone, side by side. ``standings[i][j]`` is row i in suite j, None where it was not scored."""

    setting: str | None
    backbone: str | None
    suites: tuple[BoardTable, ...]
    names: tuple[tuple[str, str], ...]  # method, and what stands beside it
    standings: tuple[tuple[SuiteRow | None, ...], ...]
    left_out: int  # rows beyond MOST_ROWS

    @property
    def baselines(self) -> tuple[str, ...]:
        """What the tasks are compared with: mostly one method for all suites."""
        return tuple(dict.fromkeys(suite.table.baseline for suite in self.suites if suite.table.baseline))


def overviews(tables: Sequence[BoardTable]) -> tuple[Overview, ...]:
    """Of each setting and backbone that has at least two suites whose rows can be ranked; what nobody here checked is not among them."""
    places: dict[tuple[str | None, str | None], dict[str, BoardTable]] = {}
    # of several protocols of a suite, the one beside another's columns
    shown = {other.anchor for board_table in tables for other in board_table.beside}
    for board_table in tables:
        table = board_table.table
        if board_table.checked and table.head is not None and table.metric not in LOWER_IS_BETTER and len(table.rows) > 1:
            suites = places.setdefault((table.setting, table.backbone), {})
            if table.suite not in suites or (board_table.anchor in shown and suites[table.suite].anchor not in shown):
                suites[table.suite] = board_table
    return tuple(
        _overview(setting, backbone, tuple(suites.values()))
        for (setting, backbone), suites in places.items()
        if setting is not None and backbone is not None and len(suites) > 1
    )


def _overview(setting: str | None, backbone: str | None, suites: tuple[BoardTable, ...]) -> Overview:
    """Rows are those of the same runs; in the order of the first suite that has them."""
    rows: list[tuple[tuple[str, str], dict[int, SuiteRow]]] = []
    by_run: dict[str, int] = {}
    for j, table in enumerate(suites):
        base = next((row for row in table.table.rows if row.is_baseline), None)
        for row in table.table.rows:
            i = next((by_run[run] for run in row.runs if run in by_run), None)
            if i is None or j in rows[i][1]:
                i = len(rows)
                rows.append(((row.method, variant_words(row, table.table)), {}))
            by_run.update(dict.fromkeys(row.runs, i))
            rows[i][1][j] = SuiteRow(row=row, steps=_steps(row, base, table.table))
    shown = rows[:MOST_ROWS]
    return Overview(
        setting=setting,
        backbone=backbone,
        suites=suites,
        names=tuple(name for name, _ in shown),
        left_out=len(rows) - len(shown),
        standings=tuple(tuple(standings.get(j) for j in range(len(suites))) for _, standings in shown),
    )


def _steps(row: Row, base: Row | None, table: Table) -> tuple[Step, ...]:
    if base is None or row is base:
        return ()
    alone = len(table.columns) == 1
    return tuple(
        Step(task=task, difference=cell.mean - other.mean, told=cell.against is not None and cell.against.verdict in ("better", "worse"))
        for task, cell, other in zip(table.columns, row.cells, base.cells, strict=True)
        if cell is not None and other is not None and (alone or task != table.head)
    )
