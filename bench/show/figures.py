"""Figures of a version, made from its records alone: SVG with direct labels, a static caption, and their data.

list(figures(board))  # those that the records have data for; printed gains against noise first

A new figure is a function from a group of tables to a :class:`Figure` or None, and a line in :func:`figures`.
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path, PurePath
from statistics import fmean, median, mode, stdev
from typing import TYPE_CHECKING, Any

import msgspec

from bench.base.errors import BenchError
from bench.base.files import write_or_fail
from bench.base.foreign_text import make_visible
from bench.base.text import slug
from bench.board.board import Board, unused_name
from bench.compare.formatting import setting_words, signed_number, variant_words
from bench.compare.statistics.rows import Differs
from bench.compare.statistics.table import BETTER, WORSE, Cell, Cost, Row, Table
from bench.records.record import Score
from bench.records.searches import RECIPE, RUNNING, Study, Trial, expected_best
from bench.records.store import Run, read_curve, series
from bench.references import BASE, figure_runs, meaning, printed_gains, printed_points, results
from bench.score.metrics.geometry import effective_rank
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
        return (
            out.getvalue().replace("'DejaVu Sans'", FONTS).replace("</style>", f"{DARK}</style>", 1)
        )

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
        if texts := [text for text in axes.texts if text.get_label() == kind]:
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
    for across, up in ((x_ends, (y, y)), ((x, x), y_ends)):
        if across and up:
            axes.plot(across, up, color=colour, linewidth=1.1, alpha=0.6, zorder=2, label=BAR)
    axes.plot([x], [y], "o", color=colour, zorder=3)


def rounded(*values: float | None) -> DataRow:
    """As a figure's data have them: "" for None."""
    return tuple("" if value is None else round(value, 4) for value in values)


# --- from the tables of a board to points: which tables belong together, and the label of a row ---


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
    def method(self) -> tuple[str, str]:
        """What rows that differ in their recipe have in common."""
        return self.row.name, self.row.setting


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
        return Figure(
            name=slug(kind, *more, self.setting or "any", backbone or "any", longest=80),
            kind=kind,
            title=f"{title} ({setting_words(self.setting)}, {backbone})",
            caption=caption,
            data=data,
            **rest,
        )


def _label(row: Row, table: Table) -> str:
    """The text next to a row's point; it may be cut."""
    return make_visible(
        f"{row.label}{'+' if row.variant else ' '}{variant_words(row, table)}".strip(),
        limit=LONGEST,
    )


def table_groups(board: Board) -> list[Group]:
    """Settings and backbones of at least two rows, in the order of the board's tables. Submitted rows are in none."""
    tables: dict[tuple[str, str], dict[str, Table]] = {}
    for table in sorted(
        (one.table for one in board.tables if not one.table.sender),
        key=lambda table: table.protocol not in PREFERRED,
    ):
        tables.setdefault((table.setting or "", table.backbone or ""), {}).setdefault(
            table.suite, table
        )
    runs = {run.record.run_id: Run(run.record, run.folder) for run in board.runs}
    groups = [Group(*place, suites, runs) for place, suites in tables.items()]
    return [g for g in groups if any(len(t.rows) > 1 for t in g.tables.values())][:MOST_GROUPS]


def short_name(backbone: str) -> str:
    """A backbone's name; of a folder its last part."""
    return PurePath(backbone).name or backbone


# --- the figures of a version ---


def figures(board: Board) -> list[Figure]:
    """The figures of a version, group by group, each with a name that no other has."""
    groups = table_groups(board)
    made = [paper_gains(group) for group in groups[:1]]
    for group in groups:
        made += [
            gains(group),
            cost(group, "cost"),
            shift(group),
            learning(group),
            geometry(group),
            spectrum(group),
            cost(group, "parameters"),
            frequent(group),
            few_shot(group),
            *ablations(group),
        ]
    named: dict[str, Figure] = {}
    for figure in filter(None, made):
        name = unused_name(figure.name, named)  # two folders may have one name
        named[name] = replace(figure, name=name)
    return list(named.values())


