"""Figures of a version, made from its records alone: SVG with direct labels, a static caption, and
their data.

list(board_figures(board))  # those that the records have data for

A new figure is a function from a group of tables to a :class:`Figure` or None, and a line in
:func:`board_figures`.
"""

from __future__ import annotations

from dataclasses import replace

from bench.board.addresses import unused_name
from bench.board.board import Board
from bench.board.figures.ablations import ablations
from bench.board.figures.gains import gains
from bench.board.figures.groups import table_groups
from bench.board.figures.sheet import Figure

__all__ = ["Figure", "board_figures"]


def board_figures(board: Board) -> list[Figure]:
    """Make the figures of a version, group by group, each with a name that no other has."""
    made: list[Figure | None] = []
    for group in table_groups(board):
        made += [gains(group), *ablations(group)]
    named: dict[str, Figure] = {}
    for figure in made:
        if figure is not None:
            name = unused_name(figure.name, named)  # two folders may have one name
            named[name] = replace(figure, name=name)
    return list(named.values())
