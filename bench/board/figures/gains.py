"""The figure of gains over the baseline, in which a method is a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from bench.board.figures.groups import Group
from bench.board.figures.sheet import ACCENT, QUIET, DataRow, Figure, draw_mark, rounded
from bench.compare.formatting import signed_number
from bench.compare.statistics.table import BETTER, WORSE, Against
from bench.compare.words.names import baseline_name, column_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAR = 20
"""Points of a gain that is not drawn to scale: one outlier would squeeze all others."""
MOST_GAINS = 40
"""Rows of the figure of gains over the baseline."""
FigureRows = Sequence[tuple[str, float, Sequence[float], bool]]
"""Name, value, ends of its bar, and whether it is coloured; the first at the top."""


def sheet_height(rows: Sequence[object]) -> float:
    """Return the height of a sheet with so many rows, in points."""
    return 56.0 + 20.0 * len(rows)


def draw_rows(axes: Axes, rows: FigureRows, across: str, gains: bool = False) -> None:
    """Draw row i at the height i.

    ``gains``: the values are gains, with a line at 0. A row that is far away has its number in its
    name, and no point.
    """
    names = [name for name, *_ in rows]
    for i, (name, value, bar, strong) in enumerate(rows):
        if not gains or abs(value) <= FAR:
            draw_mark(axes, value, i, ACCENT if strong else QUIET, bar)
        else:
            names[i] = f"{name} ({signed_number(value).replace('-', '−')})"
    if gains:
        axes.axvline(0, color=ACCENT, linestyle="--")
        axes.text(0, -0.7, "0", ha="center", va="bottom", size=10)
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=6)
    # longer than the axis: at its right end, it has the room below the names
    axes.set_xlabel(across, loc="right")


def gains(group: Group) -> Figure | None:
    """Draw the rows that were compared with the baseline, the largest gain first; None if there is
    none."""
    suite = min(group.tables, key=lambda suite: (suite != "sts", suite))
    table = group.tables[suite]
    compared: list[tuple[str, Against, str]] = []
    for point in group.methods(suite):
        against = point.cell.against
        if against is not None and against.se is not None:
            compared.append((point.label, against, against.verdict or point.row.stands))
    compared.sort(key=lambda gain: -gain[1].difference)
    rows = []
    for label, against, _ in compared[:MOST_GAINS]:
        ends = [end for end in (against.ci_low, against.ci_high) if end is not None]
        rows.append((label, against.difference, ends, against.verdict in (BETTER, WORSE)))
    data: list[DataRow] = []
    for label, against, word in compared:
        numbers = rounded(against.difference, against.ci_low, against.ci_high, against.ci_level)
        data.append((label, *numbers, word))
    if not data:
        return None
    return group.figure(
        "gains",
        f"Gains over {baseline_name(table)}",
        "Each row minus the baseline. Bar: the confidence interval of the difference, at the level "
        "given in the table. Coloured: better or worse than the baseline; grey: inconclusive, or "
        "not judged. Rows more than 20 points away are not drawn; their difference is in brackets. "
        f"At most {MOST_GAINS} rows, the highest.",
        data,
        plot=partial(
            draw_rows,
            rows=rows,
            across=f"{column_name(table).removeprefix('the ')} minus that of {baseline_name(table)}",
            gains=True,
        ),
        height=sheet_height(rows),
        suites=(suite,),
        header=("method", "gain", "low", "high", "level of the interval", "verdict"),
    )
