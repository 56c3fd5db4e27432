"""Alignment against uniformity of the vectors of STS-B (SimCSE, Figure 3; Focal-InfoNCE, Table 3)."""

from __future__ import annotations

from collections.abc import Sequence

from bench.show.figures import scatter
from bench.show.figures.drawing import Drawing, library
from bench.show.figures.figure import Figure
from bench.show.figures.points import Group, Point, joined, leading, listed, methods, points

ALIGNMENT, UNIFORMITY = "alignment", "uniformity"


def sphere(group: Group) -> Figure | None:
    """Uniformity across, alignment upwards, the average of the STS sets in brackets. None where fewer than two rows have both."""
    board_table = group.tables.get("geometry")
    if board_table is None:
        return None
    table = board_table.table
    pairs = joined(methods(points(table, UNIFORMITY), table), points(table, ALIGNMENT))
    if len(pairs) < 2:
        return None
    averages = _averages(group)
    best = [min(range(len(pairs)), key=lambda i: pairs[i][side].cell.mean) for side in (0, 1)]
    marks = [
        scatter.Mark(
            across.cell.mean,
            up.cell.mean,
            f"{across.label}{_bracket(averages, across)}",
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
        scatter.fit(axes, marks, least=0.02)
        drawing.names(axes, "uniformity (lower: spread more evenly)", "alignment (lower: paraphrases closer)")
        left_out = scatter.draw(drawing, axes, marks)
        name, title = group.name("geometry"), group.titled("Alignment against uniformity")
        finding = _finding(pairs)
        how = "Lower is better on both; vectors of STS-B test."
        if averages:
            how += " In brackets: the average of the STS sets."
        if any(mark.x_bar or mark.y_bar for mark in marks):
            how += " Bars: standard deviation over seeds."
        alt = f"Scatter of {len(pairs)} methods: alignment against uniformity. {finding}"
        return Figure(
            name=name,
            kind="geometry",
            title=title,
            caption=" ".join(filter(None, (finding, how, scatter.unlabelled(left_out)))),
            alt=alt,
            svg=drawing.svg(name, title, alt),
            paper_figure="SimCSE, Figure 3",
            header=("method", "uniformity", "alignment", "STS Avg."),
            data=tuple(
                (across.label, round(across.cell.mean, 5), round(up.cell.mean, 5), averages.get(across.row.runs[0], ""))
                for across, up in pairs
            ),
        )


def _finding(pairs: Sequence[tuple[Point, Point]]) -> str:
    even, close = (leading([(pair[0].label, -pair[side].cell.mean) for pair in pairs], 3) for side in (0, 1))
    if even == close:
        return f"{listed(even)} {'is' if len(even) == 1 else 'are'} lowest on both."
    spread, put = ("spreads" if len(even) == 1 else "spread"), ("puts" if len(close) == 1 else "put")
    return f"{listed(even)} {spread} sentences most evenly, {listed(close)} {put} paraphrases closest together."


def _averages(group: Group) -> dict[str, float]:
    """Run id -> average of the STS sets of its row."""
    if "sts" not in group.tables:
        return {}
    table = group.tables["sts"].table
    return {run: round(point.cell.mean, 2) for point in points(table, table.head) for run in point.row.runs}


def _bracket(averages: dict[str, float], point: Point) -> str:
    found = averages.get(point.row.runs[0])
    return "" if found is None else f" ({found:.1f})"


def _sd(point: Point) -> tuple[float, float] | None:
    """These metrics have no interval from resampling."""
    cell = point.cell
    return None if cell.sd is None else (cell.mean - cell.sd, cell.mean + cell.sd)
