"""The figure of a search: the expected best dev score against trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.compare.statistics.expected_best import expected_best
from bench.runs.searches import RECIPE, RUNNING, write_result
from bench.show.figures.drawing import (
    ACCENT,
    MOST_LINES,
    QUIET,
    Figure,
    Line,
    drawn,
    line_data,
    lines,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.runs.searches import Study, Trial

EXPECTED = (
    "Expected best dev score of n of the trials (Dodge et al. 2019); a trial that failed or was "
    "pruned counts as the lowest. Squares at 0: the recipe without a search. Coloured: highest "
    "with all trials. Of many methods the highest are drawn."
)


def write_figures(folder: Path, study: Study, trials: Mapping[str, Sequence[Trial]]) -> list[str]:
    """Draws what there is data for into the search's folder, each with its data as CSV; returns the
    names of the files."""
    figures = of_all_methods(study, trials)
    files = {f"{one.name}.svg": one.svg for one in figures}
    files |= {f"{one.name}.csv": one.csv for one in figures}
    for name, text in files.items():
        write_result(folder, name, text.encode())
    return list(files)


def of_all_methods(study: Study, trials: Mapping[str, Sequence[Trial]]) -> list[Figure]:
    """The figure of a search; none where no method has two trials."""
    recipes = {
        method: trial.score
        for method, every in trials.items()
        for trial in every
        if trial.number == RECIPE and trial.score is not None
    }
    made = []
    for method, every in trials.items():
        curve = expected_best([t.score for t in every if t.number != RECIPE and t.state != RUNNING])
        if len(curve) > 1:
            made.append(Line(method, range(1, len(curve) + 1), curve))
    if not made:
        return []
    made.sort(key=lambda line: -max(line.y))
    at_zero = [
        (line.label, 0, round(recipes[line.label], 4)) for line in made if line.label in recipes
    ]
    figure = Figure(
        name="expected-best",
        kind="search",
        title=f"Expected best {study.select_on} against trials",
        caption=EXPECTED,
        svg=drawn(draw_expected_best, made, recipes, study.select_on),
        suites=(),
        header=("method", "trials", "expected best"),
        data=(*at_zero, *line_data(made)),
    )
    return [figure]


def draw_expected_best(
    axes: Axes, those: Sequence[Line], recipes: Mapping[str, float], dev: str
) -> None:
    """``those``: the highest first."""
    lines(axes, those, those[0], "trials", dev)
    for line in those[:MOST_LINES]:
        if line.label in recipes:
            colour = ACCENT if line is those[0] else QUIET
            axes.plot([0], [recipes[line.label]], "s", color=colour, markersize=5)
    most = max(max(line.x) for line in those)
    axes.set_xlim(-0.04 * most, 1.02 * most)
    axes.locator_params(axis="x", nbins=6, integer=True)
