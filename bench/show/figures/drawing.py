"""What all figures share: colours and style, the sheet that becomes SVG, marks with labels, and the figure with its data."""

from __future__ import annotations

import base64
import csv
import importlib.util
import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet


# --- Colours that can be seen on a light page and on a dark one ---

ACCENT, SECOND, QUIET = "#c2622d", "#3b9060", "#8a857d"
"""Of marks: contrast of at least 3 with both backgrounds of the pages, #fdfcf9 and #171614."""
TEXT, TEXT_IN_THE_DARK = "#757068", "#a39d92"
"""Of text: contrast of at least 4.5 with the background. No grey has that with both (4.2 is the most), hence one rule for dark pages."""
DARK = f"@media (prefers-color-scheme: dark) {{ text {{ fill: {TEXT_IN_THE_DARK} !important }} }}"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans'"
WIDTH = 360.0  # points of a sheet: a third of a page, or a phone, so that text has its size there
STYLE: dict[Any, Any] = {
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
    "legend.frameon": False,
}
BESIDE_POINT, AT_END = "label of a point", "label at the end of a line"  # of texts that are placed
MOST_LABELS = 30  # of a scatter: the emphasised points and the first ones
MOST_LINES = 9  # of a figure


def missing_library(command: str) -> BenchError | None:
    """The error of a command that draws, where matplotlib or adjustText (an extra) is not installed."""
    missing = [
        name for name in ("matplotlib", "adjustText") if importlib.util.find_spec(name) is None
    ]
    if not missing:
        return None
    return BenchError(
        f"{command} draws figures with {missing[0]}, which is not installed",
        "pip install 'sentence-bench[publish]'",
    )


# --- The sheet ---


@contextmanager
def library() -> Iterator[None]:
    """matplotlib in our style, whatever its user has set, and quiet about characters that its font lacks."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def drawn(
    draw: Callable[..., None],
    *data: Any,
    height: float = 300.0,
    panels: tuple[int, int] = (1, 1),
    **shared: Any,
) -> str:
    """An SVG file: ``draw(axes, *data)`` on transparent ground. The same data give the same bytes.

    ``panels``: rows and columns of axes; ``draw`` gets a list where there are several. ``shared``: sharex, sharey.
    """
    with library():
        sheet = laid_out(draw, *data, height=height, panels=panels, **shared)
        out = io.StringIO()
        sheet.savefig(
            out,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    svg = out.getvalue().replace("'DejaVu Sans'", FONTS)
    return svg.replace("</style>", f"{DARK}</style>", 1)


def laid_out(
    draw: Callable[..., None],
    *data: Any,
    height: float = 300.0,
    panels: tuple[int, int] = (1, 1),
    **shared: Any,
) -> Sheet:
    """The drawn sheet with every text inside it and labels placed. Only within ``library()``."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    sheet = Sheet(figsize=(WIDTH / 72, height / 72), dpi=72)
    sheet.set_layout_engine("constrained", w_pad=6 / 72, h_pad=4 / 72)
    canvas = FigureCanvasAgg(sheet)
    axes = list(sheet.subplots(*panels, squeeze=False, **shared).flat)
    draw(axes if len(axes) > 1 else axes[0], *data)
    canvas.draw()
    sheet.set_layout_engine("none")  # the axes stay where they are from here on
    for one in axes:
        _place_labels(one)
    return sheet


def _place_labels(axes: Axes) -> None:
    """Moves labels apart. adjustText is deterministic where its number of steps is limited, and not its time."""
    from adjustText import adjust_text

    for kind in (BESIDE_POINT, AT_END):
        texts = [text for text in axes.texts if text.get_gid() == kind]
        beside = kind == BESIDE_POINT
        bars = [bar for bar in axes.lines if bar.get_label() == BAR] if beside else []
        if texts:
            adjust_text(
                texts,
                ax=axes,
                iter_lim=300,
                avoid_self=beside,
                ensure_inside_axes=beside,
                only_move="xy" if beside else "y",
                objects=bars or None,  # an empty list is an error of adjustText
                force_text=(0.5, 0.8),
                expand=(1.2, 1.6) if beside else (1.0, 1.02),
                arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.6},
            )
        for text in texts:
            text.set_gid(None)  # ids of a file are unique


# --- Marks that several figures have ---

BAR = "_bar"  # label of an error bar's line


@dataclass(frozen=True)
class Mark:
    """A point of a scatter with its error bars."""

    x: float
    y: float
    label: str
    strong: bool = False
    x_bar: tuple[float, float] | None = None
    y_bar: tuple[float, float] | None = None


