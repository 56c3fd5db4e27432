"""Drawings of a run, as points: its learning curve, for the page of its method, and how its cosines
spread over pairs that people rated alike.

The second is PromCSE's Figure 3, for the page of a paper's figure. The templates of both pages have
the frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from bench.base.errors import BenchError
from bench.records.curve import curve_series, read_curve
from bench.records.run import Run

CURVE_SIZE = (256, 102)
"""Width and height of a curve; its corner is at 0, 0."""
MOST_POINTS = 240
"""Points of a line, about one for each unit of its width."""
Points = Sequence[tuple[float, float]]


def learning_curve(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Draw the dev scores of a row's runs over steps, a line for each seed, or their losses if no
    run has two dev scores.

    None if no ``curve.jsonl`` has two losses, too.
    """
    for key, form in (("dev_score", "{:.2f}"), ("loss", "{:.3g}")):
        lines, best = [], []
        name = key
        for run in runs:
            points = curve_series(read_curve(run.folder), key)
            if len(points) < 2:
                continue
            lines.append(points)
            done = run.record.training
            if key == "dev_score" and done is not None:
                name = done.dev_task or "dev"
                if done.best_step is not None and done.dev_score is not None:
                    best.append((done.best_step, done.dev_score))
        if lines:
            return draw_curves(name, lines, form, best)
    return None


def draw_curves(title: str, lines: Sequence[Points], form: str, best: Points) -> dict[str, Any]:
    """Draw lines through (step, value), thinned; ``best``: the checkpoints that were kept, if they
    are known."""
    every = [*chain.from_iterable(lines), *best]
    steps, values = zip(*every, strict=True)
    low, high = min(values), max(values)
    first, last = min(line[0][0] for line in lines), max(steps)

    def at(step: float, value: float) -> tuple[float, float]:
        width, height = CURVE_SIZE
        x = (step - first) / ((last - first) or 1) * width
        y = (high - value) / ((high - low) or 1) * height
        return round(x, 1), round(y, 1)

    drawn = []
    for points in lines:
        thinned = [*points[: -1 : len(points) // MOST_POINTS + 1], points[-1]]
        drawn.append(" ".join("{},{}".format(*at(*point)) for point in thinned))
    return {
        "title": title,
        "lines": drawn,
        "low": form.format(low),
        "high": form.format(high),
        "first": f"step {first:,.0f}",
        "last": f"{last:,.0f}",
        "best": [at(*point) for point in best],
    }


RIDGE_SIZE = (304, 46)
"""Width of a density, and height of the tallest; its corner is at 0, 0."""
LEVELS = 5
"""Levels of gold values from 0 to 5; the last one includes its upper end."""
FEWEST_PAIRS = 5
"""Pairs of a level that has a density."""
SOURCES = (("sts", "STS-B"), ("geometry", "alignment"))
"""Suites and tasks with the cosines of STS-B in their predictions, in the order of preference."""


def density(values_N: np.ndarray, places_P: np.ndarray) -> np.ndarray:
    """Return (P,) Gaussian kernel density with Scott's width.

    It equals scipy.stats.gaussian_kde.
    """
    width = values_N.std(ddof=1) * len(values_N) ** -0.2
    kernels_PN: np.ndarray = np.exp(-0.5 * ((places_P[:, None] - values_N) / width) ** 2)
    return kernels_PN.mean(axis=1) / (width * math.sqrt(2 * math.pi))


def cosine_ridges(run: Run) -> dict[str, Any] | None:
    """Draw a density for each level of human rating of the pairs of STS-B, the highest level first.

    None if the run has no predictions of them.
    """
    rated = None
    for suite, task in SOURCES:
        rated = rated or rated_pairs(run, suite, task)
    if rated is None:
        return None
    cosine, gold = rated
    level = np.minimum(gold.astype(int), LEVELS - 1)
    groups = {}
    for k in reversed(range(LEVELS)):
        of_level = cosine[level == k]
        if len(of_level) >= FEWEST_PAIRS and of_level.std() > 1e-6:
            groups[k] = of_level
    if len(groups) < 2:
        return None
    width, height = RIDGE_SIZE
    low = min(math.floor(5 * cosine.min()) / 5, 0.0)
    places = np.linspace(low, 1, width // 4 + 1)
    densities = {k: density(values, places) for k, values in groups.items()}
    tallest = max(heights.max() for heights in densities.values()) / height

    def x(value: float) -> float:
        return round(float((value - low) / (1 - low) * width), 1)

    ridges = []
    for k, values in groups.items():
        heights = densities[k] / tallest
        mean = float(values.mean())
        outline = []
        for place, above in zip(places, heights, strict=True):
            outline.append(f"{x(place)} {-above:.1f}")
        ridges.append(
            {
                "label": f"{k} to {k + 1}",
                "mean": mean,
                "x": x(mean),
                "height": round(float(np.interp(mean, places, heights)), 1),
                "path": "L".join(outline),
            }
        )
    return {
        "ridges": ridges,
        "ticks": [(x(tick / 5), f"{tick / 5:.1f}") for tick in range(round(5 * low), 6)],
    }


def rated_pairs(run: Run, suite: str, task: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return (cosines (N,), gold scores (N,)); None if they are not stored, or are something
    else."""
    score = run.record.score(suite, task)
    try:
        arrays = run.predictions(score.key) if score else {}
        name = "cosine" if "cosine" in arrays else "prediction"
        cosine, gold = arrays[name].astype(float), arrays["gold"].astype(float)
    except (BenchError, KeyError, ValueError):
        return None
    if cosine.ndim != 1 or cosine.shape != gold.shape:
        return None
    inside = (abs(cosine) <= 1 + 1e-6) & (gold >= 0) & (gold <= LEVELS)  # false of nan
    return (cosine, gold) if inside.all() else None
