"""Figures of a version, made from its records alone: SVG with direct labels, a static caption, and their data.

figures(board)        # those that the records have data for; printed gains against noise first
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench.show.figures.drawing import Figure

if TYPE_CHECKING:
    from bench.board.board import Board

__all__ = ["Figure", "figures"]


def figures(board: Board) -> tuple[Figure, ...]:
    """The figures of a version, group by group: settings and backbones with most rows first. Each has a name of its own."""
    from bench.show.figures.ablation import ablations
    from bench.show.figures.curves import frequent, learning, spectrum
    from bench.show.figures.few_shot import few_shot
    from bench.show.figures.gains import gains, paper_gains
    from bench.show.figures.points import table_groups
    from bench.show.figures.scatters import cost, geometry, papers, shift

    made: list[Figure | None] = []
    for i, group in enumerate(table_groups(board)):
        made += [paper_gains(group)] if i == 0 else []
        made += [gains(group), cost(group, "cost"), cost(group, "encoding"), shift(group)]
        made += [learning(group)]
        made += [papers(board)] if i == 0 else []
        made += [geometry(group), spectrum(group), cost(group, "parameters")]
        made += [frequent(group), few_shot(group), *ablations(group)]
    named: dict[str, Figure] = {}
    for figure in filter(None, made or [papers(board)]):
        alike = sum(name.startswith(figure.name) for name in named)  # two backbones of one slug
        name = f"{figure.name}-{alike + 1}" if figure.name in named else figure.name
        named[name] = replace(figure, name=name)
    return tuple(named.values())
