"""The scores of a run, with the intervals of ``bench compare``."""

from __future__ import annotations

from collections.abc import Iterator

from bench.compare.statistics.table import Cell, Table
from bench.compare.tables import TableOptions, make_tables
from bench.records.run import Run


def scored_cells(run: Run) -> Iterator[tuple[Table, str, Cell]]:
    """Yield (table, task, cell) of every score of a run, with the interval of ``bench compare``."""
    if not run.scores:
        return
    for table in make_tables([run], TableOptions()):
        for task, cell in zip(table.columns, table.rows[0].cells, strict=True):
            if cell is not None:
                yield table, task, cell