# --- methods as rows: printed gains next to what seeds alone do, gains over the baseline, few labelled examples ---


FAR = 20  # points of a gain that is not drawn to scale: one outlier would squeeze all others
Rows = Sequence[tuple[str, float, Sequence[float], bool]]
"""Name, value, ends of its bar, and whether it is coloured; the first at the top."""


def height(rows: Sequence[object]) -> float:
    """Of a sheet, in points."""
    return 56.0 + 20.0 * len(rows)


def draw_rows(axes: Axes, rows: Rows, across: str, gains_over: float | None = None) -> None:
    """Row i at the height i. ``gains_over``: the values are gains, with a line at that one; the name
    of a row that is far away has the number, and there is no point."""
    names = [name for name, *_ in rows]
    for i, (name, value, bar, strong) in enumerate(rows):
        if gains_over is None or abs(value) <= FAR:
            mark(axes, value, i, ACCENT if strong else QUIET, bar)
        else:
            names[i] = f"{name} ({signed_number(value).replace('-', '−')})"
    if gains_over is not None:
        axes.axvline(gains_over, color=ACCENT, linestyle="--")
        axes.text(gains_over, -0.7, f"{gains_over:.3g}", ha="center", va="bottom", size=10)
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(across)


# --- what papers print ---


def noise_line(simcse: float, middle: float) -> float:
    """1.96 standard deviations of a difference of two single runs (docs/statistics.md), from
    spreads over seeds in points: of simcse, and the median of all rows that have two seeds or
    more."""
    return 1.96 * math.hypot(simcse, middle)


REPORTED = (76.25, 75.68, 73.47, 74.84, 75.99)
"""Averages of unsupervised SimCSE on BERT-base as five parties report them: its paper, Focal-InfoNCE's own run, and issues 53, 258 and 246
of SimCSE's repository."""


def paper_gains(group: Group) -> Figure | None:
    """None where simcse, without a variant, is not exactly one row with a spread."""
    spreads = [(p.row, p.cell.sd) for p in group.points("sts") if p.cell.sd is not None]
    simcse = [sd for row, sd in spreads if row.method == BASE and not row.variant]
    if len(simcse) != 1:
        return None
    middle, printed = median(sd for _, sd in spreads), printed_gains()
    line = noise_line(simcse[0], middle)
    elsewhere = stdev(REPORTED)
    line_elsewhere = noise_line(elsewhere, elsewhere)
    above = sum(one.gain > line_elsewhere for one in printed)
    count = Counter(one.label for one in printed)
    backbones = [one.first.backbone.removesuffix("-uncased") for one in printed]
    rows = [  # the backbone stands where a name has several
        (one.label + f", {backbone}" * (count[one.label] > 1), one.gain, (), one.gain > line)
        for one, backbone in zip(printed, backbones, strict=True)
    ]
    return group.figure(
        "printed-gains",
        "Gains over SimCSE that papers print",
        "Gains on the STS average over SimCSE that papers print, where the paper ran SimCSE itself "
        "in the same setting and on the same backbone; single runs, or the paper does not say how "
        "many. Line: 1.96 × √(s² + m²), where s is the standard deviation of simcse over seeds on "
        "this board, and m the median of the standard deviations of its rows. Coloured: above the "
        "line. It is a yardstick of this board's backbone and training, laid on gains of other ones: "
        f"{len(REPORTED)} reports of SimCSE on BERT-base have a standard deviation of "
        f"{elsewhere:.2f}, with which the line is at {line_elsewhere:.1f}, and {above} of "
        f"{len(printed)} gains are above it.",
        [
            (
                one.label,
                f"{one.first.paper}:{one.first.table}",
                f"{one.first.setting}, {one.first.backbone}",
                *rounded(one.base, one.gain, line, *simcse, middle),
            )
            for one in printed
        ],
        plot=partial(draw_rows, rows=rows, across="points of the STS average", gains_over=line),
        height=height(rows),
        header=("method", "paper:table", "setting, backbone", "SimCSE", "gain", "line", "s", "m"),
    )


