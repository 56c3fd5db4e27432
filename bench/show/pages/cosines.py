"""How a run's cosines spread over pairs that people rated alike: a density per gold level, as PromCSE draws them in its Figure 3.

Drawn by hand rather than by a library: every run has one, and a thousand of them take a few seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.runs.record import ScoreKey
from bench.runs.run import Run
from bench.show.grid import Column, Grid, grid
from bench.show.pages.engine import minus

if TYPE_CHECKING:
    import numpy as np

WIDTH, LEFT, RIGHT, TOP, STEP, BOTTOM = 400, 52, 44, 62, 32, 36
TALLEST = 1.45  # steps that the highest density reaches over its line
LEVELS = 5  # of gold values from 0 to 5; the last one includes its upper end
FEWEST = 5  # pairs of a level that has a density
BINS, EVERY = (
    240,
    3,
)  # parts of the axis that pairs are counted in, and every how many of them the outline has a point
SOURCES = (
    ("sts", "STS-B"),
    ("sts", "SICK-R"),
    ("geometry", "alignment"),
)  # whose predictions are looked for, in this order


@dataclass(frozen=True)
class Ridge:
    """The density of one level, in drawing units."""

    label: str  # "4 to 5"
    pairs: int
    mean: float
    middle: tuple[float, float]  # the quartiles: half of the pairs lie between
    path: str
    y: float  # of its line
    mean_x: float
    mean_y: float  # where its density ends above the mean


@dataclass(frozen=True)
class Cosines:
    """The drawing, highest level first."""

    task: str  # whose pairs these are
    ridges: tuple[Ridge, ...]
    ticks: tuple[tuple[float, str], ...]
    height: int
    base: int
    width: int = WIDTH
    left: int = LEFT
    right: int = WIDTH - RIGHT

    @property
    def grid(self) -> Grid:
        """What is drawn, in numbers."""
        names = ("rated", "pairs", "mean cosine", "lower quartile", "upper quartile")
        rows = [
            (one.label, str(one.pairs), *(f"{value:.3f}" for value in (one.mean, *one.middle)))
            for one in self.ridges
        ]
        return grid([Column(name, right=name != "rated") for name in names], rows)


def cosines(run: Run) -> Cosines | None:
    """Of STS-B, or else of another set of rated pairs whose predictions the run has; None where there are none."""
    rated = rated_pairs(run)
    return None if rated is None else _draw(*rated)


def rated_pairs(run: Run) -> tuple[np.ndarray, np.ndarray, str] | None:
    """(cosines (N,), gold scores (N,), the set) of STS-B, or else of another set; None where no predictions are stored."""
    scores = [
        score
        for place in SOURCES
        for score in run.scores
        if (score.suite, score.task) == place and score.text in (None, "tokenised")
    ]
    for score in scores:
        if (pairs := _read(run, score.key)) is not None:
            return *pairs, "STS-B" if score.task == "alignment" else score.task
    return None


def _read(run: Run, key: ScoreKey) -> tuple[np.ndarray, np.ndarray] | None:
    """(cosines, gold values) of all pairs, or None where they are not stored or are something else."""
    import numpy as np

    try:
        arrays = run.predictions(key)
        cosine = np.asarray(arrays.get("cosine", arrays.get("prediction")))
        gold = np.asarray(arrays.get("gold"))
    except BenchError:
        return None
    shapes = cosine.ndim == 1 and cosine.shape == gold.shape
    if not shapes or cosine.dtype.kind != "f" or gold.dtype.kind not in "fiu":
        return None
    cosine, gold = cosine.astype(np.float64), gold.astype(np.float64)
    inside = (np.abs(cosine) <= 1 + 1e-6) & (gold >= 0) & (gold <= LEVELS)  # false of nan
    return (cosine.clip(-1, 1), gold) if inside.all() else None


def _draw(cosine: np.ndarray, gold: np.ndarray, task: str) -> Cosines | None:
    import numpy as np

    level = np.minimum(gold.astype(int), LEVELS - 1)
    groups = [
        (k, np.sort(cosine[level == k]))
        for k in reversed(range(LEVELS))
        if (level == k).sum() >= FEWEST
    ]
    if len(groups) < 2:
        return None
    shown = np.concatenate([values for _, values in groups])
    low, high = math.floor(10 * shown.min() + 1e-9) / 10, math.ceil(10 * shown.max() - 1e-9) / 10
    high = max(high, low + 0.1)
    densities = [density(values, low, high) for _, values in groups]
    tallest = max(heights.max() for heights in densities)
    base = TOP + STEP * (len(groups) - 1) + 6

    def x(value: float) -> float:
        return round(LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    drawn = [x(low + (i + 0.5) * (high - low) / BINS) for i in range(0, BINS, EVERY)]
    ridges = []
    for i, ((k, values), heights) in enumerate(zip(groups, densities, strict=True)):
        y = TOP + STEP * i
        tops = y - heights / tallest * STEP * TALLEST
        mean = float(values.mean())
        points = "L".join(
            [f"{a} {b:.1f}" for a, b in zip(drawn, tops[::EVERY].tolist(), strict=True)]
        )
        above = float(tops[min(int((mean - low) / (high - low) * BINS), BINS - 1)])
        low_quartile, high_quartile = np.quantile(values, (0.25, 0.75)).tolist()
        ridges.append(
            Ridge(
                label=f"{k} to {k + 1}",
                pairs=len(values),
                mean=mean,
                middle=(low_quartile, high_quartile),
                y=y,
                mean_x=x(mean),
                mean_y=round(above, 1),
                path=f"M{drawn[0]} {y}L{points}V{y}Z",
            )
        )
    return Cosines(
        task=task,
        ridges=tuple(ridges),
        base=base,
        height=base + BOTTOM,
        ticks=tuple((x(tick), minus(f"{tick:.1f}")) for tick in _ticks(low, high)),
    )


def density(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Gaussian kernel density of (n,) values at the middles of BINS equal parts of [low, high], with Scott's bandwidth.

    The values are counted per part first; a group without spread gets the width of two of them, so that it can be seen.
    Integrates to 1 over the whole line. Source: Scott, Multivariate Density Estimation, 1992, section 6.5.
    """
    import numpy as np

    step = (high - low) / BINS
    counts = np.bincount(np.clip((values - low) / step, 0, BINS - 1).astype(int), minlength=BINS)
    width = max(float(values.std(ddof=1)) * len(values) ** -0.2, 2 * step)
    reach = math.ceil(4 * width / step)  # beyond four widths a kernel is nothing that could be seen
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2) / (
        width * math.sqrt(2 * math.pi)
    )
    return np.convolve(counts, kernel)[reach : reach + BINS] / len(values)


def _ticks(low: float, high: float) -> list[float]:
    """Multiples of 0.1, 0.2 or 0.5 inside the axis, about six at most."""
    step = next((step for step in (0.1, 0.2) if high - low <= 6 * step), 0.5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 1) + 0.0 for i in range(first, last + 1)]
