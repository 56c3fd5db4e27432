"""Where vectors lie, and what becomes of scores elsewhere: how fast singular values fall (SimCSE, Figure F.1: whether a few directions
hold most of them), STS against CxC (PromCSE, Figure 1), and alignment against uniformity (SimCSE, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.compare.formatting import score
from bench.runs.predictions import predictions_file
from bench.score.metrics.geometry import effective_rank
from bench.show.figures import plots
from bench.show.figures.drawing import Drawing, Figure, library
from bench.show.figures.points import (
    Group,
    Point,
    bars_words,
    count_words,
    ends,
    join_points,
    leaders,
    mean_and_ends,
    names_in_words,
    one_point_per_method,
    points,
    shown_words,
)

if TYPE_CHECKING:
    from bench.board.board import PublishedRun
    from bench.compare.statistics.table import Row, Table


TASK, VALUES = "uniformity", "singular_values"  # of whose predictions they are a part
HOW = "Singular values of the unit vectors of STS-B test less their mean, over the largest of them; means over seeds. Effective rank: exp of the entropy of the values (Roy and Vetterli 2007)."


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
    rows = one_point_per_method(points(table, TASK), table)
    found = [
        made
        for point in rows
        if (made := _spectrum(point.label, point.row, table, runs)) is not None
    ]
    if len(found) < 2:
        return None
    last = min(len(made.share) for made in found)
    places = sorted({*(1 << i for i in range(last.bit_length())), last})
    found.sort(key=lambda made: -made.rank)
    shown = found if len(found) <= plots.MOST else [*found[: plots.MOST - 1], found[-1]]
    best = leaders([(made.label, made.rank) for made in found])
    drawn = [
        plots.Line(
            label=made.label,
            x=tuple(range(len(places))),
            y=tuple(made.share[k - 1] for k in places),
            strong=made.label in best,
            tips=tuple(
                f"{made.label}, singular value {k}: {made.share[k - 1]:.3f} of the largest"
                for k in places
            ),
        )
        for made in shown
    ]
    name, title, finding = (
        group.name("spectrum"),
        group.titled("How many directions the vectors use"),
        spectrum_words(found),
    )
    rest = shown_words(shown, found)
    alt = f"Falling lines of {count_words(len(shown), 'method')}: singular values over the largest. {finding}"
    with library():
        drawing = plots.drawn_over(
            places, drawn, "singular value, the largest first", "share of the largest", also=(0.0,)
        )
        return Figure(
            name=name,
            kind="spectrum",
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            caption=f"{finding} {HOW}{rest}",
            header=("method", "effective rank", *(f"value {k}" for k in places)),
            suites=("geometry",),
            paper_figure="SimCSE, Figure F.1",
            data=tuple(
                (made.label, round(made.rank, 3), *(round(made.share[k - 1], 5) for k in places))
                for made in found
            ),
        )


def spectrum_words(found: Sequence[Spectrum]) -> str:
    """Whose vectors use most directions, and whose fewest. ``found``: at least two."""
    most, fewest = (
        leaders([(made.label, sign * round(made.rank, 1)) for made in found], 3) for sign in (1, -1)
    )
    of = " to ".join(str(size) for size in sorted({len(made.share) for made in found}))
    ranks = {made.label: f"{made.rank:.1f}" for made in found}
    if most == fewest:
        return f"All {len(found)} methods use {ranks[most[0]]} of {of} directions."
    return (
        f"The vectors of {names_in_words(most)} use most directions, {ranks[most[0]]} of {of}; those of {names_in_words(fewest)} fewest, "
        f"{ranks[fewest[0]]}."
    )


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
    return Spectrum(
        label,
        tuple(
            fmean(column)
            for column in zip(*([value / own[0] for value in own] for own in values), strict=True)
        ),
        fmean(ranks),
    )


def _values(run: PublishedRun, table: Table) -> list[float]:
    """As the run stored them; empty where it did not, or where they are not what they should be."""
    import numpy as np

    from bench.runs.arrays import read_arrays

    try:
        values = read_arrays(
            predictions_file(run.folder, (table.suite, TASK, table.protocol, table.text)), (VALUES,)
        ).get(VALUES)
    except BenchError:
        return []
    if (
        values is None
        or values.dtype.kind != "f"
        or values.ndim != 1
        or values.size < 2
        or not np.isfinite(values).all()
    ):
        return []
    return values.tolist() if values[0] > 0 and values.min() >= 0 else []


# --- STS against CxC: whether what is better on the seven STS sets is better on captions of another domain (PromCSE, Figure 1) ---


def shift(group: Group) -> Figure | None:
    """Average of the STS sets against CxC-STS. None where fewer than two rows have both."""
    sts, cxc = group.table("sts"), group.table("cxc")
    if sts is None or cxc is None:
        return None
    pairs = join_points(
        one_point_per_method(points(sts, sts.head), sts), points(cxc, cxc.columns[0])
    )
    if len(pairs) < 2:
        return None
    best = [max(range(len(pairs)), key=lambda i: pairs[i][side].cell.mean) for side in (0, 1)]
    marks = [
        plots.Mark(
            point.cell.mean,
            other.cell.mean,
            point.label,
            f"{point.label}: STS {score(point.cell.mean)}, CxC {score(other.cell.mean)}",
            strong=i in best,
            x_bar=ends(point.cell),
            y_bar=ends(other.cell),
        )
        for i, (point, other) in enumerate(pairs)
    ]
    with library():
        drawing = Drawing()
        axes = drawing.axes()
        plots.fit_axes(axes, marks)
        drawing.names(axes, f"STS {sts.head}", cxc.columns[0])
        left_out = plots.draw_points(drawing, axes, marks)
        name, title = group.name("shift"), group.titled("STS against captions of another domain")
        finding = _finding(pairs)
        alt = f"Scatter of {len(pairs)} methods: CxC-STS against the average of the STS sets. {finding}"
        how = (
            f"Seven STS sets ({sts.protocol}) across, captions of images ({cxc.protocol}) upwards."
        )
        return Figure(
            name=name,
            kind="shift",
            suites=("sts", "cxc"),
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            paper_figure="PromCSE, Figure 1",
            caption=" ".join(
                filter(
                    None, (finding, how, bars_words([sts, cxc]), plots.unlabelled_words(left_out))
                )
            ),
            header=("method", "STS Avg.", "low", "high", "CxC-STS", "low", "high"),
            data=tuple(
                (point.label, *mean_and_ends(point.cell), *mean_and_ends(other.cell))
                for point, other in pairs
            ),
        )


def _finding(pairs: Sequence[tuple[Point, Point]]) -> str:
    here, there = (
        leaders([(pair[0].label, pair[side].cell.mean) for pair in pairs]) for side in (0, 1)
    )
    are = "is" if len(here) == 1 else "are"
    first = (
        f"{names_in_words(here)} {are} highest on both"
        if here == there
        else f"{names_in_words(here)} {are} highest on STS, {names_in_words(there)} on CxC"
    )
    if len(pairs) < 3:
        return f"{first}."
    alike, all_of = count_agreeing([(point.cell.mean, other.cell.mean) for point, other in pairs])
    return f"{first}; {alike} of {count_words(all_of, 'pair')} of methods {'are' if alike != 1 else 'is'} in the same order on both."


def count_agreeing(values: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Of all pairs of points: how many both coordinates put in the same order, and how many there are."""
    pairs = list(combinations(values, 2))
    return sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs), len(pairs)


