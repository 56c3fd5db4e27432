"""What all figures share: the figure with its data, the style, the sheet that becomes SVG, and
marks and lines with labels."""

from __future__ import annotations

import base64
import importlib.util
import io
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.show.grid import as_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

DataRow = tuple[str | float, ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One drawing with the data that it was drawn from."""

    name: str  # "cost-unsupervised-builtin": letters, digits and hyphens; its file is figures/<name>.svg
    kind: str  # "gains", "cost", "shift" ...
    title: str  # a heading, and the text where the picture is not seen
    caption: str  # static text: what is drawn
    svg: str  # a file
    header: tuple[str, ...]  # of the data
    data: tuple[DataRow, ...]  # "" where something was not recorded
    suites: tuple[str, ...] = ("sts",)  # that it shows; none where it fits tables of any suite
    paper_figure: str = ""  # the paper's figure that it corresponds to: "PromCSE, Figure 1"

    @property
    def uri(self) -> str:
        """The picture as an address, for pages that are one file."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg.encode()).decode()}"

    @property
    def csv(self) -> str:
        """The data as CSV; no spreadsheet takes a name for a formula."""
        return as_csv(self.header, self.data)


# --- the sheet: colours that can be seen on a light page and on a dark one ---

ACCENT, QUIET = "#c2622d", "#8a857d"
"""Of marks: contrast of at least 3 with both backgrounds of the pages, #fdfcf9 and #171614."""
TEXT, TEXT_IN_THE_DARK = "#757068", "#a39d92"
"""Of text: contrast of at least 4.5 with the background. No grey has that with both (4.2 is the
most), hence one rule for dark pages."""
DARK = f"@media (prefers-color-scheme: dark) {{ text {{ fill: {TEXT_IN_THE_DARK} !important }} }}"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans'"
WIDTH = 360.0  # points of a sheet: a third of a page, or a phone, so that text has its size there
ROW, AROUND = 20.0, 56.0  # points of height of a row of labels, and of all that is not a row
STYLE: dict[str, Any] = {
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


def missing_library(command: str) -> BenchError | None:
    """The error of a command that draws, where matplotlib or adjustText (an extra) is not
    installed."""
    for name in ("matplotlib", "adjustText"):
        if importlib.util.find_spec(name) is None:
            why = f"{command} draws figures with {name}, which is not installed"
            return BenchError(why, "pip install 'sentence-bench[publish]'")
    return None


def drawn(
    draw: Callable[..., None], *data: Any, height: float = 300.0, panels: tuple[int, int] = (1, 1)
) -> str:
    """An SVG file: ``draw(axes, *data)`` on transparent ground. The same data give the same bytes.

    ``panels``: rows and columns of axes; ``draw`` gets a list where there are several.
    """
    import matplotlib.style

    with matplotlib.style.context(STYLE, after_reset=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the font may lack a character of a foreign name
        sheet, out = laid_out(draw, *data, height=height, panels=panels), io.StringIO()
        undated = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        sheet.savefig(out, format="svg", transparent=True, metadata=undated)
    svg = out.getvalue().replace("'DejaVu Sans'", FONTS)
    return svg.replace("</style>", f"{DARK}</style>", 1)


def laid_out(
    draw: Callable[..., None], *data: Any, height: float, panels: tuple[int, int]
) -> Sheet:
    """The drawn sheet with every text inside it and labels placed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet(figsize=(WIDTH / 72, height / 72), dpi=72)
    sheet.set_layout_engine("constrained", w_pad=6 / 72, h_pad=4 / 72)
    canvas = FigureCanvasAgg(sheet)
    axes = list(sheet.subplots(*panels, squeeze=False, sharey=panels[1] > 1).flat)
    draw(axes if len(axes) > 1 else axes[0], *data)
    canvas.draw()
    sheet.set_layout_engine("none")  # the axes stay where they are from here on
    for one in axes:
        _place_labels(one)
    return sheet


NEXT_TO_POINT, AT_END = "label of a point", "label at the end of a line"  # of texts that are placed
BAR = "_bar"  # label of an error bar's line


def _place_labels(axes: Axes) -> None:
    """Moves labels apart. adjustText is deterministic where its number of steps is limited, and not
    its time."""
    from adjustText import adjust_text

    for kind in (NEXT_TO_POINT, AT_END):
        texts, free = [text for text in axes.texts if text.get_gid() == kind], kind == NEXT_TO_POINT
        bars = [line for line in axes.lines if free and line.get_label() == BAR]
        if texts:
            adjust_text(
                texts,
                ax=axes,
                iter_lim=300,
                avoid_self=free,
                ensure_inside_axes=free,
                only_move="xy" if free else "y",
                objects=bars or None,  # an empty list is an error of adjustText
                force_text=(0.5, 0.8),
                expand=(1.2, 1.6) if free else (1.0, 1.02),
                arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.6},
            )
        for text in texts:
            text.set_gid(None)  # ids of a file are unique


# --- marks, lines and rows ---

MOST_LABELS = 30  # of a scatter: the emphasised points and the first ones
MOST_LINES = 9  # of a figure
Ends = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A point of a scatter with its error bars."""

    label: str
    x: float
    y: float
    strong: bool = False
    x_ends: Ends | None = None
    y_ends: Ends | None = None


def scatter(axes: Axes, marks: Sequence[Mark], across: str, up: str) -> None:
    """Points with bars, and the names of both axes; emphasised ones in the accent colour, and labelled first. Of many points
    not all have a label."""
    marks = sorted(marks, key=lambda mark: mark.strong)
    for mark in marks:
        colour = ACCENT if mark.strong else QUIET
        bar(axes, mark.x_ends, (mark.y, mark.y), colour)
        bar(axes, (mark.x, mark.x), mark.y_ends, colour)
        axes.plot([mark.x], [mark.y], "o", color=colour, zorder=3)
    labelled = sorted((mark for mark in marks if mark.label), key=lambda mark: not mark.strong)
    for mark in labelled[:MOST_LABELS]:
        weight = "bold" if mark.strong else "normal"
        style: dict[str, Any] = {"size": 10, "ha": "center", "va": "center", "zorder": 4}
        axes.text(mark.x, mark.y, mark.label, gid=NEXT_TO_POINT, weight=weight, **style)
    axes.margins(0.12)
    axes.locator_params(axis="both" if axes.get_xscale() == "linear" else "y", nbins=5)
    axes.set(xlabel=across, title=up)


def scatter_data(marks: Sequence[Mark]) -> tuple[DataRow, ...]:
    """(label, x, y, low of y, high of y, low of x, high of x) of each point; "" for bars that are
    not known."""
    none = (None, None)
    return tuple(
        (one.label, *rounded(one.x, one.y, *(one.y_ends or none), *(one.x_ends or none)))
        for one in marks
    )


def rounded(*values: float | None) -> DataRow:
    """As a figure's data have them: "" for None."""
    return tuple("" if value is None else round(value, 4) for value in values)


def bar(axes: Axes, x: Ends | None, y: Ends | None, colour: str) -> None:
    """An error bar from the first to the second of ``x`` and ``y``; none where one of them is
    None."""
    if x is not None and y is not None:
        axes.plot(x, y, color=colour, linewidth=1.1, alpha=0.6, zorder=2, label=BAR)


@dataclass(frozen=True)
class Line:
    """Points from left to right, joined, with a name at the right end."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


def line_data(those: Sequence[Line]) -> tuple[DataRow, ...]:
    """(label, x, y) of each point of each line."""
    points = [(line.label, x, y) for line in those for x, y in zip(line.x, line.y, strict=True)]
    return tuple((label, x, round(y, 4)) for label, x, y in points)


def lines(axes: Axes, those: Sequence[Line], strong: Line, across: str, up: str) -> None:
    """Lines whose names stand at their right ends, and the names of both axes. ``strong`` has the
    accent colour; of the others there are as many as there is room for."""
    shown = [*(line for line in those if line is not strong)][: MOST_LINES - 1]
    right, left = max(max(line.x) for line in those), min(min(line.x) for line in those)
    gap = 0.02 * (right - left)
    for line in (*shown, strong):
        colour, weight = (ACCENT, "bold") if line is strong else (QUIET, "normal")
        axes.plot(line.x, line.y, "o-", color=colour, markersize=4, zorder=3)
        style: dict[str, Any] = {"gid": AT_END, "size": 10, "weight": weight, "va": "center"}
        axes.text(right + 2 * gap, line.y[-1], line.label, **style)
    axes.set_xlim(left - gap, right + gap)
    axes.margins(y=0.1)
    axes.locator_params(axis="y", nbins=5)
    axes.set(xlabel=across, title=up)


def rows(axes: Axes, labels: Iterable[str]) -> None:
    """A row for each label, the first at the top: row i is drawn at the height i."""
    names = list(labels)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=6)


# --- numbers out of a record's free fields, which may hold anything ---


def number(value: Any) -> float | None:
    """A finite number of a size that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e12 and math.isfinite(value) else None
