"""The table "How many seeds tell a gain of this size?" of a board: smallest gains and numbers of
seeds from its own spreads, next to the gains that papers report."""

from __future__ import annotations

from collections.abc import Sequence

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.text import list_names, plural, slug
from bench.board.board import Board
from bench.compare.formatting import score, signed_number
from bench.compare.gain_sizes import COUNTS, MOST_SEEDS, SpreadOfRow, median_spread
from bench.compare.statistics.differences import POWER
from bench.compare.statistics.table import Table, most_seeds
from bench.compare.words.finding import main_table
from bench.compare.words.names import baseline_name
from bench.papers import REPORTED, claimed_gain, reported_sd

BACKBONE = "bert-base-uncased"
"""The backbone of most gains that papers report."""
MEDIAN = "the median row"
REPORTED_GAINS = (1.64, 2.24)
"""Gains on BERT-base that papers report for Focal-InfoNCE and PromCSE."""


def gain_sizes_grid(board: Board) -> Grid | None:
    """Lay out the table; None if the board has no spreads to compute it from."""
    table = main_table([shown.table for shown in board.tables])
    if table is None or len(board.spreads) < 2:
        return None
    middle = median_spread(board.spreads, MEDIAN)
    rows: list[list[GridCell | str]] = []
    for spread in _one_of_each_method(board.spreads):
        claim = _claim(spread, table)
        if claim is not None:
            rows.append([*_sizes(spread), *claim])
    rows.append([*_sizes(middle), "", ""])
    notes = [_meaning(table)]
    if table.suite == "sts":
        reported = _reported(middle)
        rows.append([*_sizes(reported), "", ""])
        notes.append(_single_runs(middle, reported))
    return grid(
        [
            GridColumn("a method that spreads like", wrap=24),
            GridColumn("SD seeds", right=True),
            GridColumn("SD items", right=True),
            *(GridColumn(plural(count, "seed"), right=True) for count in COUNTS),
            GridColumn("reported gain", right=True),
            GridColumn("seeds for it", right=True),
        ],
        rows,
        notes=notes,
    )


def _one_of_each_method(spreads: Sequence[SpreadOfRow]) -> list[SpreadOfRow]:
    """Return, of several rows of one method and variant, that with most seeds; all of equals."""
    most = most_seeds(spread.row for spread in spreads if spread.row is not None)
    kept = []
    for spread in spreads:
        row = spread.row
        if row is not None and len(row.runs) == most[row.name, row.setting]:
            kept.append(spread)
    return kept


def _sizes(spread: SpreadOfRow) -> list[str]:
    """Return the name, both spreads, and the smallest gain for each number of seeds."""
    sizes = [f"{spread.smallest_gain(count):.1f}" for count in COUNTS]
    return [spread.name, score(spread.sd), score(spread.items), *sizes]


def _claim(spread: SpreadOfRow, table: Table) -> tuple[GridCell, str] | None:
    """Return the gain that a paper reports for a row's method, with its source, and the seeds that
    find it; None for no gain."""
    row = spread.row
    if row is None or table.suite != "sts":
        return None
    # another text is no other method, other values are
    if {name for name, _ in row.differs} - {"corpus"}:
        return None
    found = claimed_gain(row.method, row.variant, row.setting, BACKBONE)
    if found is None or found[0] <= 0:
        return None
    gain, result = found
    source = f"#printed-{slug(result.paper, result.table)}"
    return GridCell(text=signed_number(gain), link=source), _count(spread, gain)


def _count(spread: SpreadOfRow, gain: float) -> str:
    seeds = spread.seeds_for(gain)
    return f"more than {MOST_SEEDS}" if seeds is None else str(seeds)


def _reported(middle: SpreadOfRow) -> SpreadOfRow:
    """Return a row in which both methods spread as SimCSE does in reports on BERT-base."""
    sd = reported_sd()
    name = f"SimCSE on BERT-base, {len(REPORTED)} reports"
    return SpreadOfRow(name=name, row=None, sd=sd, base_sd=sd, items=middle.items)


def _meaning(table: Table) -> str:
    base = baseline_name(table)
    return (
        f"Smallest true gain over {base}, in points, that one planned comparison finds in "
        f"{100 * POWER:.0f} of 100 cases with so many seeds of both methods (two-sided, 5 %; one "
        "seed: spreads known from elsewhere). SD seeds: of the differences seed by seed in this "
        "table, or of the reports; SD items: of the difference over other test items, of a row far "
        "from the baseline as near it. The spreads are those of this board's "
        f"backbone and training; reported gains are of {BACKBONE}."
    )


def _single_runs(middle: SpreadOfRow, reported: SpreadOfRow) -> str:
    """Say which gains single runs settle, and how many seeds gains take at the reported spread."""
    here, there = middle.smallest_gain(1), reported.smallest_gain(1)
    found = [f"{signed_number(gain)} takes {_count(reported, gain)}" for gain in REPORTED_GAINS]
    return (
        f"So one run of each method settles no gain below {here:.1f} points here, and none below "
        f"{there:.1f} at the spread that is reported for BERT-base, at which "
        f"{list_names(found)} seeds of each method."
    )
