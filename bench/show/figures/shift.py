"""STS against CxC: whether what is better on the seven STS sets is better on captions of another domain (PromCSE, Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from bench.compare.formatting import score
from bench.show.figures import scatter
from bench.show.figures.drawing import Drawing, library
from bench.show.figures.figure import Figure
from bench.show.figures.points import Group, Point, bars_words, counted, ends, joined, leading, listed, methods, points

Pair = tuple[Point, Point]


def shift(group: Group) -> Figure | None:
    """Average of the STS sets against CxC-STS. None where fewer than two rows have both."""
    if "sts" not in group.tables or "cxc" not in group.tables:
        return None
    sts, cxc = group.tables["sts"].table, group.tables["cxc"].table
    pairs = joined(methods(points(sts, sts.head), sts), points(cxc, cxc.columns[0]))
    if len(pairs) < 2:
        return None
    best = [max(range(len(pairs)), key=lambda i: pairs[i][side].cell.mean) for side in (0, 1)]
    marks = [scatter.Mark(point.cell.mean, other.cell.mean, point.label,
                          f"{point.label}: STS {score(point.cell.mean)}, CxC {score(other.cell.mean)}", strong=i in best,
                          x_bar=ends(point.cell), y_bar=ends(other.cell))
             for i, (point, other) in enumerate(pairs)]  # fmt: skip
    with library():
        drawing = Drawing()
        axes = drawing.axes()
        scatter.fit(axes, marks)
        drawing.names(axes, f"STS {sts.head}", cxc.columns[0])
        left_out = scatter.draw(drawing, axes, marks)
        name, title = group.name("shift"), group.titled("STS against captions of another domain")
        finding = _finding(pairs)
        alt = f"Scatter of {len(pairs)} methods: CxC-STS against the average of the STS sets. {finding}"
        how = f"Seven STS sets ({sts.protocol}) across, captions of images ({cxc.protocol}) upwards."
        return Figure(
            name=name,
            kind="shift",
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            paper_figure="PromCSE, Figure 1",
            caption=" ".join(filter(None, (finding, how, bars_words([sts, cxc]), scatter.unlabelled(left_out)))),
            header=("method", "STS Avg.", "low", "high", "CxC-STS", "low", "high"),
            data=tuple((point.label, *_numbers(point), *_numbers(other)) for point, other in pairs),
        )


def _numbers(point: Point) -> tuple[float | str, ...]:
    bar = ends(point.cell)
    return (round(point.cell.mean, 4), *(("", "") if bar is None else (round(bar[0], 4), round(bar[1], 4))))


def _finding(pairs: Sequence[Pair]) -> str:
    here, there = (leading([(pair[0].label, pair[side].cell.mean) for pair in pairs]) for side in (0, 1))
    are = "is" if len(here) == 1 else "are"
    first = f"{listed(here)} {are} highest on both" if here == there else f"{listed(here)} {are} highest on STS, {listed(there)} on CxC"
    alike, all_of = agreeing([(point.cell.mean, other.cell.mean) for point, other in pairs])
    if len(pairs) < 3:
        return f"{first}."
    return f"{first}; {alike} of {counted(all_of, 'pair')} of methods {'are' if alike != 1 else 'is'} in the same order on both."


def agreeing(values: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Of all pairs of points: how many both coordinates put in the same order, and how many there are."""
    pairs = list(combinations(values, 2))
    return sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs), len(pairs)