def scatter(axes: Axes, marks: Sequence[Mark]) -> None:
    """Points with bars; emphasised ones in the accent colour, and labelled first. Of many points not all have a label."""
    for mark in marks:
        colour = ACCENT if mark.strong else QUIET
        if mark.x_bar:
            bar(axes, mark.x_bar, (mark.y, mark.y), colour)
        if mark.y_bar:
            bar(axes, (mark.x, mark.x), mark.y_bar, colour)
    for strong in (False, True):
        chosen = [mark for mark in marks if mark.strong is strong]
        x, y = [mark.x for mark in chosen], [mark.y for mark in chosen]
        axes.plot(x, y, "o", color=ACCENT if strong else QUIET, zorder=3)
    labelled = sorted((mark for mark in marks if mark.label), key=lambda mark: not mark.strong)
    for mark in labelled[:MOST_LABELS]:
        weight = "bold" if mark.strong else "normal"
        axes.text(
            mark.x,
            mark.y,
            mark.label,
            gid=BESIDE_POINT,
            weight=weight,
            size=10,
            ha="center",
            va="center",
            zorder=4,
        )
    axes.margins(0.12)
    axes.locator_params(axis="y", nbins=5)
    if axes.get_xscale() == "linear":
        axes.locator_params(axis="x", nbins=5)


def bar(axes: Axes, x: Sequence[float], y: Sequence[float], colour: str) -> None:
    """An error bar from the first to the second of ``x`` and ``y``."""
    axes.plot(x, y, color=colour, linewidth=1.1, alpha=0.6, zorder=2, label=BAR)


@dataclass(frozen=True)
class Line:
    """Points from left to right, joined, with a name at the right end."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    strong: bool = False


def lines(axes: Axes, those: Sequence[Line]) -> None:
    """Lines whose names stand at their right ends, the emphasised ones on top in the accent colour."""
    right = max(x for line in those for x in line.x)
    left = min(x for line in those for x in line.x)
    for line in those:
        axes.plot(
            line.x,
            line.y,
            "o-",
            color=ACCENT if line.strong else QUIET,
            markersize=4,
            zorder=4 if line.strong else 3,
        )
        axes.text(
            right + 0.04 * (right - left),
            line.y[-1],
            line.label,
            gid=AT_END,
            size=10,
            weight="bold" if line.strong else "normal",
            va="center",
        )
    axes.set_xlim(left - 0.02 * (right - left), right + 0.02 * (right - left))
    axes.margins(y=0.1)
    axes.locator_params(axis="y", nbins=5)


def rows(axes: Axes, labels: Sequence[str]) -> None:
    """A row for each label, the first at the top: row i is drawn at the height i."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=6)


# --- What a figure is ---


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One drawing with the data that it was drawn from."""

    name: str  # "cost-unsupervised-builtin": letters, digits and hyphens; its file is figures/<name>.svg
    kind: str  # "gains", "cost", "shift", "papers" ...
    title: str  # a heading, and what stands for the picture where it is not seen
    caption: str  # static text: what is drawn
    svg: str  # a file
    header: tuple[str, ...]  # of the data
    data: tuple[tuple[str | float, ...], ...]  # "" where something was not recorded
    suites: tuple[str, ...] = ("sts",)
    """The suites that it shows; none where it stands beside tables of any suite."""
    paper_figure: str = ""  # the paper's figure that it corresponds to: "PromCSE, Figure 1"

    @property
    def uri(self) -> str:
        """The picture as an address, for pages that are one file."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg.encode()).decode()}"

    @property
    def csv(self) -> str:
        """The data as CSV; no spreadsheet takes a name for a formula."""
        from bench.compare.formatting import csv_text

        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(
            [csv_text(cell) if isinstance(cell, str) else cell for cell in row] for row in self.data
        )
        return text.getvalue()


# --- Numbers out of a record's free fields, which may hold anything ---

BIGGEST = 1e12


def number(value: Any) -> float | None:
    """A finite number of a size that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < BIGGEST and math.isfinite(value) else None


def numbers(values: Any) -> list[float]:
    """A list of such numbers; empty where one of them is not."""
    if not isinstance(values, list):
        return []
    finite = [one for value in values if (one := number(value)) is not None]
    return finite if len(finite) == len(values) else []


def parse_number(text: str) -> float | None:
    """The number that a recipe value is, else None."""
    try:
        return number(float(text))
    except ValueError:
        return None
