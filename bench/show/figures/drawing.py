"""What all figures share: the figure with its data, the style, the sheet that becomes SVG, and
points with bars."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.base.text import slug
from bench.board.board import Board
from bench.compare.formatting import setting_words, variant_words, visible
from bench.compare.statistics.table import SENDER, Cell, Row, Table
from bench.runs.record import Score
from bench.runs.run import Run
from bench.show.grid import as_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes


DataRow = tuple[str | float, ...]

# --- the sheet: colours that can be seen on a light page and on a dark one ---

ACCENT, QUIET = "#c2622d", "#8a857d"
"""Of marks: contrast of at least 3 with both backgrounds of the pages, #fdfcf9 and #171614."""
TEXT, TEXT_IN_THE_DARK = "#757068", "#a39d92"
"""Of text: contrast of at least 4.5 with the background. No grey has that with both (4.2 is the
most), hence one rule for dark pages."""
DARK = f"@media (prefers-color-scheme: dark) {{ text {{ fill: {TEXT_IN_THE_DARK} !important }} }}"
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans'"
WIDTH = 360.0  # points of a sheet: a third of a page, or a phone, so that text has its size there
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


def missing_library(command: str) -> BenchError | None:
    """The error of a command that draws, where matplotlib or adjustText (an extra) is not
    installed."""
    lacking = [name for name in ("matplotlib", "adjustText") if find_spec(name) is None]
    why = f"{command} draws figures with {' and '.join(lacking)}, which is not installed"
    return BenchError(why, "pip install 'sentence-bench[publish]'") if lacking else None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One drawing with the data that it is drawn from."""

    name: str  # "cost-unsupervised-builtin": letters, digits and hyphens; its file is figures/<name>.svg
    kind: str  # "gains", "cost", "shift" ...
    title: str  # a heading, and the text where the picture is not seen
    caption: str  # static text: what is drawn
    plot: Callable[[Axes], None]
    height: float = 300.0  # points
    header: tuple[str, ...]  # of the data
    data: Sequence[DataRow]  # "" where something was not recorded
    suites: tuple[str, ...] = ("sts",)  # that it shows; none where it fits tables of any suite
    paper_figure: str = ""  # the paper's figure that it corresponds to: "PromCSE, Figure 1"

    @cached_property
    def svg(self) -> str:
        """A file: the plot on transparent ground. The same data give the same bytes."""
        import matplotlib.style
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Sheet

        with matplotlib.style.context(STYLE, after_reset=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the font may lack a character of a foreign name
            sheet, out = Sheet(figsize=(WIDTH / 72, self.height / 72)), io.StringIO()
            axes = sheet.subplots()
            self.plot(axes)
            FigureCanvasAgg(sheet).draw()
            sheet.set_layout_engine("none")  # the axes stay where they are from here on
            _place_labels(axes)
            sheet.savefig(out, format="svg", transparent=True, metadata=UNDATED)
        svg = out.getvalue().replace("'DejaVu Sans'", FONTS)
        return svg.replace("</style>", f"{DARK}</style>", 1)

    @property
    def uri(self) -> str:
        """The picture as an address, for pages that are one file."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg.encode()).decode()}"

    @property
    def csv(self) -> str:
        """The data as CSV; no spreadsheet takes a name for a formula."""
        return as_csv(self.header, self.data)


NEXT_TO_POINT, AT_END = "label of a point", "label at the end of a line"
BAR = "_bar"  # label of an error bar
PLACING: dict[str, dict[str, Any]] = {
    NEXT_TO_POINT: {"expand": (1.2, 1.6)},
    AT_END: {
        "expand": (1.0, 1.02),
        "only_move": "y",
        "avoid_self": False,
        "ensure_inside_axes": False,
    },
}


def _place_labels(axes: Axes) -> None:
    """Moves labels apart. adjustText is deterministic where its number of steps is limited, and not
    its time."""
    from adjustText import adjust_text

    bars = [line for line in axes.lines if line.get_label() == BAR]
    for kind, options in PLACING.items():
        texts = [text for text in axes.texts if text.get_label() == kind]
        if texts:
            adjust_text(
                texts,
                ax=axes,
                iter_lim=300,
                objects=bars or None,  # [] is an error of adjustText
                force_text=(0.5, 0.8),
                arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.6},
                **options,
            )


# --- points ---


def mark(
    axes: Axes,
    x: float,
    y: float,
    colour: str,
    x_ends: Sequence[float] = (),
    y_ends: Sequence[float] = (),
) -> None:
    """A point with the error bars that it has, each from its lower to its upper end."""
    style: dict[str, Any] = {"linewidth": 1.1, "alpha": 0.6, "zorder": 2, "label": BAR}
    for across, up in ((x_ends, (y, y)), ((x, x), y_ends)):
        if across and up:
            axes.plot(across, up, color=colour, **style)
    axes.plot([x], [y], "o", color=colour, zorder=3)