# --- over the baseline ---

MOST = 40  # rows


def gains(group: Group) -> Figure | None:
    """The rows that were compared with the baseline, the largest gain first. None where there is
    none."""
    suite = min(group.tables, key=lambda suite: (suite != "sts", suite))
    table = group.tables[suite]
    compared = sorted(
        (
            (point.label, one)
            for point in group.methods(suite)
            if (one := point.cell.against) is not None and one.verdict is not None
        ),
        key=lambda gain: -gain[1].difference,
    )
    rows = [
        (
            label,
            one.difference,
            [end for end in (one.ci_low, one.ci_high) if end is not None],
            one.verdict in (BETTER, WORSE),
        )
        for label, one in compared[:MOST]
    ]
    return group.figure(
        "gains",
        f"Gains over {table.baseline}",
        "Each row minus the baseline. Bar: the confidence interval of the difference, at the level "
        "given in the table. Coloured: better or worse than the baseline; grey: inconclusive. Rows "
        f"more than 20 points away are not drawn; their difference is in brackets. At most {MOST} rows, the highest.",
        [
            (
                label,
                *rounded(one.difference, one.ci_low, one.ci_high, one.ci_level),
                str(one.verdict),
            )
            for label, one in compared
        ],
        fewest=1,
        plot=partial(
            draw_rows,
            rows=rows,
            across=f"{suite.replace('sts', 'STS')} {table.head} minus that of {table.baseline}",
            gains_over=0.0,
        ),
        height=height(rows),
        suites=(suite,),
        header=("method", "gain", "low", "high", "level of the interval", "verdict"),
    )


# --- accuracy from few labelled examples, draw by draw (ConPVP, Figure 7) ---

MOST_METHODS = 4


def few_shot(group: Group) -> Figure | None:
    """None where fewer than two methods have the scores."""
    data: list[DataRow] = []
    rows = []
    for task in group.tables["fewshot"].columns[:-1] if "fewshot" in group.tables else ():
        points = group.methods("fewshot", task)[:MOST_METHODS]
        best = max((point.cell.mean for point in points), default=0.0)
        for point in points:
            scores = [group.score(run, "fewshot", task) for run in point.row.runs]
            spread, mean = fmean(score.std or 0.0 for score in scores if score), point.cell.mean
            bar = (mean - spread, mean + spread)
            data.append((point.label, task, *rounded(mean, *bar)))
            rows.append((f"{task}, {point.label}", mean, bar, mean == best))
    return group.figure(
        "few-shot",
        "From 16 examples per class",
        "Accuracy from 16 examples per class, a mean over draws of the examples and over seeds; bar: "
        "one standard deviation over draws each way. All methods have the same draws. Coloured: the "
        "highest. At most four methods are drawn, the first four of the table.",
        data,
        plot=partial(draw_rows, rows=rows, across="accuracy, %"),
        height=height(rows),
        suites=("fewshot",),
        paper_figure="ConPVP, Figure 7",
        header=("method", "task", "mean", "mean - sd", "mean + sd"),
    )


# --- methods as points: quality against cost, scores elsewhere, and where vectors lie ---


BARS = " Bars: the table's intervals, or standard deviations over seeds if it has none."
MOST_LABELS = 30  # of the coloured points, then of the first ones
Pairs = Sequence[tuple[Point, Point]]
"""Across and upwards, of the same runs."""


def pair_data(pairs: Pairs) -> list[DataRow]:
    """(label, x, y, low of y, high of y, low of x, high of x) of each pair."""
    return [
        (
            x.label,
            *rounded(x.cell.mean, y.cell.mean),
            *rounded(*(y.ends or (None, None))),
            *rounded(*(x.ends or (None, None))),
        )
        for x, y in pairs
    ]