# --- Alignment against uniformity of the vectors of STS-B (SimCSE, Figure 3; Focal-InfoNCE, Table 3) ---


def geometry(group: Group) -> Figure | None:
    """Uniformity across, alignment upwards, the average of the STS sets in brackets. None where fewer than two rows have both."""
    table = group.table("geometry")
    if table is None:
        return None
    pairs = join_points(
        one_point_per_method(points(table, "uniformity"), table), points(table, "alignment")
    )
    if len(pairs) < 2:
        return None
    averages = _averages(group)
    best = [min(range(len(pairs)), key=lambda i: pairs[i][side].cell.mean) for side in (0, 1)]
    marks = [
        plots.Mark(
            across.cell.mean,
            up.cell.mean,
            f"{across.label} ({averages[across.row.runs[0]]:.1f})"
            if across.row.runs[0] in averages
            else across.label,
            f"{across.label}: uniformity {across.cell.mean:.3f}, alignment {up.cell.mean:.3f}",
            strong=i in best,
            x_bar=_sd(across),
            y_bar=_sd(up),
        )
        for i, (across, up) in enumerate(pairs)
    ]
    with library():
        drawing = Drawing()
        axes = drawing.axes()
        plots.fit_axes(axes, marks, least=0.02)
        drawing.names(
            axes, "uniformity (lower: spread more evenly)", "alignment (lower: paraphrases closer)"
        )
        left_out = plots.draw_points(drawing, axes, marks)
        name, title = group.name("geometry"), group.titled("Alignment against uniformity")
        finding = _sphere_finding(pairs)
        how = "Lower is better on both; vectors of STS-B test."
        if averages:
            how += " In brackets: the average of the STS sets."
        if any(mark.x_bar or mark.y_bar for mark in marks):
            how += " Bars: standard deviation over seeds."
        alt = f"Scatter of {len(pairs)} methods: alignment against uniformity. {finding}"
        return Figure(
            name=name,
            kind="geometry",
            suites=("geometry",),
            title=title,
            caption=" ".join(filter(None, (finding, how, plots.unlabelled_words(left_out)))),
            alt=alt,
            svg=drawing.svg(name, title, alt),
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


def _sphere_finding(pairs: Sequence[tuple[Point, Point]]) -> str:
    even, close = (
        leaders([(pair[0].label, -pair[side].cell.mean) for pair in pairs], 3) for side in (0, 1)
    )
    if even == close:
        return f"{names_in_words(even)} {'is' if len(even) == 1 else 'are'} lowest on both."
    spread, put = (
        ("spreads" if len(even) == 1 else "spread"),
        ("puts" if len(close) == 1 else "put"),
    )
    return f"{names_in_words(even)} {spread} sentences most evenly, {names_in_words(close)} {put} paraphrases closest together."


def _averages(group: Group) -> dict[str, float]:
    """Run id -> average of the STS sets of its row."""
    table = group.table("sts")
    if table is None:
        return {}
    return {
        run: round(point.cell.mean, 2)
        for point in points(table, table.head)
        for run in point.row.runs
    }


def _sd(point: Point) -> tuple[float, float] | None:
    """These metrics have no interval from resampling."""
    cell = point.cell
    return None if cell.sd is None else (cell.mean - cell.sd, cell.mean + cell.sd)
