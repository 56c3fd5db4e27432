"""The sheet of a figure: its colours, an SVG file, and marks with error bars."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bench.base.grid import csv_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DataRow = tuple[str | float, ...]

ACCENT, QUIET = "#c2622d", "#8a857d"
"""Colours of marks: contrast of at least 3 with both backgrounds of the pages, #fdfcf9 and #171614.
"""
TEXT, TEXT_IN_THE_DARK = "#757068", "#a39d92"
"""Colours of text: contrast of at least 4.5 with the background. No grey has that with both (4.2 is
the most), hence one rule for dark pages."""
DARK = f"@media (prefers-color-scheme: dark) {{ text {{ fill: {TEXT_IN_THE_DARK} !important }} }}"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans'"
WIDTH = 360.0
"""Points of a sheet: a third of a page, or a phone, so that text has its size there."""
UNDATED = dict.fromkeys(("Date", "Creator", "Format", "Type"))
STYLE: dict[str, Any] = {
    "figure.dpi": 72,  # one unit of the SVG is a point
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 6 / 72,
    "figure.constrained_layout.h_pad": 4 / 72,
    "svg.fonttype": "none",
    "svg.hashsalt": "bench",
    "font.family": ["DejaVu Sans"],
    "font.size": 11.0,
    "text.parse_math": False,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": QUIET,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": QUIET,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "xtick.bottom": False,
    "ytick.left": False,
    "xtick.labelsize": 10.0,
    "ytick.labelsize": 10.0,
    "lines.linewidth": 1.3,
    "lines.markersize": 6.0,
}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One drawing with the data that it is drawn from."""

    # "gains-unsupervised-builtin": letters, digits and hyphens; its file is figures/<name>.svg
    name: str
    # a heading, and the text for readers who do not see the picture
    title: str
    # says what is drawn; the same for all data
    caption: str
    plot: Callable[[Axes], None]
    # in points
    height: float = 300.0
    # names of the columns of ``data``
    header: tuple[str, ...]
    # "" if something was not recorded
    data: Sequence[DataRow]
    # suites that it shows; none if it fits tables of any suite
    suites: tuple[str, ...] = ("sts",)
    # the paper's figure that it corresponds to: "PromCSE, Figure 1"
    paper_figure: str = ""

    @cached_property
    def svg(self) -> str:
        """The plot on transparent ground, as an SVG file. The same data give the same bytes."""
        import matplotlib.style
        from matplotlib.figure import Figure as Sheet

        with matplotlib.style.context(STYLE, after_reset=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the font may lack a character of a foreign name
            sheet = Sheet(figsize=(WIDTH / 72, self.height / 72))
            out = io.StringIO()
            self.plot(sheet.subplots())
            sheet.savefig(out, format="svg", transparent=True, metadata=UNDATED)
        svg = out.getvalue().replace("'DejaVu Sans'", FONTS)
        return svg.replace("</style>", f"{DARK}</style>", 1)

    @property
    def csv(self) -> str:
        """The data as CSV; no spreadsheet takes a name for a formula."""
        return csv_lines(self.header, self.data)


BAR = "_bar"  # label of an error bar


def draw_mark(
    axes: Axes,
    x: float,
    y: float,
    colour: str,
    x_ends: Sequence[float] = (),
    y_ends: Sequence[float] = (),
) -> None:
    """Draw a point with the error bars that it has, each from its lower to its upper end."""
    for across, up in ((x_ends, (y, y)), ((x, x), y_ends)):
        if across and up:
            axes.plot(across, up, color=colour, linewidth=1.1, alpha=0.6, zorder=2, label=BAR)
    axes.plot([x], [y], "o", color=colour, zorder=3)


def rounded(*values: float | None) -> DataRow:
    """Return values as a figure's data have them: "" for None."""
    return tuple("" if value is None else round(value, 4) for value in values)
