"""How many seeds find a difference: as a table for the terminal, and as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.compare.seeds import SeedsNeeded, SeedsOfRow
from bench.compare.statistics.differences import POWER
from bench.compare.statistics.power import MOST
from bench.show.grid import Grid, GridColumn, grid

SCHEMA = "bench.seeds/1"


def seeds_grid(found: SeedsNeeded) -> Grid:
    """Return a line for each spread of the table at hand."""
    base = found.baseline
    as_it_is = f"seeds beside {base} as it is"
    if found.baseline_seeds is not None:
        as_it_is += f" ({found.baseline_seeds})"
    return grid(
        [
            GridColumn("a new row that spreads like", wrap=24),
            GridColumn("n", right=True),
            GridColumn("SD", right=True),
            GridColumn("items", right=True),
            GridColumn(as_it_is, right=True, wrap=14),
            GridColumn(f"seeds of both, {base} too", right=True, wrap=14),
        ],
        [_cells(row) for row in found.rows],
        title=f"Seeds that find {found.size:g} points more than {base} on {found.column} "
        f"in {100 * POWER:.0f} of 100 tables ({found.table})",
        notes=[
            f"found: the sign ▲, as one more row of this table: {100 * found.level:.3g} % "
            "interval, "
            f"{found.comparisons} comparisons",
            "SD: over the n seeds at hand, of which the spread is itself known badly if they are "
            "few; "
            "items: standard error of the difference over items",
            f"-: {MOST} seeds are not enough, or the baseline has fewer than three",
        ],
    )


def _cells(row: SeedsOfRow) -> list[str]:
    counts = ["-" if count is None else str(count) for count in (row.seeds, row.of_both)]
    n = "" if row.n is None else str(row.n)
    return [row.name, n, f"{row.sd:.2f}", f"{row.items_sd:.2f}", *counts]


def seeds_data(found: Sequence[SeedsNeeded]) -> dict[str, Any]:
    """Schema ``bench.seeds/1``: numbers in full; a count is null if ``most`` seeds are not
    enough."""
    return {
        "schema": SCHEMA,
        "power": POWER,
        "most": MOST,
        "tables": [asdict(needed) for needed in found],
    }
