"""The drawings on the page of a run, as points: its training curves, and how its cosines spread over
pairs that people rated alike, as PromCSE draws them in its Figure 3. ``parts.html`` has the frames.

Drawn by hand rather than by matplotlib: every run has them, and a thousand take a few seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.base.errors import BenchError
from bench.runs.store import Run, read_curve, series

# --- training curves ---

CURVE = (256, 102)  # width and height of a curve, whose corner is at 0, 0
MOST = 240  # points of a line, about one per unit of its width
Points = Sequence[tuple[float, float]]


def curves(run: Run) -> list[dict[str, Any]]:
    """Loss and dev score over steps, as far as ``curve.jsonl`` has at least two points of them."""
    entries, done = read_curve(run.folder), run.record.training
    best: list[tuple[float, float]] = []
    if done and done.best_step is not None and done.dev_score is not None:
        best.append((done.best_step, done.dev_score))
    dev = (done.dev_task if done else None) or "dev"
    parts: list[tuple[str, Points, str, Points]] = [
        ("loss", series(entries, "loss"), "{:.3g}", ()),
        (dev, series(entries, "dev_score"), "{:.2f}", best),
    ]
    return [curve(*part) for part in parts if len(part[1]) > 1]


def curve(title: str, points: Points, form: str, best: Points) -> dict[str, Any]:
    """The line through (step, value), thinned; ``best``: the checkpoint that was kept, if it is
    known."""
    steps, values = zip(*points, *best, strict=True)
    low, high, first, last = min(values), max(values), points[0][0], max(steps)

    def at(step: float, value: float) -> tuple[float, float]:
        x = (step - first) / ((last - first) or 1) * CURVE[0]
        return round(x, 1), round((high - value) / ((high - low) or 1) * CURVE[1], 1)

    thinned = [*points[: -1 : len(points) // MOST + 1], points[-1]]
    return {
        "title": title,
        "points": " ".join("{},{}".format(*at(*point)) for point in thinned),
        "low": form.format(low),
        "high": form.format(high),
        "first": f"step {first:,.0f}",
        "last": f"{last:,.0f}",
        "best": [(*at(*point), form.format(point[1])) for point in best],
    }


# --- cosines by level of human rating ---

RIDGE = (304, 46)  # width of a density, and height of the tallest, whose corner is at 0, 0
LEVELS = 5  # of gold values from 0 to 5; the last one includes its upper end
FEWEST = 5  # pairs of a level that has a density
SOURCES = (("sts", "STS-B"), ("geometry", "alignment"))
"""Suites and tasks whose predictions have the cosines of STS-B, in the order of preference."""


def density(values_N: np.ndarray, places_P: np.ndarray) -> np.ndarray:
    """(P,) Gaussian kernel density with Scott's width: that of scipy.stats.gaussian_kde, in a tenth of its time, for a thousand pages."""
    width = values_N.std(ddof=1) * len(values_N) ** -0.2
    distances_PN = (places_P[:, None] - values_N) / width
    kernels_PN: np.ndarray = np.exp(-0.5 * distances_PN**2)
    return kernels_PN.mean(axis=1) / (width * math.sqrt(2 * math.pi))


def cosines(run: Run) -> dict[str, Any] | None:
    """A density for each level of human rating of the pairs of STS-B, the highest level first. None
    where the run has no predictions of them."""
    rated = next(filter(None, (rated_pairs(run, *source) for source in SOURCES)), None)
    if rated is None:
        return None
    cosine, gold = rated
    level = np.minimum(gold.astype(int), LEVELS - 1)
    levels = {k: cosine[level == k] for k in reversed(range(LEVELS))}
    groups = {k: one for k, one in levels.items() if len(one) >= FEWEST and one.std() > 1e-6}
    if len(groups) < 2:
        return None
    low = min(math.floor(5 * cosine.min()) / 5, 0.0)
    places = np.linspace(low, 1, RIDGE[0] // 4 + 1)
    densities = {k: density(values, places) for k, values in groups.items()}
    tallest = max(density.max() for density in densities.values()) / RIDGE[1]

    def x(value: float) -> float:
        return round(float((value - low) / (1 - low) * RIDGE[0]), 1)

    ridges = []
    for k, values in groups.items():
        heights = densities[k] / tallest
        mean = float(values.mean())
        points = [f"{x(at)} {-height:.1f}" for at, height in zip(places, heights, strict=True)]
        ridges.append(
            {
                "label": f"{k} to {k + 1}",
                "mean": mean,
                "x": x(mean),
                "height": round(float(np.interp(mean, places, heights)), 1),
                "path": "L".join(points),
            }
        )
    ticks = [(x(tick / 5), f"{tick / 5:.1f}") for tick in range(round(5 * low), 6)]
    return {"ridges": ridges, "ticks": ticks}


def rated_pairs(run: Run, suite: str, task: str) -> tuple[np.ndarray, np.ndarray] | None:
    """(cosines (N,), gold scores (N,)); None where they are not stored, or are something
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
