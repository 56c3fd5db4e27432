"""The baseline of a table, and the difference of each cell from it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from bench.base.errors import BenchError
from bench.compare.statistics.table import Against, Cell, Row, Table
from bench.compare.words.names import method_title, row_name, row_names

BASELINE = "simcse"
"""The row that others are compared with if no baseline is named."""


def compare_with_baseline(table: Table, baseline: str | None) -> Table:
    """Return the table with differences from the baseline's cells, as printed; unchanged if it has
    no such row.

    The baseline is fixed before the scores: the row that is called so, or without a name the row
    ``simcse`` without a variant; of several, the one with more seeds than any other. If none has
    more, a table has no baseline without a name, and BenchError is raised for a name.
    """
    base = _default(table) if baseline is None else find_row(table, baseline, "--baseline")
    if base is None:
        return table
    rows = []
    for row in table.rows:
        if row is base:
            rows.append(replace(row, is_baseline=True))
        else:
            cells = tuple(map(_less, row.cells, base.cells))
            rows.append(replace(row, cells=cells))
    namesakes = [row for row in table.rows if row.name == base.name]
    name = base.name
    if table.backbone is None and len(namesakes) > 1:
        name = f"{base.name} {base.backbone}"
    return replace(table, rows=tuple(rows), baseline=name)


def _default(table: Table) -> Row | None:
    named = [row for row in _trained_or_fitted(table) if row.name == BASELINE]
    rows = _with_most_seeds(named)
    return rows[0] if len(rows) == 1 else None


def _with_most_seeds(rows: Sequence[Row]) -> list[Row]:
    """Keep the rows with the most seeds, unless they differ in setting or backbone: those are no
    repetitions of one method."""
    if len({(row.setting, row.backbone) for row in rows}) > 1:
        return list(rows)
    most = max((len(row.runs) for row in rows), default=0)
    return [row for row in rows if len(row.runs) == most]


def find_row(table: Table, name: str, option: str) -> Row | None:
    """Return the row of a run's id or of a name, as tables or as commands write it and as short as
    tells it from others; None if the table has none.

    Of rows that differ only in recipe values it is the one with more seeds than any other. An
    untrained start is no method's row: it has its whole name alone. Raises BenchError, which begins
    with ``option``, if there are several.
    """
    every, methods = _candidates(table), _trained_or_fitted(table)
    wanted = name.casefold()
    for rows, names_of in (
        (every, lambda row: row.runs),
        (every, lambda row: (row_name(row, table),)),
        (methods, lambda row: (method_title(row), row.name)),
        (
            methods,
            lambda row: (f"{method_title(row)} {row.backbone}", f"{row.name} {row.backbone}"),
        ),
        (methods, lambda row: (row.method, row.backbone)),
    ):
        named = [row for row in rows if wanted in map(str.casefold, names_of(row))]
        named = _with_most_seeds(named)
        if len(named) == 1:
            return named[0]
        if named:
            names = sorted(row_names(named, table))
            raise BenchError(
                f"{option}: {name} matches {len(named)} rows of {table.suite}",
                "choose one: " + "; ".join(map(shlex.quote, names)),
            )
    return None


def _candidates(table: Table) -> list[Row]:
    """Return the rows with a value."""
    return [row for row in table.rows if any(row.cells)]


def _trained_or_fitted(table: Table) -> list[Row]:
    """Return the rows with a value that are no untrained start."""
    return [row for row in _candidates(table) if not row.is_start]


def _less(cell: Cell | None, base: Cell | None) -> Cell | None:
    if cell is None or base is None:
        return cell
    return replace(cell, against=Against(difference=cell.rounded - round(base.mean, cell.decimals)))
