"""The finding "How many seeds does a gain need?" of a board: the gains that papers claim, and the
seeds that find them, from the board's own spreads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.base.grid import Grid, GridCell, GridColumn, grid
from bench.base.text import list_names, plural, slug
from bench.board.board import Board
from bench.compare.claims import JudgedClaim
from bench.compare.formatting import score, signed_number
from bench.compare.gain_sizes import COUNTS, MOST_SEEDS, SpreadOfRow, median_spread
from bench.compare.statistics.differences import POWER
from bench.compare.statistics.table import Table, most_seeds
from bench.compare.statistics.terms import CORPUS
from bench.compare.words.names import baseline_name, unlike_planned
from bench.papers import AVERAGE, REPORTED, ReferenceResult, claimed_gain, reported_sd
from bench.papers.names import CLAIMED_ON, printed_backbone, printed_name

MEDIAN = "the median row"
NOTED_GAINS = (1.64, 2.24)
"""Claimed gains that the note on published single runs takes as examples."""


@dataclass(frozen=True, kw_only=True)
class GainSizes:
    """The finding, the table behind it, and a note on runs that others published."""

    # "A gain below 2.5 points needs more than one run per method here."
    finding: str
    table: Grid
    # "" if the board is not about STS
    note: str


def gain_sizes(board: Board) -> GainSizes | None:
    """Return the finding; None if the board has no spreads to compute it from."""
    table = board.main
    if table is None or len(board.spreads) < 2:
        return None
    middle = median_spread(board.spreads, MEDIAN)
    rows: list[list[GridCell | str]] = []
    for spread in _one_of_each_method(board.spreads):
        gain = _claimed(spread, table)
        if gain is not None:
            rows.append([spread.name, *gain_cells(spread, *gain), *_sizes(spread)])
    for claim in _claims_without_row(board, table):
        name = printed_name(claim.claim.paper)
        assert claim.claim.printed is not None
        gain = claim.claim.printed.value, claim.claim.printed.cell
        rows.append([f"{name}: no row here", *gain_cells(middle, *gain), *_sizes(middle)])
    rows.append([MEDIAN, "", "", *_sizes(middle)])
    needs_more = f"{middle.smallest_gain(1):.1f} points"
    return GainSizes(
        finding=f"A gain below {needs_more} needs more than one run per method here.",
        table=grid(
            [
                GridColumn("a method that spreads like", wrap=24),
                GridColumn("published gain", right=True),
                GridColumn("seeds it needs", right=True),
                *(GridColumn(plural(count, "seed"), right=True) for count in COUNTS),
                GridColumn("SD over seeds", right=True),
                GridColumn("SD over items", right=True),
            ],
            rows,
            notes=[_meaning(table)],
        ),
        note=_single_runs(middle) if table.suite == "sts" else "",
    )


def gain_cells(spread: SpreadOfRow, gain: float, printed: ReferenceResult) -> tuple[GridCell, str]:
    """Return a claimed gain with a link to its table, and the seeds that find it."""
    source = f"#printed-{slug(printed.paper, printed.table)}"
    return GridCell(text=signed_number(gain), link=source), seeds_words(spread, gain)


def seeds_words(spread: SpreadOfRow, gain: float) -> str:
    """Return how many seeds of both methods find a gain: "13", "more than 200"."""
    seeds = spread.seeds_for(gain)
    return f"more than {MOST_SEEDS}" if seeds is None else str(seeds)


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
    """Return the smallest gain for each number of seeds, and both spreads."""
    sizes = [f"{spread.smallest_gain(count):.1f}" for count in COUNTS]
    return [*sizes, score(spread.sd), score(spread.items)]


def _claimed(spread: SpreadOfRow, table: Table) -> tuple[float, ReferenceResult] | None:
    """Return the gain that a paper claims for a row's method, and the number behind it; None for no
    gain."""
    row = spread.row
    if row is None or table.suite != "sts":
        return None
    # another text is no other method, other values are
    if {name for name, _ in unlike_planned(row, table)} - {CORPUS}:
        return None
    found = claimed_gain(row.method, row.variant, row.setting, CLAIMED_ON)
    return None if found is None or found[0] <= 0 else found


def _claims_without_row(board: Board, table: Table) -> list[JudgedClaim]:
    """Return the papers' claims of a gain on this table's average whose method has no row in it."""
    here = {spread.row.name for spread in board.spreads if spread.row is not None}
    found = []
    for one in board.claims:
        claim = one.claim
        place = (claim.suite, claim.setting, claim.task, claim.backbone, claim.baseline)
        if place != (table.suite, table.setting, AVERAGE, CLAIMED_ON, table.baseline):
            continue
        if claim.row == claim.paper and claim.row not in here and claim.printed is not None:
            found.append(one)
    return found


def _meaning(table: Table) -> str:
    base = baseline_name(table)
    return (
        f"Below 1, 3, 5 and 10 seeds: the smallest gain over {base}, in points, that a single "
        f"planned comparison detects {100 * POWER:.0f} % of the time with that many seeds per "
        "method (two-sided, 5 %). With one seed, the spreads must be known from elsewhere. SD over "
        "seeds: of the differences seed by seed. SD over items: of the difference over other test "
        "items, near the baseline. The spreads are those of this leaderboard's backbone and "
        f"training, the published gains those of {printed_backbone(CLAIMED_ON)}."
    )


def _single_runs(middle: SpreadOfRow) -> str:
    """Say what the spread of published single runs of SimCSE would mean, and what is in it."""
    sd = reported_sd()
    reported = SpreadOfRow(name="", row=None, sd=sd, base_sd=sd, items=middle.items)
    needs = [f"a gain of {gain} needs {seeds_words(reported, gain)}" for gain in NOTED_GAINS]
    return (
        f"{len(REPORTED)} published single runs of SimCSE on BERT-base have an SD of {sd:.2f} "
        "points. Other people's code and hardware are in it, so it is not the spread of seeds "
        f"only. At that spread, a gain below {reported.smallest_gain(1):.1f} points needs more "
        f"than one run per method; {list_names(needs)} seeds."
    )