def scatter(axes: Axes, pairs: Pairs, strong: Collection[int], across: str, up: str) -> None:
    """Points with bars, and the names of both axes; those at the places ``strong`` are coloured,
    above the others, and labelled first."""
    places = sorted(range(len(pairs)), key=lambda i: i not in strong)
    for i in reversed(places):
        x, y = pairs[i]
        mark(axes, x.cell.mean, y.cell.mean, ACCENT if i in strong else QUIET, x.ends, y.ends)
    for i in places[:MOST_LABELS]:
        x, y = pairs[i]
        axes.text(x.cell.mean, y.cell.mean, x.label, label=NEXT_TO_POINT, zorder=4).set(
            size=10, weight="bold" if i in strong else "normal", ha="center", va="center"
        )
    axes.margins(0.12)
    axes.locator_params(axis="both" if axes.get_xscale() == "linear" else "y", nbins=5)
    axes.set(xlabel=across, title=up)


# --- quality against cost, with the Pareto front ---

COSTS = {
    "cost": (
        "Quality against training time",
        "training time of one run, seconds",
        "STS average against the training time of one run, a mean over seeds, on one kind of hardware.",
    ),
    "parameters": (
        "Quality against trained parameters",
        "trained parameters",
        "STS average against the number of parameters that get a gradient.",
    ),
}
"""Kind of figure -> its title, the name of its axis, and the first sentence of its caption."""


def cost(group: Group, kind: str) -> Figure | None:
    """Average of the STS sets against a cost; 0 is free. None where all that is known costs the
    same."""
    title, axis, caption = COSTS[kind]
    pairs = [
        (replace(point, cell=Cell(mean=spent, sd=None, values=(), n=0)), point)
        for point in group.methods("sts")
        if (spent := _cost(kind, point.row)) is not None
    ]
    costs = {x.cell.mean for x, _ in pairs}
    if not any(costs) or max(costs) <= 1.01 * min(costs):
        return None
    best = front([(x.cell.mean, y.cell.mean) for x, y in pairs])
    return group.figure(
        kind,
        title,
        f"{caption} Coloured and joined by the line: methods for which no other method is both "
        "cheaper and better, by the means; the difference between neighbours may be inconclusive."
        f"{BARS} Methods without a comparable cost are not shown.",
        [(*row[:5], "yes" if i in best else "no") for i, row in enumerate(pair_data(pairs))],
        plot=partial(draw_cost, pairs=pairs, best=best, axis=axis),
        height=340.0,
        header=("method", axis, "STS Avg.", "low", "high", "on the front"),
    )


def _cost(kind: str, row: Row) -> float | None:
    """In seconds or parameters. Untrained rows take no time of training."""
    cost = row.cost or Cost()
    if kind == "parameters":
        return cost.trainable_parameters
    return 0.0 if row.setting == "none" and cost.train_seconds is None else cost.train_seconds


def front(priced: Sequence[tuple[float, float]]) -> list[int]:
    """Of (cost, quality) pairs those on the Pareto front, cheapest first: every other is worse,
    costs more, or is equal in both."""
    return sorted(
        (
            i
            for i, (cost, quality) in enumerate(priced)
            if not any(
                (c <= cost and q > quality) or (c < cost and q >= quality) for c, q in priced
            )
        ),
        key=lambda i: priced[i],
    )


