"""The cosine of every pair against what people rated it (ConPVP, Figure 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.show.figures.drawing import Drawing, Figure, library
from bench.show.figures.points import slug

if TYPE_CHECKING:
    import numpy as np

HIGHEST_GOLD = 5
Rated = tuple[str, "np.ndarray", "np.ndarray", str]
"""(what is drawn, cosines (N,), gold scores (N,), the set)."""


def scatters(rated: Sequence[Rated]) -> tuple[Figure, ...]:
    """A figure for each, all with the same axes; the data are the pairs of each unit of gold."""
    if not rated:
        return ()
    low = min(math.floor(10 * float(cosine_N.min())) / 10 for _, cosine_N, _, _ in rated)
    return tuple(
        _scatter(name, cosine_N, gold_N, data_set, min(low, 0.9))
        for name, cosine_N, gold_N, data_set in rated
    )


def _scatter(
    name: str, cosine_N: np.ndarray, gold_N: np.ndarray, data_set: str, low: float
) -> Figure:
    with library():
        drawing = Drawing()
        axes = drawing.axes()
        axes.set_xlim(-0.1, HIGHEST_GOLD + 0.1)
        axes.set_ylim(low - 0.02, 1.02)
        axes.set_xticks(range(HIGHEST_GOLD + 1))
        axes.locator_params(axis="y", nbins=6)
        drawing.specks(axes, gold_N.tolist(), cosine_N.tolist())
        drawing.names(axes, "gold score", "cosine")
        figure_name = slug("scatter", name)
        alt = f"{len(gold_N)} points, a pair each: its gold score across, the cosine of its two sentences upwards."
        return Figure(
            name=figure_name,
            kind="scatter",
            title=name,
            alt=alt,
            svg=drawing.svg(figure_name, name, alt),
            paper_figure="ConPVP, Figure 4",
            caption=f"Each point is a pair of {data_set} test: its gold score across, the cosine of its two sentences upwards.",
            header=("gold", "pairs", "mean cosine", "lowest", "highest"),
            data=_by_gold(cosine_N, gold_N),
        )


def _by_gold(cosine_N: np.ndarray, gold_N: np.ndarray) -> tuple[tuple[str | float, ...], ...]:
    """A row for each unit of gold that has pairs; the last one includes its upper end."""
    rows: list[tuple[str | float, ...]] = []
    for level in range(HIGHEST_GOLD):
        own_N = cosine_N[(gold_N >= level) & ((gold_N < level + 1) | (level == HIGHEST_GOLD - 1))]
        if len(own_N):
            values = (round(float(value), 4) for value in (own_N.mean(), own_N.min(), own_N.max()))
            rows.append((f"{level} to {level + 1}", float(len(own_N)), *values))
    return tuple(rows)
