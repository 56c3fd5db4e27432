"""Figures of a version, made from its records alone: SVG with direct labels, a static caption, and
their data.

figures(board)        # those that the records have data for; printed gains against noise first
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench.board.names import unused_name
from bench.show.figures.curves import frequent, learning, spectrum
from bench.show.figures.drawing import Figure
from bench.show.figures.gains import gains, paper_gains
from bench.show.figures.papers import ablations, few_shot
from bench.show.figures.points import table_groups
from bench.show.figures.scatters import cost, geometry, shift

if TYPE_CHECKING:
    from bench.board.board import Board

__all__ = ["Figure", "figures"]


def figures(board: Board) -> tuple[Figure, ...]:
    """The figures of a version, group by group: settings and backbones with most rows first. Each
    has a name of its own."""
    made: list[Figure | None] = []
    for group in table_groups(board):
        made += [paper_gains(group)] if not made else []
        made += [gains(group), cost(group, "cost"), cost(group, "encoding"), shift(group)]
        made += [learning(group), geometry(group), spectrum(group), cost(group, "parameters")]
        made += [frequent(group), few_shot(group), *ablations(group)]
    named: dict[str, Figure] = {}
    for figure in filter(None, made):
        name = unused_name(figure.name, named)  # two folders may have one name
        named[name] = replace(figure, name=name)
    return tuple(named.values())
