"""Figures of a version, made from its records alone: SVG with direct labels, a static caption, and their data.

figures(board)        # those that the records have data for; the most interesting ones first
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.show.figures.drawing import Figure

if TYPE_CHECKING:
    from bench.board.board import Board

__all__ = ["Figure", "figures"]


def figures(board: Board) -> tuple[Figure, ...]:
    """The figures of a version: gains that papers print, gains over the baseline, quality against cost, STS against CxC, what values do,
    learning curves, printed against ours, geometry, and the others."""
    from bench.show.figures.ablation import ablations
    from bench.show.figures.cost import encoding_cost, parameter_cost, training_cost
    from bench.show.figures.few_shot import few_shot
    from bench.show.figures.gains import gains, paper_gains
    from bench.show.figures.geometry import geometry, shift, spectrum
    from bench.show.figures.learning import learning
    from bench.show.figures.papers import frequent, papers
    from bench.show.figures.points import table_groups
    from bench.show.figures.search import board_values

    runs = {run.record.run_id: run for run in board.runs}
    records = {run_id: run.record for run_id, run in runs.items()}
    groups, values = table_groups(board), board_values(board.searches)
    made: list[Figure | None] = [] if groups else [papers(board)]
    for i, group in enumerate(groups):
        made += [paper_gains(group)] if i == 0 else []
        made += [gains(group), training_cost(group), encoding_cost(group), shift(group)]
        made += values if i == 0 else []
        made += [learning(group, runs)]
        made += [papers(board)] if i == 0 else []
        made += [
            geometry(group),
            spectrum(group, runs),
            parameter_cost(group),
            frequent(group, records),
            few_shot(group, records),
            *ablations(group),
        ]
    return tuple({figure.name: figure for figure in made if figure is not None}.values())
