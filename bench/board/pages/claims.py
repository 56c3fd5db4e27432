"""The table "What the papers claim" of a leaderboard: each claim of a text, and the difference of
the rows that test it here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.base.grid import Grid, GridColumn, grid
from bench.base.text import list_names
from bench.board.board import Board
from bench.board.pages.gain_sizes import seeds_words
from bench.board.pages.links import minus
from bench.compare.claims import JudgedClaim
from bench.compare.formatting import with_interval
from bench.compare.statistics.table import Table
from bench.compare.words.names import row_name, setting_words, suite_name
from bench.papers import AVERAGE
from bench.papers.names import printed_backbone, printed_name

NOTES = (
    "A claim is about other models, on other backbones and after longer training. The same sign "
    "here does not confirm it, and another sign does not refute it.",
    "A claim about rows that the plan compares has its table's interval and verdict. Any other "
    "claim is one comparison by itself, at 95 %, and has no place in the headline.",
)
GAIN = re.compile(r"[\d.]+ points above ")
"""How a claim begins that says no more than a gain and over which row."""


@dataclass(frozen=True, kw_only=True)
class ClaimLine:
    """Claims of one paper that the same two rows test on the same task."""

    judged: Sequence[JudgedClaim]
    # "PromCSE"
    paper: str
    # "+2.60 (BERT-base) and +1.60 (BERT-large) over SimCSE"; "EH improves uniformity"
    says: str
    # "ConPVP against SimCSE"; "" if the rows are not here
    pair: str
    # "STS, unsupervised"
    where: str
    # "−0.09 [−1.51, +1.34]"; "" if no difference is known
    here: str
    # "worse", "not tested: fewer than three seeds"
    verdict: str
    # that would find the gain on BERT-base: "13 seeds"; "" if none is claimed
    seeds: str

    @property
    def has_rows(self) -> bool:
        """True if both rows are here."""
        return self.judged[0].row is not None


class ClaimGrids(NamedTuple):
    """The claims whose rows are here, and the others with the reason."""

    notes: tuple[str, ...]
    tested: Grid
    untested: Grid


def claims_grids(board: Board) -> ClaimGrids | None:
    """Lay out a line per claim and pair of rows; None if no claim can be tested here."""
    tested, untested = [], []
    for line in claim_lines(board, board.claims):
        if line.has_rows:
            tested.append([line.paper, line.says, line.pair, line.where, line.here, line.verdict])
        else:
            untested.append([line.paper, line.says, line.judged[0].why_not])
    if not tested:
        return None
    columns = (
        GridColumn("paper", wrap=8),
        GridColumn("claims", wrap=20),
        GridColumn("tested by", wrap=16),
        GridColumn("on", wrap=12),
        GridColumn("here", right=True),
        "verdict",
    )
    not_tested = grid(("paper", "claims", "why not"), untested)
    return ClaimGrids(NOTES, grid(columns, tested), not_tested)


def claims_of_method(board: Board, method: str) -> Grid:
    """Lay out the claims about a method whose rows are here: what its paper says, what the rows
    give, how many seeds the gain needs, the verdict."""
    about = [one for one in board.claims if one.row is not None and one.row.method == method]
    rows = []
    for line in claim_lines(board, about):
        is_own = line.paper == printed_name(method)
        said = line.says if is_own else f"{line.paper}: {line.says}"
        rows.append([said, line.pair, line.where, line.here, line.seeds, line.verdict])
    return grid(
        [
            GridColumn("paper says", wrap=24),
            GridColumn("tested by", wrap=16),
            GridColumn("on", wrap=12),
            GridColumn("here", right=True),
            GridColumn("it needs", right=True),
            "verdict",
        ],
        rows,
    )


def claim_lines(board: Board, claims: Iterable[JudgedClaim]) -> list[ClaimLine]:
    """Return these claims of a board, those together that the same two rows test on the same
    task."""
    groups: dict[tuple[str, ...], list[JudgedClaim]] = {}
    for one in claims:
        claim = one.claim
        key = (claim.paper, claim.setting, claim.suite, claim.task, claim.row, claim.baseline)
        groups.setdefault((*key, one.why_not), []).append(one)
    return [_line(board, same) for same in groups.values()]


def _line(board: Board, same: Sequence[JudgedClaim]) -> ClaimLine:
    first = same[0]
    paper = printed_name(first.claim.paper)
    pair = where = here = ""
    if first.row is not None and first.baseline is not None and first.table is not None:
        pair = f"{row_name(first.row, first.table)} against {row_name(first.baseline, first.table)}"
        where = _where(first, first.table)
    if first.difference is not None:
        here = with_interval(first.difference, first.low, first.high, _decimals(first))
    return ClaimLine(
        judged=same,
        paper=paper,
        says=_says(same),
        pair=pair,
        where=where,
        here=minus(here),
        verdict=first.verdict or f"not tested: {first.why_not}",
        seeds=_seeds(board, first),
    )


def _where(judged: JudgedClaim, table: Table) -> str:
    """Write where a claim is tested: suite, setting, and the task if it is not the average."""
    words = [suite_name(table.suite), setting_words(table.setting)]
    task = judged.claim.task
    if task != AVERAGE:
        words.append(f"{task} (lower is better)" if task in table.falling else task)
    return ", ".join(words)


def _decimals(judged: JudgedClaim) -> int:
    """Return how many decimals the table writes on the claim's task."""
    assert judged.table is not None and judged.row is not None
    cell = judged.row.cells[judged.table.columns.index(judged.claim.task)]
    assert cell is not None
    return cell.decimals


def _says(same: Sequence[JudgedClaim]) -> str:
    """Write what is claimed, a text of several claims once."""
    claims = [one.claim for one in same]
    if not all(GAIN.match(claim.says) for claim in claims):
        return _listed(claim.says for claim in claims)
    gains = [f"+{claim.claimed} ({printed_backbone(claim.backbone)})" for claim in claims]
    method, _, variant = claims[0].baseline.partition("+")
    return f"{_listed(gains)} over {printed_name(method, variant)}"


def _listed(texts: Iterable[str]) -> str:
    different = dict.fromkeys(texts)
    return list_names(different, len(different))


def _seeds(board: Board, judged: JudgedClaim) -> str:
    """Return how many seeds find the gain that the first of the claims prints on the average of
    the main table; "" for another claim."""
    printed = judged.claim.printed
    if printed is None or judged.row is None or judged.claim.task != AVERAGE:
        return ""
    for spread in board.spreads:
        if spread.row is not None and spread.row is judged.row and printed.value > 0:
            return f"{seeds_words(spread, printed.value)} seeds"
    return ""
