"""The figures of a search: the expected best dev score against trials, what each value does to it, what tuning gains."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.compare.formatting import score
from bench.compare.statistics.expected_best import expected_best, gains, parts
from bench.runs.searches import RECIPE, RUNNING, TUNED, best_trial, kind_of_values, write_result
from bench.show.figures import plots
from bench.show.figures.drawing import (
    BOTTOM,
    LEFT,
    QUIET,
    SMALL,
    TEXT,
    TOP,
    WIDTH,
    Drawing,
    Figure,
    fit_text,
    library,
    number,
)
from bench.show.figures.labels import width
from bench.show.figures.points import (
    Group,
    count_words,
    leaders,
    names_in_words,
    points,
    shown_words,
    slug,
)

if TYPE_CHECKING:
    from bench.runs.record import RunRecord
    from bench.runs.searches import Search, Study, Trial

PANEL, ROW = 150.0, 34.0  # units of height of a panel, and of a row of the gains
CURVE = "Expected best dev score of n of the trials (Dodge et al. 2019); a trial that failed or was pruned counts as the lowest."


def write_figures(folder: Path, study: Study, trials: Mapping[str, Sequence[Trial]]) -> list[str]:
    """Draws what there is data for into the search's folder, each with its data as CSV; returns what those of all methods say."""
    together = of_all_methods(study, trials)
    for figure in [*together, *of_each_method(study, trials)]:
        write_result(folder, f"{figure.name}.svg", figure.svg.encode())
        write_result(folder, f"{figure.name}.csv", figure.csv.encode())
    return [figure.caption for figure in together]


def of_all_methods(study: Study, trials: Mapping[str, Sequence[Trial]]) -> list[Figure]:
    """The figures that compare methods, as far as there is data for them."""
    drawn = (
        expected_best_figure(study, trials),
        tuning_gain(study, trials),
        values_and_methods(scores_by_method(trials), study.select_on),
    )
    return [figure for figure in drawn if figure is not None]


def of_each_method(study: Study, trials: Mapping[str, Sequence[Trial]]) -> list[Figure]:
    """What each value does, a figure a method, as far as there is data for it."""
    return [
        figure
        for method, own in trials.items()
        if (figure := sensitivity(study, method, own)) is not None
    ]