def rounded(*values: float | None) -> DataRow:
    """As a figure's data have them: "" for None."""
    return tuple("" if value is None else round(value, 4) for value in values)


LONGEST = 26  # characters of a label
PREFERRED = ("senteval-all/1", "cxc-promcse/1", "geometry-stsb/1", "senteval-fewshot/1")
"""Of several protocols of a suite, the ones that the papers' figures show."""
MOST_GROUPS = 6


@dataclass(frozen=True)
class Point:
    """A row, and its cell in the column that is drawn."""

    label: str
    row: Row
    cell: Cell

    @property
    def ends(self) -> tuple[float, ...]:
        """The error bar of the mean, of the same kind as the table's: the interval, else one
        standard deviation each way; () where neither is known."""
        cell = self.cell
        if cell.spread is not None:
            return cell.spread.low, cell.spread.high
        return () if cell.sd is None else (cell.mean - cell.sd, cell.mean + cell.sd)

    @property
    def method(self) -> tuple[str | None, ...]:
        """What rows that differ in their recipe have in common. A submitted row is never one with
        somebody else's."""
        return self.row.name, self.row.setting, dict(self.row.differs).get(SENDER)


@dataclass(frozen=True)
class Group:
    """The tables of one setting and backbone, one per suite: what a figure may show together."""

    setting: str
    backbone: str
    tables: Mapping[str, Table]  # by suite
    runs: Mapping[str, Run]

    def points(self, suite: str, column: str | None = None) -> list[Point]:
        """The rows of a suite that have a number in ``column``, in the table's order; None: in the
        column that ranks."""
        table = self.tables.get(suite)
        column = column or (table.head if table else None)
        if table is None or column not in table.columns:
            return []
        cells = [(row, row.cells[table.columns.index(column)]) for row in table.rows]
        return [Point(_label(row, table), row, cell) for row, cell in cells if cell is not None]

    def score(self, run: str, suite: str, task: str) -> Score | None:
        """The score of a run by the protocol of the suite's table."""
        table = self.tables[suite]
        return self.runs[run].record.score(suite, task, table.protocol, table.text)

    def by_run(self, suite: str, column: str | None = None) -> dict[str, Point]:
        """Run id -> the point of its row."""
        return {run: p for p in self.points(suite, column) for run in p.row.runs}

    def methods(self, suite: str, column: str | None = None) -> list[Point]:
        """Of rows of one method and variant that differ in their recipe the one with most seeds.

        Where several have as many, all stay: taking the best of them would be a choice by test
        scores.
        """
        points = self.points(suite, column)
        most: dict[object, int] = {}
        for point in points:
            most[point.method] = max(len(point.row.runs), most.get(point.method, 0))
        return [point for point in points if len(point.row.runs) == most[point.method]]

    def figure(
        self,
        kind: str,
        title: str,
        caption: str,
        data: Sequence[DataRow],
        *,
        more: Sequence[str] = (),
        fewest: int = 2,
        **rest: Any,
    ) -> Figure | None:
        """A figure named after the group. None where ``data`` are of fewer than ``fewest`` names,
        which stand first."""
        if len({row[0] for row in data}) < fewest:
            return None
        backbone = short_name(self.backbone)
        title = f"{title} ({setting_words(self.setting)}, {backbone})"
        return Figure(
            name=slug(kind, *more, self.setting or "any", backbone or "any", longest=80),
            kind=kind,
            title=title,
            caption=caption,
            data=data,
            **rest,
        )


def _label(row: Row, table: Table) -> str:
    """The text next to a row's point; it may be cut."""
    between = "+" if row.variant else " "
    return visible(f"{row.label}{between}{variant_words(row, table)}".strip(), limit=LONGEST)


def table_groups(board: Board) -> list[Group]:
    """Settings and backbones of at least two rows, in the order of the board's tables."""
    tables: dict[tuple[str, str], dict[str, Table]] = {}
    every = [one.table for one in board.tables]
    for table in sorted(every, key=lambda table: table.protocol not in PREFERRED):
        suites = tables.setdefault((table.setting or "", table.backbone or ""), {})
        suites.setdefault(table.suite, table)
    runs = {run.record.run_id: Run(run.record, run.folder) for run in board.runs}
    groups = [Group(*place, suites, runs) for place, suites in tables.items()]
    return [g for g in groups if any(len(t.rows) > 1 for t in g.tables.values())][:MOST_GROUPS]


def short_name(backbone: str) -> str:
    """A backbone's name; of a folder its last part."""
    return PurePath(backbone).name or backbone
