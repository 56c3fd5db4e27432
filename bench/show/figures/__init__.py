"""Drawings of a version, made from its records alone: vector graphics with direct labels, a caption that states the finding, and their data.

figures(board)        # those that the records have data for; the three of the main page first
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.show.figures.figure import Figure

if TYPE_CHECKING:
    from bench.board.board import Board
    from bench.show.figures.groups import Pairs

__all__ = ["Figure", "figures"]


def figures(board: Board, pairs: Pairs | None = None) -> tuple[Figure, ...]:
    """The figures of a version, best first: gains over the baseline, what values do, gains that papers print,
    quality against cost, STS against CxC, paper against reproduced, then the others.

    ``pairs`` are the sentences of STS-B test, where they are at hand (``bench.show.figures.groups.pairs``): with them, and with the
    vectors that a run has kept, groups of sentences are drawn.
    """
    from bench.show.figures.every import every

    return every(board, pairs)
