"""Drawings of a version, made from its records alone: vector graphics with direct labels, a caption that states the finding, and their data.

figures(board)        # those that the records have data for; the three of the main page first
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bench.show.figures.drawing import Figure

if TYPE_CHECKING:
    from bench.board.board import Board
    from bench.show.figures.points import Pairs

__all__ = ["Figure", "figures"]


def figures(board: Board, pairs: Pairs | None = None) -> tuple[Figure, ...]:
    """The figures of a version, what a reader asks first at the top: gains over the baseline, what values do, gains that papers print,
    then cost, STS against CxC, learning curves, tuning, printed against ours, and the others.

    ``pairs`` are the sentences of STS-B test, where they are at hand (``bench.show.figures.points.pairs``): with them, and with the
    vectors that a run has kept, groups of sentences are drawn.
    """
    from bench.show.figures.ablation import ablations
    from bench.show.figures.cost import encoding_cost, parameter_cost, training_cost
    from bench.show.figures.few_shot import few_shot
    from bench.show.figures.frequent import frequent
    from bench.show.figures.gains import gains, paper_gains
    from bench.show.figures.learning import learning
    from bench.show.figures.papers import papers
    from bench.show.figures.points import draw_groups, table_groups
    from bench.show.figures.search import board_gain, board_values
    from bench.show.figures.spectrum import geometry, shift, spectrum

    board = replace(
        board, tables=tuple(table for table in board.tables if table.checked)
    )  # a caption is no sender's word
    runs = {run.record.run_id: run for run in board.runs}
    records = {run_id: run.record for run_id, run in runs.items()}
    found, values = table_groups(board), board_values(board.searches)
    made: list[Figure | None] = [] if found else [papers(board)]
    for i, group in enumerate(found):
        made += [gains(group)]
        made += [*values[:1], paper_gains(group)] if i == 0 else []
        made += [
            training_cost(group),
            encoding_cost(group),
            shift(group),
            learning(group, runs),
            board_gain(group, records),
        ]
        made += [papers(board), *values[1:]] if i == 0 else []
        made += [
            geometry(group),
            spectrum(group, runs),
            parameter_cost(group),
            frequent(group, records),
            few_shot(group, records),
            *ablations(group),
        ]
        made += [draw_groups(group, runs, pairs)] if i == 0 else []  # t-SNE takes a second
    named: dict[str, Figure] = {}
    for figure in made:
        if figure is not None:
            named.setdefault(figure.name, figure)
    return tuple(named.values())
