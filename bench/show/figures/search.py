"""The figures of a search: the expected best dev score against trials, and what values do next to what methods do."""

from __future__ import annotations

from collections import Counter
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
    bar,
    drawn,
    lines,
    rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.runs.searches import Search, Study, Trial

ROW, AROUND = 22.0, 56.0  # points of height of a row, and of all that is not a row
EXPECTED = (
    "Expected best dev score of n of the trials (Dodge et al. 2019); a trial that failed or was pruned counts as the lowest. At 0: the recipe "
    "without a search. Coloured: highest with all trials. Of many methods the highest are drawn."
)
VALUES = (
    "A point is a trial: other values of the same recipe, same budget and seeds. Coloured: the best trial. These scores chose the values; "
    "they are higher than those of new seeds. Trials without a score are not drawn."
)


def write_figures(folder: Path, study: Study, trials: Mapping[str, Sequence[Trial]]) -> list[str]:
    """Draws what there is data for into the search's folder, each with its data as CSV; returns the names of the files."""
    names = []
    for figure in of_all_methods(study, trials):
        write_result(folder, f"{figure.name}.svg", figure.svg.encode())
        write_result(folder, f"{figure.name}.csv", figure.csv.encode())
        names += [f"{figure.name}.svg", f"{figure.name}.csv"]
    return names


def of_all_methods(study: Study, trials: Mapping[str, Sequence[Trial]]) -> list[Figure]:
    """The figures of a search, as far as there is data for them."""
    made = (
        expected_best_figure(study, trials),
        values_and_methods(scores_by_method(trials), study.select_on),
    )
    return [figure for figure in made if figure is not None]


def counted_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Those that ended, in order, without the trial of the recipe as it is."""
    return [trial for trial in trials if trial.number != RECIPE and trial.state != RUNNING]


# --- expected best ---


def expected_best_figure(study: Study, trials: Mapping[str, Sequence[Trial]]) -> Figure | None:
    """None where no method has two trials."""
    curves = {
        method: curve
        for method, own in trials.items()
        if len(curve := expected_best([trial.score for trial in counted_trials(own)])) > 1
    }
    if not curves:
        return None
    curves = dict(sorted(curves.items(), key=lambda item: -max(item[1])))
    recipes = {
        method: trial.score
        for method in curves
        for trial in trials[method]
        if trial.number == RECIPE and trial.score is not None
    }
    return Figure(
        name="expected-best",
        kind="search",
        suites=(),
        title=f"Expected best {study.select_on} against trials",
        caption=EXPECTED,
        svg=drawn(draw_expected_best, curves, recipes, study.select_on),
        header=("method", "trials", "expected best"),
        data=tuple(
            (method, float(n), round(y, 4))
            for method, curve in curves.items()
            for n, y in enumerate(
                (*([recipes[method]] if method in recipes else []), *curve),
                0 if method in recipes else 1,
            )
        ),
    )


def draw_expected_best(
    axes: Axes, curves: Mapping[str, Sequence[float]], recipes: Mapping[str, float], dev: str
) -> None:
    """``curves``: the highest first."""
    shown = list(curves)[:MOST_LINES]
    most = max(len(curves[method]) for method in shown)
    lines(
        axes,
        [
            Line(
                method,
                tuple(range(1, len(curves[method]) + 1)),
                tuple(curves[method]),
                strong=i == 0,
            )
            for i, method in enumerate(shown)
        ],
    )
    for i, method in enumerate(shown):
        if method in recipes:
            axes.plot([0], [recipes[method]], "s", color=QUIET if i else ACCENT, markersize=5)
    axes.set_xlim(-0.04 * most, 1.02 * most)
    axes.locator_params(axis="x", nbins=6, integer=True)
    axes.set_xlabel("trials")
    axes.set_title(dev)


# --- what values do next to what methods do ---


def board_values(searches: Sequence[Search]) -> list[Figure]:
    """A figure for each setting and way of searching, of all methods that were searched so; that of most methods first."""
    scores: dict[tuple[str, ...], dict[str, list[float]]] = {}
    names: dict[tuple[str, ...], dict[str, None]] = {}
    for search in searches:
        for method, own in scores_by_method(search.trials).items():
            of = search.study.methods[method]
            label = f"{method}+{of.variant}" if of.variant else method
            key = (search.study.select_on, of.setting, of.backbone, of.dev, search.study.words)
            names.setdefault(key, {})[search.name] = None
            alike = scores.setdefault(key, {})
            alike[f"{label} ({search.name})" if label in alike else label] = own
    settings = Counter(setting for _, setting, *_ in scores)
    made = []
    for i, (way, alike) in enumerate(sorted(scores.items(), key=lambda item: -len(item[1]))):
        dev, setting, *_ = way
        where = setting if len(scores) > 1 else ""
        if settings[setting] > 1:
            where = ", ".join((setting, *names[way]))
        made.append(values_and_methods(alike, dev, where, i))
    return [figure for figure in made if figure is not None]


def scores_by_method(trials: Mapping[str, Sequence[Trial]]) -> dict[str, list[float]]:
    return {
        method: [trial.score for trial in counted_trials(own) if trial.score is not None]
        for method, own in trials.items()
    }


def values_and_methods(
    scores: Mapping[str, Sequence[float]], dev: str, where: str = "", place: int = 0
) -> Figure | None:
    """A row for each method with the scores of its trials on ``dev``. None for fewer than two methods with two scores. ``where``: what
    tells it from others on a page; ``place``: among them, from 0."""
    several = sorted(
        ((method, sorted(own)) for method, own in scores.items() if len(own) > 1),
        key=lambda item: -item[1][-1],
    )
    if len(several) < 2:
        return None
    return Figure(
        name=f"values-and-methods-{place + 1}" if place else "values-and-methods",
        kind="search",
        suites=(),
        title=f"What values do and what methods do, on {dev}{f' ({where})' if where else ''}",
        caption=VALUES,
        svg=drawn(draw_values, several, dev, height=AROUND + ROW * len(several)),
        header=("method", dev),
        data=tuple((method, round(value, 4)) for method, _ in several for value in scores[method]),
    )


def draw_values(axes: Axes, several: Sequence[tuple[str, Sequence[float]]], dev: str) -> None:
    """(method, its scores in rising order), a row each."""
    for i, (_, own) in enumerate(several):
        bar(axes, (own[0], own[-1]), (i, i), QUIET)
        axes.plot(own[:-1], [i] * (len(own) - 1), "o", color=QUIET, markersize=5)
        axes.plot(own[-1:], [i], "o", color=ACCENT)
    axes.set_xlabel(dev)
    rows(axes, [method for method, _ in several])


# --- what each value does ---
