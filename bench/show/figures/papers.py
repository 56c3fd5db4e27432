"""Figures of papers, drawn from our runs: printed values against ours, STS-B without frequent words, and Focal-InfoNCE's re-scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench.compare.formatting import visible
from bench.compare.statistics.table import AVERAGE, LOWER_IS_BETTER, Cell, Printed, Row, Table
from bench.show.figures.drawing import (
    ACCENT,
    AT_END,
    MOST_LINES,
    QUIET,
    SECOND,
    Figure,
    Line,
    Mark,
    drawn,
    lines,
    number,
    scatter,
)
from bench.show.figures.points import (
    Group,
    label,
    one_point_per_method,
    points,
    short_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.board.board import Board
    from bench.runs.record import RunRecord

# --- printed against ours ---

PAPERS = (
    "Numbers that papers print across, ours of the same cell upwards; on the line both are equal. Bars: our intervals. Coloured: the printed value lies "
    "outside of ours. The numbers farthest from the line are named. Averages, which follow from the others, are left out."
)
NAMED = 6  # cells that are labelled


@dataclass(frozen=True)
class Compared:
    """A measured cell and the printed one."""

    method: str
    where: str
    task: str
    cell: Cell
    printed: Printed

    @property
    def bar(self) -> tuple[float, float] | None:
        return (self.cell.spread.low, self.cell.spread.high) if self.cell.spread else None


def compare_cells(board: Board) -> list[Compared]:
    """The cells of the board that a paper printed on the same scale, without averages."""
    return [
        Compared(
            label(row, table.table),
            f"{row.setting}, {short_name(row.backbone)}",
            task,
            cell,
            cell.printed,
        )
        for table in board.tables
        for row in table.table.rows
        for task, cell in zip(table.table.columns, row.cells, strict=True)
        if cell is not None
        and cell.printed
        and (task != AVERAGE or len(table.table.columns) == 1)
        and task not in LOWER_IS_BETTER
    ]


def papers(board: Board) -> Figure | None:
    """None where fewer than two cells were printed."""
    cells = compare_cells(board)
    if len(cells) < 2:
        return None
    return Figure(
        name="papers",
        kind="papers",
        suites=(),
        title="Printed against reproduced",
        caption=PAPERS,
        svg=drawn(draw_papers, cells, height=360.0),
        header=(
            "method",
            "setting, backbone",
            "task",
            "paper:table",
            "printed",
            "here",
            "low",
            "high",
            "difference",
        ),
        data=tuple(
            (
                one.method,
                visible(one.where),
                one.task,
                one.printed.source,
                one.printed.value,
                round(one.cell.mean, 4),
                *(one.bar or ("", "")),
                one.printed.difference,
            )
            for one in cells
        ),
    )


def draw_papers(axes: Axes, cells: Sequence[Compared]) -> None:
    far = sorted(range(len(cells)), key=lambda i: -abs(cells[i].printed.difference))[:NAMED]
    marks = [
        Mark(
            one.printed.value,
            one.cell.mean,
            visible(f"{one.method} {one.task}", limit=24) if i in far else "",
            strong=one.printed.inside is False,
            y_bar=one.bar,
        )
        for i, one in enumerate(cells)
    ]
    scatter(axes, marks)
    axes.axline((marks[0].x, marks[0].x), slope=1, color=QUIET, linewidth=0.9)
    axes.set_xlabel("printed in the paper")
    axes.set_title("measured here")


# --- without the most frequent words ---

FREQUENT = (
    "Correlation on STS-B test when the most frequent words of STS-B test are taken out of the sentences; means over seeds. Coloured: the largest gain. "
    "Of many methods those highest at first are drawn. (ConPVP's Figure 5 takes out tokens, and averages the seven STS sets.)"
)
Curve = dict[int, float]  # number of words taken out -> correlation


def frequent(group: Group, records: Mapping[str, RunRecord]) -> Figure | None:
    """A line per method over the number of words taken out. None where fewer than two methods have them."""
    table = group.table("geometry")
    if table is None:
        return None
    shown = one_point_per_method(points(table, "alignment"), table)
    curves = [(point.label, _curve(point.row, records, table)) for point in shown]
    steps = sorted({k for _, curve in curves for k in curve})
    whole = [(name, curve) for name, curve in curves if steps and len(curve) == len(steps)]
    if len(whole) < 2 or len(steps) < 2:
        return None
    whole.sort(key=lambda pair: (-pair[1][steps[0]], pair[0]))
    return Figure(
        name=group.name("frequent-words"),
        kind="frequent-words",
        suites=("geometry",),
        title=group.titled("Without the most frequent words"),
        caption=FREQUENT,
        svg=drawn(draw_frequent, whole, steps),
        header=("method", *(f"{k} words taken out" for k in steps)),
        data=tuple((name, *(round(curve[k], 4) for k in steps)) for name, curve in whole),
    )


def draw_frequent(axes: Axes, whole: Sequence[tuple[str, Curve]], steps: Sequence[int]) -> None:
    gains = [curve[steps[-1]] - curve[steps[0]] for _, curve in whole]
    highest = gains.index(max(gains))
    lines(
        axes,
        [
            Line(
                name,
                tuple(range(len(steps))),
                tuple(curve[k] for k in steps),
                strong=i == highest,
            )
            for i, (name, curve) in enumerate(whole)
            if i < MOST_LINES or i == highest
        ],
    )
    axes.set_xticks(range(len(steps)), [str(k) for k in steps])
    axes.set_xlabel("most frequent words taken out")
    axes.set_title("STS-B test, Spearman × 100")


def _curve(row: Row, records: Mapping[str, RunRecord], table: Table) -> Curve:
    """Mean over the row's runs, of what all of them have."""
    found = [_values(records[run], table) for run in row.runs if run in records]
    runs = [values for values in found if values]
    common = set.intersection(*map(set, runs)) if runs else set()
    return {k: fmean(values[k] for values in runs) for k in sorted(common)}


