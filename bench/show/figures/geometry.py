"""Scores elsewhere and where vectors lie: STS against CxC (PromCSE, Figure 1), alignment against uniformity (SimCSE, Figure 3), and how
fast singular values fall (SimCSE, Figure F.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.runs.record import ScoreKey
from bench.runs.run import Run
from bench.score.metrics.geometry import effective_rank
from bench.show.figures.drawing import MOST_LINES, Figure, Line, Mark, drawn, lines, scatter
from bench.show.figures.points import (
    Group,
    Point,
    ends,
    join_points,
    mean_and_ends,
    one_point_per_method,
    points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.board.board import PublishedRun
    from bench.compare.statistics.table import Row, Table

Pair = tuple[Point, Point]  # of the same runs

# --- STS against CxC ---

SHIFT = (
    "Average of the seven STS sets across, similarity of image captions (CxC-STS), another domain, upwards. Bars: the intervals of the tables, or standard deviations over seeds where they have none. "
    "Coloured: highest on either."
)


def shift(group: Group) -> Figure | None:
    """Average of the STS sets against CxC-STS. None where fewer than two rows have both."""
    sts, cxc = group.table("sts"), group.table("cxc")
    if sts is None or cxc is None:
        return None
    shown = one_point_per_method(points(sts, sts.head), sts)
    pairs = join_points(shown, points(cxc, cxc.columns[0]))
    if len(pairs) < 2:
        return None
    return Figure(
        name=group.name("shift"),
        kind="shift",
        title=group.titled("STS against captions of another domain"),
        caption=SHIFT,
        svg=drawn(draw_shift, pairs, f"STS {sts.head}", cxc.columns[0]),
        suites=("sts", "cxc"),
        paper_figure="PromCSE, Figure 1",
        header=("method", "STS Avg.", "low", "high", "CxC-STS", "low", "high"),
        data=tuple(
            (point.label, *mean_and_ends(point.cell), *mean_and_ends(other.cell))
            for point, other in pairs
        ),
    )


def draw_shift(axes: Axes, pairs: Sequence[Pair], across: str, up: str) -> None:
    best = [max(pair[side].cell.mean for pair in pairs) for side in (0, 1)]
    scatter(
        axes,
        [
            Mark(
                point.cell.mean,
                other.cell.mean,
                point.label,
                strong=point.cell.mean == best[0] or other.cell.mean == best[1],
                x_bar=ends(point.cell),
                y_bar=ends(other.cell),
            )
            for point, other in pairs
        ],
    )
    axes.set_xlabel(across)
    axes.set_title(up)


# --- alignment against uniformity ---

SPHERE = (
    "Uniformity and alignment of the vectors of STS-B test, lower is better on both. In brackets: the average of the STS sets. "
    "Bars: standard deviation over seeds, or the interval of the table where it has one. Coloured: lowest on either."
)


def geometry(group: Group) -> Figure | None:
    """Uniformity across, alignment upwards, the average of the STS sets in brackets. None where fewer than two rows have both."""
    table = group.table("geometry")
    if table is None:
        return None
    shown = one_point_per_method(points(table, "uniformity"), table)
    pairs = join_points(shown, points(table, "alignment"))
    if len(pairs) < 2:
        return None
    averages = _averages(group)
    return Figure(
        name=group.name("geometry"),
        kind="geometry",
        title=group.titled("Alignment against uniformity"),
        caption=SPHERE,
        svg=drawn(draw_geometry, pairs, averages),
        suites=("geometry",),
        paper_figure="SimCSE, Figure 3",
        header=("method", "uniformity", "alignment", "STS Avg."),
        data=tuple(
            (
                across.label,
                round(across.cell.mean, 5),
                round(up.cell.mean, 5),
                averages.get(across.row.runs[0], ""),
            )
            for across, up in pairs
        ),
    )


def _averages(group: Group) -> dict[str, float]:
    """Run id -> average of the STS sets of its row."""
    table = group.table("sts")
    found = points(table, table.head) if table is not None else []
    return {run: round(point.cell.mean, 2) for point in found for run in point.row.runs}


def draw_geometry(axes: Axes, pairs: Sequence[Pair], averages: Mapping[str, float]) -> None:
    best = [min(pair[side].cell.mean for pair in pairs) for side in (0, 1)]
    scatter(
        axes,
        [
            Mark(
                across.cell.mean,
                up.cell.mean,
                f"{across.label} ({averages[across.row.runs[0]]:.1f})"
                if across.row.runs[0] in averages
                else across.label,
                strong=across.cell.mean == best[0] or up.cell.mean == best[1],
                x_bar=ends(across.cell),
                y_bar=ends(up.cell),
            )
            for across, up in pairs
        ],
    )
    axes.set_xlabel("uniformity (lower: spread more evenly)")
    axes.set_title("alignment (lower: paraphrases closer)")


# --- singular values ---

TASK, VALUES = "uniformity", "singular_values"  # of whose predictions they are a part
SPECTRUM = (
    "Singular values of the unit vectors of STS-B test less their mean, each over the largest; means over seeds. Coloured: the largest "
    "effective rank, which is exp of the entropy of the values (Roy and Vetterli 2007) and stands in the table. Of many methods those of the largest ranks and the smallest are drawn."
)


@dataclass(frozen=True)
class Spectrum:
    """Of a row: means over its runs."""

    label: str
    share: tuple[float, ...]  # of each singular value in the largest, that first
    rank: float  # effective: how many directions are used


def spectrum(group: Group, runs: Mapping[str, PublishedRun]) -> Figure | None:
    """A line per method over the number of the singular value, in powers of two. None where fewer than two methods have them."""
    table = group.table("geometry")
    if table is None:
        return None
    shown = one_point_per_method(points(table, TASK), table)
    made = [
        one
        for point in shown
        if (one := _spectrum(point.label, point.row, table, runs)) is not None
    ]
    if len(made) < 2:
        return None
    made.sort(key=lambda one: -one.rank)
    last = min(len(one.share) for one in made)
    places = sorted({*(1 << i for i in range(last.bit_length())), last})
    return Figure(
        name=group.name("spectrum"),
        kind="spectrum",
        title=group.titled("How many directions the vectors use"),
        caption=SPECTRUM,
        svg=drawn(draw_spectrum, made, places),
        suites=("geometry",),
        paper_figure="SimCSE, Figure F.1",
        header=("method", "effective rank", *(f"value {k}" for k in places)),
        data=tuple(
            (one.label, round(one.rank, 3), *(round(one.share[k - 1], 5) for k in places))
            for one in made
        ),
    )


def draw_spectrum(axes: Axes, made: Sequence[Spectrum], places: Sequence[int]) -> None:
    """``made``: the largest effective rank first."""
    shown = made if len(made) <= MOST_LINES else [*made[: MOST_LINES - 1], made[-1]]
    lines(
        axes,
        [
            Line(
                one.label,
                tuple(range(len(places))),
                tuple(one.share[k - 1] for k in places),
                strong=one is made[0],
            )
            for one in shown
        ],
    )
    axes.set_ylim(0, 1.05)
    axes.set_xticks(range(len(places)), [str(k) for k in places])
    axes.set_xlabel("singular value, the largest first")
    axes.set_title("share of the largest")


def _spectrum(
    label: str, row: Row, table: Table, runs: Mapping[str, PublishedRun]
) -> Spectrum | None:
    values = [own for run in row.runs if run in runs and (own := _values(runs[run], table))]
    if not values or len({len(own) for own in values}) > 1:
        return None
    try:
        ranks = [effective_rank(own) for own in values]
    except ValueError:
        return None
    shares = zip(*([value / own[0] for value in own] for own in values), strict=True)
    return Spectrum(label, tuple(fmean(column) for column in shares), fmean(ranks))


def _values(run: PublishedRun, table: Table) -> list[float]:
    """As the run stored them; empty where it did not, or where they are not what they should be."""
    import numpy as np

    key = ScoreKey(table.suite, TASK, table.protocol, table.text)
    try:
        values = Run(run.record, run.folder).predictions(key, (VALUES,)).get(VALUES)
    except BenchError:
        return []
    if values is None or values.dtype.kind != "f" or values.ndim != 1 or values.size < 2:
        return []
    sound = np.isfinite(values).all() and values[0] > 0 and values.min() >= 0
    return values.tolist() if sound else []
