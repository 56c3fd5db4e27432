"""The picture that other sites show for a link to a board: its finding, and the drawn intervals of
its first table. 1200 x 630 pixels, PNG, the same bytes for the same board."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.base.foreign_text import make_visible
from bench.board.board import Board
from bench.board.finding import board_finding, main_table_of
from bench.show.pages.intervals import WIDTH, drawn_rows, versus_heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CARD = "card.png"
"""Its name in a version's folder."""
PIXELS = (1200, 630)
DPI = 100
# the colours of the pages in light
PAPER = "#fdfcf9"
INK = "#1c1b19"
QUIET = "#66625b"
ACCENT = "#8a3b12"
STYLE = {"text.parse_math": False, "font.family": ["DejaVu Sans"]}
MOST_ROWS = 30
# characters of a line of these texts
CLAIM_WIDTH = 25
COUNTS_WIDTH = 38
TITLE_WIDTH = 60
MOST_LINES = 5


def draw_card(board: Board) -> bytes:
    """Draw the card of a board as a PNG file."""
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    finding = board_finding([shown.table for shown in board.tables])
    with matplotlib.style.context(STYLE, after_reset=True):
        sheet = Figure(figsize=(PIXELS[0] / DPI, PIXELS[1] / DPI), dpi=DPI, facecolor=PAPER)
        canvas = FigureCanvasAgg(sheet)
        title = textwrap.shorten(make_visible(f"{board.title}, {board.version}"), TITLE_WIDTH)
        sheet.text(0.05, 0.9, title, size=19, color=QUIET, va="center")
        claim = _lines(finding.claim, CLAIM_WIDTH)
        sheet.text(
            0.05, 0.8, claim, size=35, color=INK, va="top", weight="bold", family="DejaVu Serif"
        )
        below = 0.8 - 0.092 * (claim.count("\n") + 1) - 0.05
        sheet.text(0.05, below, _lines(finding.counts, COUNTS_WIDTH), size=20, color=INK, va="top")
        made = f"{len(board.runs):,} runs, {board.date}; every prediction stored"
        sheet.text(0.05, 0.08, made, size=15, color=QUIET, va="center")
        table = main_table_of([shown.table for shown in board.tables])
        scale, drawn = (None, []) if table is None else drawn_rows(table)
        if table is not None and scale is not None:
            sheet.text(0.81, 0.9, versus_heading(table), size=19, color=QUIET, ha="center")
            _draw_intervals(sheet.add_axes((0.66, 0.08, 0.3, 0.77)), drawn[:MOST_ROWS])
        out = io.BytesIO()
        canvas.print_png(out, metadata={"Software": None})
    return out.getvalue()


def _lines(text: str, width: int) -> str:
    """Break a text into lines; what is too long ends with dots."""
    shown = make_visible(text, limit=None)
    lines = -(-len(shown) // width)
    if lines > 1:  # lines of about the same length
        width = min(width, -(-len(shown) // lines) + 4)
    return textwrap.fill(shown, width, max_lines=MOST_LINES, placeholder=" ...")


def _draw_intervals(axes: Axes, drawn: Sequence[dict[str, Any]]) -> None:
    """Draw the intervals of rows below each other, with the zero line."""
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(len(drawn) - 0.5, -0.5)
    axes.axvline(drawn[0]["zero"], color=QUIET, linewidth=1.2)
    for place, drawing in enumerate(drawn):
        colour = ACCENT if drawing["kind"] in ("better", "worse") else QUIET
        if drawing["bar"]:
            axes.plot(drawing["bar"], (place, place), color=colour, linewidth=2.4)
        if drawing["point"] is not None:
            axes.plot([drawing["point"]], [place], "o", color=colour, markersize=7)
        elif drawing["bar"]:
            marker, x = ("<", drawing["bar"][0]) if drawing["left"] else (">", drawing["bar"][1])
            axes.plot([x], [place], marker, color=colour, markersize=7, clip_on=False)