def _values(record: RunRecord, table: Table) -> Curve:
    """Of one run; empty where the record holds none, or something else."""
    alignment = record.score("geometry", "alignment", table.protocol, table.text)
    stored: Any = alignment.detail.get("without_frequent_words") if alignment else None
    pairs = [
        (number(entry.get("k")), number(entry.get("spearman")))
        for entry in (stored if isinstance(stored, list) else ())
        if isinstance(entry, dict)
    ]
    return {int(k): value for k, value in pairs if k is not None and value is not None}


# --- Focal-InfoNCE's re-scaling of negative pairs, from the formula ---

RESCALING = (
    "The value s (s + m) that Focal-InfoNCE takes in place of the cosine s of a negative pair, for the values of m in its Table 5. Orange: up-weighted, "
    "where the curve lies above s (dashed), which is where s > 1 − m; green: down-weighted. Drawn from the formula, without a run."
)
ADDED = (0.1, 0.2, 0.3, 0.4)  # values of m
STEPS = 40  # parts that a curve is drawn in


def rescaled(s: float, m: float) -> float:
    """What stands for the cosine s of a negative pair in the loss, before the temperature (Focal-InfoNCE, eq. 2)."""
    return s * (s + m)


def rescaling() -> Figure:
    return Figure(
        name="rescaling",
        kind="rescaling",
        suites=(),
        title="Re-scaled negative pairs",
        caption=RESCALING,
        svg=drawn(draw_rescaling),
        paper_figure="Focal-InfoNCE, Figure 1",
        header=("cosine", *(f"m = {m:g}" for m in ADDED)),
        data=tuple(
            (s, *(round(rescaled(s, m), 4) for m in ADDED)) for s in (i / 10 for i in range(11))
        ),
    )


def draw_rescaling(axes: Axes) -> None:
    axes.plot([0, 1], [0, 1], "--", color=QUIET)
    axes.text(1.02, 1.0, "s", gid=AT_END, va="center")
    for m in ADDED:
        for low, high, colour in ((0.0, 1 - m, SECOND), (1 - m, 1.0, ACCENT)):
            cosines = [low + (high - low) * i / STEPS for i in range(STEPS + 1)]
            axes.plot(cosines, [rescaled(s, m) for s in cosines], color=colour, linewidth=1.6)
        axes.text(1.02, rescaled(1.0, m), f"m = {m:g}", gid=AT_END, va="center")
    axes.set_xlim(0, 1)
    axes.set_xlabel("cosine s of a negative pair")
    axes.set_title("re-scaled: s (s + m)")