def counted_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Those that are drawn and ended, in order; the recipe as it is is none of them."""
    return [trial for trial in trials if trial.number != RECIPE and trial.state != RUNNING]


def expected_best_figure(study: Study, trials: Mapping[str, Sequence[Trial]]) -> Figure | None:
    """None where no method has two trials."""
    curves = {
        method: expected_best([trial.score for trial in counted_trials(own)])
        for method, own in trials.items()
    }
    curves = {
        method: curve
        for method, curve in sorted(curves.items(), key=lambda item: -max(item[1], default=0.0))
        if len(curve) > 1
    }
    if not curves:
        return None
    own = {
        method: trial.score
        for method in curves
        for trial in trials[method]
        if trial.number == RECIPE and trial.score is not None
    }
    best = leaders([(method, curve[-1]) for method, curve in curves.items()])
    shown, most = list(curves.items())[: plots.MOST], max(map(len, curves.values()))
    finding = expected_words(curves)
    title, name = f"Expected best {study.select_on} against trials", "expected-best"
    alt = f"A line for each of {count_words(len(shown), 'method')}, rising from 1 to {most} trials. {finding}"
    with library():
        drawing = Drawing(height=TOP + BOTTOM + 190)
        drawn = [
            plots.Line(
                method,
                tuple(range(1, len(curve) + 1)),
                tuple(curve),
                tuple(
                    f"{method}, {count_words(n, 'trial')}: {score(y)}"
                    for n, y in enumerate(curve, 1)
                ),
                strong=method in best,
            )
            for method, curve in shown
        ]
        recipes = {method: own[method] for method, _ in shown if method in own}
        axes = drawing.axes(right=WIDTH - plots.room(drawn))
        axes.set_xlim(-0.4, most + 0.2)
        for method, y in recipes.items():
            drawing.dot(
                axes,
                0,
                y,
                f"{method}, the recipe as it is: {score(y)}",
                strong=method in best,
                square=True,
            )
        plots.draw(drawing, axes, drawn, also=list(recipes.values()))
        plots.ticks(
            drawing, axes, [0, *range(1, most + 1)], ["recipe", *map(str, range(1, most + 1))]
        )
        drawing.names(axes, "trials", study.select_on)
        rest = shown_words(shown, curves)
        return Figure(
            name=name,
            kind="search",
            suites=(),
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            caption=f"{finding} {CURVE}{rest}",
            header=("method", "trials", "expected best"),
            data=tuple(
                (method, float(n), round(y, 4))
                for method, curve in curves.items()
                for n, y in enumerate(curve, 1)
            ),
        )


def expected_words(curves: Mapping[str, Sequence[float]]) -> str:
    """Who leads with one trial, who with all, and from when on: the order of methods may depend on how long one searches."""
    if len(curves) == 1:
        ((method, curve),) = curves.items()
        return f"{method}: {score(curve[0])} of one trial, {score(curve[-1])} of {len(curve)}."
    most = min(map(len, curves.values()))
    ahead = [leaders([(method, curve[i]) for method, curve in curves.items()]) for i in range(most)]
    first, ends = ahead[0], ahead[-1]
    since = next(n for n in range(1, most + 1) if all(names == ends for names in ahead[n - 1 :]))
    top = score(max(curve[most - 1] for curve in curves.values()))
    lead = f"With {most} trials {names_in_words(ends)} {'is' if len(ends) == 1 else 'are'} expected to lead, at {top}"
    if since == 1:
        return f"{lead}; so {'it does' if len(ends) == 1 else 'they do'} with any number of trials."
    return f"{lead}, but only from {count_words(since, 'trial')} on; with one trial it is {names_in_words(first)}."


# --- What tuning gains beside how much methods differ ---


@dataclass(frozen=True)
class Pair:
    """A method before and after tuning."""

    label: str
    before: float
    after: float


def tuning_gain(study: Study, trials: Mapping[str, Sequence[Trial]]) -> Figure | None:
    """Of a search: its dev scores. None where fewer than two methods have both."""
    pairs = []
    for method, own in trials.items():
        recipe, best = (
            next((trial.score for trial in own if trial.number == RECIPE), None),
            best_trial(own),
        )
        if (
            recipe is not None
            and best is not None
            and best.score is not None
            and counted_trials(own)
        ):
            pairs.append(Pair(method, recipe, best.score))
    how = f"Hollow: the recipe as it is; filled: the best of it and {count_words(study.trials, 'trial')}; same budget and seeds. These scores chose the values: they are higher than those of new seeds."
    return gain_figure(
        pairs,
        "tuning-gain",
        f"What tuning gains on {study.select_on}",
        study.select_on,
        how,
        ("search",),
    )


def board_gain(group: Group, records: Mapping[str, RunRecord]) -> Figure | None:
    """Of a board: the test scores of rows that are tuned, and of the same methods with other values. None for fewer than two methods."""
    table = group.tables[group.suites[0]].table
    rows: dict[str, dict[bool, list[float]]] = {}
    for point in points(table, table.head):
        kinds = {kind_of_values(records[run]) for run in point.row.runs if run in records}
        if "" not in kinds:
            rows.setdefault(point.row.name, {}).setdefault(
                all(kind.startswith(TUNED) for kind in kinds), []
            ).append(point.cell.mean)
    pairs = [
        Pair(name, sides[False][0], sides[True][0])
        for name, sides in rows.items()
        if {len(sides.get(tuned, [])) for tuned in (True, False)} == {1}
    ]
    how = f"Hollow: with the recipe's or the paper's values; filled: with tuned ones. Means over seeds; {table.suite} {table.head}."
    return gain_figure(
        pairs,
        group.name("tuning"),
        group.titled("What tuning gains"),
        f"{table.suite} {table.head}",
        how,
        (table.suite,),
    )


def gain_figure(
    pairs: Sequence[Pair], name: str, title: str, what: str, how: str, suites: tuple[str, ...]
) -> Figure | None:
    """A line for each method, from its score before to that after. None for fewer than two."""
    if len(pairs) < 2:
        return None
    finding = gain_words(pairs)
    pairs = sorted(pairs, key=lambda pair: -pair.after)
    alt = f"{count_words(len(pairs), 'line')}, one a method, from its score before tuning to that after. {finding}"
    with library():
        drawing, axes = _rows(
            [pair.label for pair in pairs],
            [f"{pair.after - pair.before:+.2f}" for pair in pairs],
            [end for pair in pairs for end in (pair.before, pair.after)],
            what,
        )
        for i, pair in enumerate(reversed(pairs)):
            drawing.bar(axes, (pair.before, pair.after), (i, i), strong=True)
            drawing.dot(axes, pair.before, i, f"{pair.label} before: {score(pair.before)}")
            drawing.dot(
                axes, pair.after, i, f"{pair.label} tuned: {score(pair.after)}", strong=True
            )
        return Figure(
            name=name,
            kind="tuning",
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            caption=f"{finding} {how}",
            suites=suites,
            header=("method", "before", "tuned"),
            data=tuple((pair.label, round(pair.before, 4), round(pair.after, 4)) for pair in pairs),
        )


def _rows(
    labels: Sequence[str], ends: Sequence[str], values: Sequence[float], what: str
) -> tuple[Drawing, Any]:
    """A drawing and its axes with a row a label, the first on top and so the last by number, and ``ends`` beside them; ``what`` the
    ``values`` are stands below."""
    drawing = Drawing(height=TOP + BOTTOM + ROW * len(labels))
    left = min(150.0, max(width(label, TEXT) for label in labels) + 12)
    axes = drawing.axes(left, right=WIDTH - 40)
    axes.set_xlim(*plots.limits(values))
    axes.set_ylim(-0.5, len(labels) - 0.5)
    axes.set_yticks([])
    axes.grid(axis="x", linewidth=0.6, alpha=0.5)
    for i, (label, end) in enumerate(zip(reversed(labels), reversed(ends), strict=True)):
        height = drawing.at(axes, 0, i)[1]
        drawing.text(2, height - 0.35 * TEXT, fit_text(label, left - 8))
        drawing.text(WIDTH - 34, height - 0.35 * SMALL, end, size=SMALL, colour=QUIET)
    drawing.text((left + WIDTH - 40) / 2, BOTTOM - 32, what, anchor="middle", colour=QUIET)
    return drawing, axes


def gain_words(pairs: Sequence[Pair]) -> str:
    """What tuning moves, and what methods differ by, before and after: which of the two is larger."""
    before, after = (
        {pair.label: pair.before for pair in pairs},
        {pair.label: pair.after for pair in pairs},
    )
    gain, apart, tuned = gains(before, after)
    most = max(pairs, key=lambda pair: pair.after - pair.before)
    first, then = (leaders(list(side.items())) for side in (before, after))
    when_tuned = " and after" if first == then else f", {names_in_words(then)} after"
    return (
        f"Tuning moves a method by {gain:+.2f} on average (most: {most.label}, {most.after - most.before:+.2f}), {_larger(gain, apart)} the "
        f"{score(apart)} that the methods differ by before; after it they differ by {score(tuned)}. "
        f"{names_in_words(first)} {'leads' if len(first) == 1 else 'lead'} before{when_tuned}."
    )


def _larger(moved: float, apart: float) -> str:
    """Of what is printed."""
    if round(moved, 2) == round(apart, 2):
        return "as much as"
    return "more than" if round(moved, 2) > round(apart, 2) else "less than"


# --- What values do beside what methods do ---


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
    drawn = []
    for i, (way, alike) in enumerate(sorted(scores.items(), key=lambda item: -len(item[1]))):
        dev, setting, *_ = way
        where = setting if len(scores) > 1 else ""
        if settings[setting] > 1:
            where = f"{setting}, {' and '.join(names[way])}"
        drawn.append(values_and_methods(alike, dev, where, i))
    return [figure for figure in drawn if figure is not None]


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
    scores = {
        method: own
        for method, own in sorted(scores.items(), key=lambda item: -max(item[1], default=0.0))
        if len(own) > 1
    }
    if len(scores) < 2:
        return None
    name = f"values-and-methods-{place + 1}" if place else "values-and-methods"
    title = f"What values do beside what methods do, on {dev}{f' ({where})' if where else ''}"
    finding = values_words(scores)
    alt = f"{count_words(len(scores), 'row')} of points, a row a method, a point a trial. {finding}"
    with library():
        drawing, axes = _rows(
            list(scores),
            [score(max(own) - min(own)) for own in scores.values()],
            [value for own in scores.values() for value in own],
            dev,
        )
        for i, (method, own) in enumerate(reversed(scores.items())):
            drawing.bar(axes, (min(own), max(own)), (i, i))
            for value in sorted(own):
                drawing.dot(axes, value, i, f"{method}: {score(value)}", strong=value == max(own))
        return Figure(
            name=name,
            kind="search",
            suites=(),
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            header=("method", dev),
            caption=f"{finding} A point is a trial: other values of the same recipe, same budget and seeds; filled: the best. Trials without a score are not drawn.",
            data=tuple(
                (method, round(value, 4)) for method, own in scores.items() for value in own
            ),
        )


def values_words(scores: Mapping[str, Sequence[float]]) -> str:
    """How far a method moves from its worst trial to its best, and how far methods are apart at their best: which of the two is larger."""
    moves = {method: round(max(own) - min(own), 2) for method, own in scores.items()}
    best = {method: max(own) for method, own in scores.items()}
    last, first = (pick(best, key=lambda method: best[method]) for pick in (min, max))
    usual, apart = round(median(moves.values()), 2), round(best[first] - best[last], 2)
    least, most = (pick(moves, key=lambda method: moves[method]) for pick in (min, max))
    return (
        f"From its worst trial to its best a method moves by {score(usual)} at the median (least: {least}, {score(moves[least])}; most: {most}, "
        f"{score(moves[most])}), {_larger(usual, apart)} the {score(apart)} between the best trials of the methods ({last}, {score(best[last])}, to {first}, {score(best[first])})."
    )


# --- What each value does ---


def sensitivity(study: Study, method: str, trials: Sequence[Trial]) -> Figure | None:
    """A panel for each recipe key that was searched: the score of every trial against its value. None for fewer than three scores."""
    scored = [trial for trial in counted_trials(trials) if trial.score is not None]
    keys = list(study.methods[method].space)
    if len(scored) < 3 or not keys:
        return None
    name, title = slug("sensitivity", method), f"{method}: {study.select_on} against each value"
    finding = sensitivity_words(method, sensitivity_rows(study, method, trials))
    alt = f"{count_words(len(keys), 'panel')} of {len(scored)} points, one a trial. {finding}"
    ys = [trial.score or 0.0 for trial in scored]
    top = max(ys)
    with library():
        drawing = Drawing(height=PANEL * len(keys) + 14)
        for i, key in enumerate(keys):
            low = (len(keys) - 1 - i) * PANEL + BOTTOM
            axes = drawing.axes(LEFT, low, WIDTH - 24, low + PANEL - BOTTOM - TOP + 14)
            at = _x_axis(
                drawing,
                axes,
                study.methods[method].space[key],
                [trial.values[key] for trial in scored],
            )
            axes.set_ylim(*plots.limits(ys))
            plots.round_ticks(axes, "y", 3)
            for x, y, trial in zip(at, ys, scored, strict=True):
                drawing.dot(
                    axes,
                    x,
                    y,
                    f"trial {trial.number}, {key} {_text(trial.values[key])}: {score(y)}",
                    strong=y == top,
                )
            drawing.names(axes, key, study.select_on if i == 0 else "")
        failed = len(counted_trials(trials)) - len(scored)
        rest = (
            f" {count_words(failed, 'trial')} without a score {'is' if failed == 1 else 'are'} not drawn."
            if failed
            else ""
        )
        return Figure(
            name=name,
            kind="search",
            suites=(),
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            caption=f"{finding} Each point is a trial; the other values differ, too. Filled: the best.{rest}",
            header=("trial", *keys, study.select_on),
            data=tuple(
                (float(trial.number), *(_mark(trial.values[key]) for key in keys), round(y, 4))
                for trial, y in zip(scored, ys, strict=True)
            ),
        )


def _x_axis(
    drawing: Drawing, axes: Any, bounds: Mapping[str, Any], values: Sequence[Any]
) -> list[float]:
    """Where the values stand on the axis, which gets its ticks: places in order for a choice, else the number."""
    if "values" in bounds:
        choices = [_text(value) for value in bounds["values"]]
        axes.set_xlim(-0.5, len(choices) - 0.5)
        plots.ticks(drawing, axes, range(len(choices)), choices)
        return [float(choices.index(_text(value))) for value in values]
    low, high = float(bounds["low"]), float(bounds["high"])
    log = bounds.get("scale") == "log"
    plots.range_x(axes, low, high, 0.04, log=log)
    middle = math.sqrt(low * high) if log else (low + high) / 2
    plots.ticks(drawing, axes, [low, middle, high], [f"{one:.3g}" for one in (low, middle, high)])
    return [float(value) for value in values]


def _mark(value: Any) -> str | float:
    drawable = number(value)
    return _text(value) if drawable is None else drawable


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def sensitivity_rows(
    study: Study, method: str, trials: Sequence[Trial]
) -> list[tuple[str, float, str]]:
    """(recipe key, points between its best part and its worst, the means of its parts in words), that first which moves the score most."""
    scored = [trial for trial in counted_trials(trials) if trial.score is not None]
    rows = []
    for key in study.methods[method].space if len(scored) > 2 else ():
        found = parts(
            [trial.values[key] for trial in scored], [trial.score or 0.0 for trial in scored]
        )
        means = [mean for _, _, mean in found]
        rows.append(
            (
                key,
                max(means) - min(means),
                ", ".join(f"{values}: {score(mean)}" for values, _, mean in found),
            )
        )
    return sorted(rows, key=lambda row: -row[1])


def sensitivity_words(method: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Which key's parts differ most, and the means of all."""
    most = leaders([(key, apart) for key, apart, _ in rows])
    told = "; ".join(f"{key} {means}" for key, _, means in rows)
    return f"{method}: the score moves most with {names_in_words(most)} ({score(rows[0][1])} between parts of it). Means: {told}."
