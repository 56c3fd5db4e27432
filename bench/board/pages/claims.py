"""The table "What the papers claim" of a board: each claim of a text, and what the rows that test it
give here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.base.grid import Grid, GridColumn, grid
from bench.base.text import list_names
from bench.board.board import Board
from bench.compare.claims import JudgedClaim
from bench.compare.formatting import signed_number
from bench.compare.words.names import row_name, table_name
from bench.papers import AVERAGE
from bench.papers.names import printed_name

NOTES = (
    "A claim is of other models, on other backbones and after longer training. The same sign here "
    "does not confirm it, and another sign does not refute it.",
    "The interval has the level at which the verdict is given: that of the table where the baseline "
    "is the table's own, else 95 %, for the pair by itself.",
)


class ClaimGrids(NamedTuple):
    """The claims that rows here test, and the others with the reason."""

    tested: Grid
    untested: Grid


def claims_grids(board: Board) -> ClaimGrids | None:
    """Lay out a line per claim and pair of rows; None if no claim can be tested here."""
    if not any(one.difference is not None for one in board.claims):
        return None
    tested: list[list[str]] = []
    untested: dict[tuple[str, str, str], None] = {}
    for same in _together(board.claims):
        first = same[0]
        if first.difference is not None:
            tested.append(_line(same))
        else:
            untested[printed_name(first.claim.paper), first.claim.says, first.why_not] = None
    columns = (
        GridColumn("paper", wrap=8),
        GridColumn("claims", wrap=20),
        GridColumn("tested by", wrap=16),
        GridColumn("on", wrap=12),
        GridColumn("here", right=True),
        "verdict",
    )
    return ClaimGrids(
        grid(columns, tested, notes=NOTES), grid(("paper", "claims", "why not"), untested)
    )


def _together(claims: Sequence[JudgedClaim]) -> list[list[JudgedClaim]]:
    """Return the claims that the same two rows test on the same task, as one."""
    groups: dict[tuple[str, ...], list[JudgedClaim]] = {}
    for one in claims:
        claim = one.claim
        key = (claim.paper, claim.setting, claim.suite, claim.task, claim.row, claim.baseline)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _line(same: Sequence[JudgedClaim]) -> list[str]:
    first = same[0]
    assert first.row is not None and first.baseline is not None and first.table is not None
    claims = list_names(dict.fromkeys(one.claim.says for one in same), len(same))
    pair = f"{row_name(first.row, first.table)} against {row_name(first.baseline, first.table)}"
    here = signed_number(first.difference or 0.0)
    if first.low is not None and first.high is not None:
        here += f" [{signed_number(first.low)}, {signed_number(first.high)}]"
    verdict = first.verdict or f"not tested: {first.why_not}"
    where = ", ".join(table_name(first.table).split(", ")[:2])
    if first.claim.task != AVERAGE:
        where += f", {first.claim.task}"
    return [printed_name(first.claim.paper), claims, pair, where, here, verdict]