def draw_cost(axes: Axes, pairs: Pairs, best: Sequence[int], axis: str) -> None:
    """Costs on a logarithmic axis; it is linear below the lowest cost, so that what is free has a
    place."""
    from matplotlib.ticker import EngFormatter

    costs = [x.cell.mean for x, _ in pairs]
    lowest, highest = min(filter(None, costs)) / 1.5, max(costs) * 1.5
    axes.set_xscale("symlog", linthresh=lowest, linscale=0.3)
    scatter(axes, pairs, best, f"{axis} (logarithmic)", "STS Avg.")
    axes.set_xlim(lowest if min(costs) else -lowest / 2, highest)
    x, y = zip(*((costs[i], pairs[i][1].cell.mean) for i in best), strict=True)
    axes.plot(x, y, drawstyle="steps-post", color=ACCENT, linewidth=1.0, alpha=0.6)
    inside = [
        number
        for power in range(-3, 13)
        for digit in (1, 2, 5)
        if lowest <= (number := digit * 10.0**power) <= highest
    ]
    axes.set_xticks([0.0] * (0 in costs) + inside[:: len(inside) // 6 + 1])
    axes.xaxis.set_major_formatter(EngFormatter(sep="") if "parameters" in axis else "{x:g}")


# --- two scores of the same runs ---


PAIR_ENDS = ("second, low", "second, high", "first, low", "first, high")


def shift(group: Group) -> Figure | None:
    """Average of the STS sets against CxC-STS."""
    up = group.by_run("cxc")
    pairs = [(x, up[x.row.runs[0]]) for x in group.methods("sts") if x.row.runs[0] in up]
    return group.figure(
        "shift",
        "STS against captions of another domain",
        "x: average of the seven STS sets; y: similarity of image captions (CxC-STS), another "
        "domain. Coloured: highest on either axis." + BARS,
        pair_data(pairs),
        plot=partial(draw_pairs, pairs=pairs, best=max, across="STS Avg.", up="CxC-STS"),
        suites=("sts", "cxc"),
        paper_figure="PromCSE, Figure 1",
        header=("method", "STS Avg.", "CxC-STS", *PAIR_ENDS),
    )


def geometry(group: Group) -> Figure | None:
    """Uniformity across, alignment upwards, the average of the STS sets in brackets."""
    up, averages, pairs = group.by_run("geometry", "alignment"), group.by_run("sts"), []
    for x in group.methods("geometry", "uniformity"):
        run = x.row.runs[0]
        average = f" ({averages[run].cell.mean:.1f})" if run in averages else ""
        pairs += [(replace(x, label=x.label + average), up[run])] if run in up else []
    return group.figure(
        "geometry",
        "Alignment against uniformity",
        "Uniformity and alignment of the vectors of STS-B test; lower is better for both. In "
        "brackets: the average of the STS sets. Coloured: lowest on either axis." + BARS,
        pair_data(pairs),
        plot=partial(
            draw_pairs,
            pairs=pairs,
            best=min,
            across="uniformity (lower: spread more evenly)",
            up="alignment (lower: paraphrases closer)",
        ),
        suites=("geometry",),
        paper_figure="SimCSE, Figure 3",
        header=("method (STS Avg.)", "uniformity", "alignment", *PAIR_ENDS),
    )


def draw_pairs(axes: Axes, pairs: Pairs, best: Callable[..., int], across: str, up: str) -> None:
    """Coloured are the highest (``max``) or lowest (``min``) on either axis."""
    strong = {best(range(len(pairs)), key=lambda i: pairs[i][axis].cell.mean) for axis in (0, 1)}
    scatter(axes, pairs, strong, across, up)


# --- methods as lines: dev scores, singular values, frequent words, one recipe value, a search, a formula ---


MOST_LINES = 9  # of a figure
Line = dict[float, float]
"""Its points from left to right."""
Lines = list[tuple[str, Line]]


def draw_lines(axes: Axes, lines: Lines, across: str, up: str, even: bool = False) -> None:
    """The first lines with their names at the right end, the very first in the accent colour, and
    the names of both axes. ``even``: from each x to the next is a step of equal width."""
    lines = lines[:MOST_LINES]
    xs = [list(range(len(line))) if even else list(line) for _, line in lines]
    left, right = min(x[0] for x in xs), max(x[-1] for x in xs)
    gap = 0.02 * (right - left)
    for i, (name, line) in reversed(list(enumerate(lines))):
        y, colour, weight = list(line.values()), QUIET if i else ACCENT, "normal" if i else "bold"
        axes.plot(xs[i], y, "o-", color=colour, markersize=4, zorder=3)
        axes.text(right + 2 * gap, y[-1], name, label=AT_END, size=10, weight=weight, va="center")
    axes.set_xlim(left - gap, right + gap)
    axes.margins(y=0.1)
    axes.locator_params(nbins=5)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.set(xlabel=across, title=up)
    if even:
        steps = max((list(line) for _, line in lines), key=len)
        axes.set_xticks(range(len(steps)), [f"{step:g}" for step in steps])


def drawing_of(lines: Lines, across: str, up: str, even: bool = False) -> dict[str, Any]:
    """The plot of a figure, its data (name, x and y of each point of each line), and their header."""
    return {
        "plot": partial(draw_lines, lines=lines, across=across, up=up, even=even),
        "header": ("method", across, up),
        "data": [(name, *rounded(x, y)) for name, line in lines for x, y in line.items()],
    }


def method_lines(
    group: Group, suite: str, task: str | None, read: Callable[[Group, str], Line]
) -> Lines:
    """What ``read`` makes of the runs of each method, a mean over seeds. Methods whose seeds have not
    the same places, at least two, are left out."""
    lines: Lines = []
    for point in group.methods(suite, task):
        seeds = [read(group, run) for run in point.row.runs]
        if len(seeds[0]) > 1 and all(line.keys() == seeds[0].keys() for line in seeds):
            lines.append((point.label, {x: fmean(line[x] for line in seeds) for x in seeds[0]}))
    return lines


# --- the dev score while training ---


def learning(group: Group) -> Figure | None:
    """Of one dev set, that of most runs."""
    dev = mode(
        [
            one.dev_task
            for run in group.runs.values()
            if (one := run.record.training) and one.dev_task
        ]
        or ["dev"]
    )

    def read(group: Group, run: str) -> Line:
        done = group.runs[run].record.training
        if not done or (done.dev_task or dev) != dev or not done.steps or not done.sentences:
            return {}  # another set, or it is not known how much the run saw
        return {
            step * done.sentences / done.steps: score
            for step, score in series(read_curve(group.runs[run].folder), "dev_score")
            if step > 0
        }

    lines = sorted(
        method_lines(group, "sts", None, read), key=lambda line: -list(line[1].values())[-1]
    )
    return group.figure(
        "learning",
        f"{dev} while training",
        "Score on the dev set against rows of the corpus seen, means over seeds. Coloured: highest "
        "at the end. These scores chose the checkpoints; none is a test score. At most nine methods "
        "are drawn, the highest.",
        **drawing_of(lines, "rows of the corpus seen", dev),
    )


# --- where vectors lie: singular values, and correlation without the most frequent words ---


def spectrum(group: Group) -> Figure | None:
    """None where fewer than two methods have singular values."""
    spectra = sorted(
        method_lines(group, "geometry", "uniformity", _spectrum),
        key=lambda line: -effective_rank(list(line[1].values())),
    )
    powers = {1 << i for i in range(20)}
    lines = [(name, {k: y for k, y in line.items() if k in powers}) for name, line in spectra]
    return group.figure(
        "spectrum",
        "How many directions the vectors use",
        "Singular values of the unit vectors of STS-B test minus their mean, each over the largest; "
        "means over seeds. Coloured: the largest effective rank, the exponential of the entropy of "
        "these values (Roy and Vetterli 2007). At most nine methods are drawn, those with the "
        "largest ranks.",
        **drawing_of(lines, "singular value, the largest first", "share of the largest", even=True),
        suites=("geometry",),
        paper_figure="SimCSE, Figure F.1",
    )


def _spectrum(group: Group, run: str) -> Line:
    """Number of the singular value -> its share of the largest; empty where the run stored none, or
    something else."""
    score = group.score(run, "geometry", "uniformity")
    try:
        arrays = group.runs[run].predictions(score.key, ("singular_values",)) if score else {}
        values = arrays["singular_values"].astype(float)
    except (BenchError, KeyError, ValueError):
        return {}
    if values.ndim != 1 or not (values >= 0).all() or not 0 < values.sum() < math.inf:
        return {}
    return dict(enumerate((values / values.max()).tolist(), 1))


def frequent(group: Group) -> Figure | None:
    """None where fewer than two methods have the correlations."""
    lines = method_lines(group, "geometry", "alignment", _without_words)
    steps = max((list(line) for _, line in lines), key=len, default=[])
    lines = sorted(
        ((name, line) for name, line in lines if list(line) == steps),
        key=lambda line: line[1][steps[0]] - line[1][steps[-1]],
    )
    return group.figure(
        "frequent-words",
        "Without the most frequent words",
        "Correlation on STS-B test after its most frequent words are removed from the sentences; "
        "means over seeds. Coloured: the largest gain. At most nine methods are drawn, those with "
        "the largest gains. (ConPVP's Figure 5 removes tokens and averages the seven STS sets.)",
        **drawing_of(lines, "words taken out", "STS-B test, Spearman × 100", even=True),
        suites=("geometry",),
    )


def _without_words(group: Group, run: str) -> Line:
    """Words taken out -> correlation; empty where the record holds none, or something else."""
    score = group.score(run, "geometry", "alignment")
    stored = score.detail.get("without_frequent_words") if score else None
    try:
        return {
            entry["k"]: entry["spearman"]
            for entry in msgspec.convert(stored, list[dict[str, float]])
        }
    except (KeyError, msgspec.ValidationError):
        return {}


# --- against one recipe value, next to what papers print (PromCSE, Figure 2) ---

FEWEST = 3  # points of a curve
MOST_CURVES = 6
SHOWN_BY: Mapping[str, str] = {
    "prompt_length": "PromCSE, Figure 2",
    "eh_margin": "PromCSE, Table 4",
    "temperature": "Focal-InfoNCE, Table 4",
    "hardness_m": "Focal-InfoNCE, Table 5",
}
"""Where papers show the same recipe value."""
Curve = dict[float, Point]
"""Value of the recipe key -> the row that has it."""


def ablations(group: Group) -> Iterator[Figure | None]:
    """A figure for each recipe value of which a method has at least three in rows that are equal in
    everything else, those with most values first: on the STS sets and on CxC."""
    for suite, score in (("sts", "STS Avg."), ("cxc", "CxC-STS")):
        for (name, key, others), curve in swept(group.points(suite))[:MOST_CURVES]:
            method, axis = make_visible(name, limit=40), make_visible(key, limit=40)
            printed = _printed(group, name, key, score.removeprefix("STS "))
            where = "".join(f", {make_visible(f'{k} {value}', limit=40)}" for k, value in others)
            yield group.figure(
                "ablation",
                f"{method}: {axis}{where}",
                "Runs that differ only in the recipe value on the x axis, means over seeds. Bars: "
                "the table's intervals, or standard deviations over seeds if it has none. Grey "
                "squares: printed in papers.",
                [
                    (method, x, *rounded(p.cell.mean, *(p.ends or (None, None)), printed.get(x)))
                    for x, p in curve.items()
                ],
                more=(name, key, *(["cxc"] if suite == "cxc" else [])),
                fewest=1,
                plot=partial(draw_ablation, curve=curve, printed=printed, key=axis, score=score),
                height=260.0,
                suites=(suite,),
                paper_figure=SHOWN_BY.get(key, ""),
                header=("method", axis, score, "low", "high", "printed"),
            )


def swept(points: Sequence[Point]) -> list[tuple[tuple[str, str, Differs], Curve]]:
    """(method, recipe key, what else sets its rows apart), and the rows by value, longest first."""
    curves: dict[tuple[str, str, Differs], Curve] = {}
    for point in points:
        for key, text in point.row.differs:
            others = tuple(pair for pair in point.row.differs if pair[0] != key)
            if (value := _number(text)) is not None:
                curves.setdefault((point.row.name, key, others), {}).setdefault(value, point)
    return sorted(
        ((of, dict(sorted(one.items()))) for of, one in curves.items() if len(one) >= FEWEST),
        key=lambda curve: -len(curve[1]),
    )


def _number(text: str) -> float | None:
    """None where it is no number, or none that can be drawn."""
    try:
        return value if abs(value := float(text)) < 1e12 else None
    except ValueError:
        return None


def draw_ablation(
    axes: Axes, curve: Curve, printed: Mapping[float, float], key: str, score: str
) -> None:
    draw_lines(axes, [("", {x: p.cell.mean for x, p in curve.items()})], key, score, even=True)
    for i, (x, point) in enumerate(curve.items()):
        mark(axes, i, point.cell.mean, ACCENT, y_ends=point.ends)
        if x in printed:
            axes.plot([i], [printed[x]], "s", color=QUIET, markersize=5)


def _printed(group: Group, method: str, key: str, task: str) -> dict[float, float]:
    """Value of the recipe key -> printed number: of the same method, setting and backbone, from
    tables and from the points of pictures that a source gives."""
    backbone, printed = short_name(group.backbone), dict[float, float]()
    for cell in results(backbone=backbone, setting=group.setting, task=task):
        means = meaning(cell.method, cell.variant, cell.setting)
        if means.name == method and set(means.set) == {key} and cell.metric.startswith("spearman"):
            printed[float(means.set[key])] = cell.value
    for spec in figure_runs():
        if backbone in spec.backbones and (group.setting, method, "") in spec.runs:
            printed |= {
                p.x: p.y for p in printed_points(spec.part) if (p.panel, p.key) == (task, key)
            }
    return printed


# --- a search: the expected best dev score against trials ---


def write_figures(folder: Path, study: Study, trials: Mapping[str, Sequence[Trial]]) -> None:
    """Draws what there is data for into the search's folder, with its data as CSV."""
    if figure := expected_best_figure(study, trials):
        write_or_fail(folder / f"{figure.name}.svg", figure.svg.encode())
        write_or_fail(folder / f"{figure.name}.csv", figure.csv.encode())


def expected_best_figure(study: Study, trials: Mapping[str, Sequence[Trial]]) -> Figure | None:
    """None where no method has two trials."""
    lines: Lines = []
    for method, every in trials.items():
        curve = expected_best([t.score for t in every if t.number != RECIPE and t.state != RUNNING])
        points = [(0, t.score) for t in every if t.number == RECIPE and t.score is not None]
        if len(curve) > 1:
            lines.append((method, dict([*points, *enumerate(curve, 1)])))
    if not lines:
        return None
    lines.sort(key=lambda line: -list(line[1].values())[-1])
    return Figure(
        name="expected-best",
        kind="search",
        title=f"Expected best {study.select_on} against trials",
        caption="Expected best dev score after n trials (Dodge et al. 2019); failed and pruned trials "
        "count as the lowest score. At 0: the recipe without a search. Coloured: highest after all "
        "trials. At most nine methods are drawn, the highest.",
        **drawing_of(lines, "trials", study.select_on),
        suites=(),
    )


# --- Focal-InfoNCE's re-scaling of negative pairs (Figure 1) ---

ADDED = (0.4, 0.3, 0.2, 0.1)  # values of m


def rescaled(s: float, m: float) -> float:
    """What stands for the cosine s of a negative pair in the loss, before the temperature
    (Focal-InfoNCE, eq. 2)."""
    return s * (s + m)


def rescaling() -> Figure:
    cosines = [i / 20 for i in range(21)]
    lines = [
        *((f"m = {m:g}", {s: rescaled(s, m) for s in cosines}) for m in ADDED),
        ("s itself", {s: s for s in cosines}),
    ]
    return Figure(
        name="rescaling",
        kind="rescaling",
        title="Re-scaled negative pairs",
        caption="The value s (s + m) that Focal-InfoNCE uses instead of the cosine s of a negative "
        "pair, for the values of m in its Table 5. Coloured: the largest m. Above the line of s "
        "itself, where s > 1 − m, a pair counts more; below it, less. Drawn from the formula; no "
        "run is needed.",
        **drawing_of(lines, "cosine s of a negative pair", "re-scaled: s (s + m)"),
        suites=(),
        paper_figure="Focal-InfoNCE, Figure 1",
    )
