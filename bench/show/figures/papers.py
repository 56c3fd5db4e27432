"""What papers printed against what was measured here, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.compare.formatting import score, signed_number, visible
from bench.compare.statistics.table import AVERAGE, LOWER_IS_BETTER, Cell, Printed
from bench.show.figures import plots
from bench.show.figures.drawing import LINE, Drawing, Figure, library
from bench.show.figures.points import count_words, label, short_name

if TYPE_CHECKING:
    from bench.board.board import Board

NAMED = 6  # cells that are labelled: those farthest from the diagonal


@dataclass(frozen=True)
class Compared:
    """A measured cell and the printed one."""

    method: str
    where: str
    task: str
    cell: Cell
    printed: Printed


def compare_cells(board: Board) -> list[Compared]:
    """The cells of the board that a paper printed on the same scale; averages are left out, for they follow from the others."""
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
    """Printed values across, ours upwards, equal on the diagonal. None where fewer than two cells were printed."""
    cells = compare_cells(board)
    if len(cells) < 2:
        return None
    far = sorted(range(len(cells)), key=lambda i: -abs(cells[i].printed.difference))[:NAMED]
    marks = [
        plots.Mark(
            one.printed.value,
            one.cell.mean,
            visible(f"{one.method} {one.task}", limit=30) if i in far else "",
            f"{one.method}, {one.task}: printed {score(one.printed.value)}, here {score(one.cell.mean)} ({signed_number(one.printed.difference)})",
            strong=one.printed.inside is False,
            y_bar=(one.cell.spread.low, one.cell.spread.high) if one.cell.spread else None,
        )
        for i, one in enumerate(cells)
    ]
    with library():
        drawing = Drawing()
        axes = drawing.axes()
        plots.fit_axes(axes, marks)
        ends = plots.limits([v for mark in marks for v in (mark.x, mark.y, *(mark.y_bar or ()))])
        axes.set_xlim(*ends)
        axes.set_ylim(*ends)
        axes.set_yticks([t for t in axes.get_xticks() if ends[0] <= t <= ends[1]])
        axes.plot(ends, ends, color=LINE, linewidth=1.2, zorder=1)
        drawing.names(axes, "printed in the paper", "measured here")
        order = [
            *far,
            *(i for i in range(len(marks)) if i not in far),
        ]  # labels where there is something to say come first
        plots.draw_points(drawing, axes, [marks[i] for i in order])
        title = "Printed against reproduced"
        alt = f"Scatter of {len(cells)} numbers: printed across, measured here upwards. {_finding(cells)}"
        return Figure(
            name="papers",
            kind="papers",
            suites=(),
            title=title,
            caption=_caption(cells),
            alt=alt,
            svg=drawing.svg("papers", title, alt),
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
                    cell.method,
                    visible(cell.where),
                    cell.task,
                    cell.printed.source,
                    cell.printed.value,
                    round(cell.cell.mean, 4),
                    *(
                        (cell.cell.spread.low, cell.cell.spread.high)
                        if cell.cell.spread
                        else ("", "")
                    ),
                    cell.printed.difference,
                )
                for cell in cells
            ),
        )


def _finding(cells: Sequence[Compared]) -> str:
    tested = [cell for cell in cells if cell.printed.inside is not None]
    inside = sum(one.printed.inside is True for one in tested)
    far = max(cells, key=lambda cell: abs(cell.printed.difference))
    found = (
        f"Inside our interval: {inside} of {count_words(len(tested), 'printed number')}. "
        if tested
        else ""
    )
    if score(abs(far.printed.difference)) == score(0.0):
        return f"{found}Every number is the printed one."
    return f"{found}Farthest apart: {far.method} on {far.task}, printed {score(far.printed.value)}, here {score(far.cell.mean)}."


def _caption(cells: Sequence[Compared]) -> str:
    copied = sum(not cell.printed.own for cell in cells)
    parts = [_finding(cells), "On the line both are equal."]
    parts += ["Bars: our interval."] if any(cell.cell.spread for cell in cells) else []
    parts += (
        ["Filled: the printed value lies outside of it."]
        if any(cell.printed.inside is False for cell in cells)
        else []
    )
    if copied:
        parts.append(
            f"{count_words(copied, 'number')} {'was' if copied == 1 else 'were'} copied by the paper from another one."
        )
    return " ".join(parts)
