"""What all figures are made with: the sheet that they begin with, the element that it becomes, the figure with its data, and numbers
out of what records keep."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
import math
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.show.figures.labels import Box, lead, place_labels, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet


# --- From what the drawing library writes to an <svg> element that fits a page: its colours follow the page, its ids are its own ---
# Text stays text, coordinates have one decimal, and nothing in it depends on the clock. Everything foreign is escaped, because
# the element is written from a parsed tree.


SVG, XLINK = (
    "{http://www.w3.org/2000/svg}",
    "{http://www.w3.org/1999/xlink}",
)  # before the names of elements and attributes
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
SPACE = re.compile(r"\s*([A-Za-z,()])\s*|\s+")
DRAWN = (
    "d",
    "x",
    "y",
    "transform",
    "points",
    "width",
    "height",
    "stroke-width",
    "stroke-dasharray",
    "stroke-dashoffset",
)
KEPT = (
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "fill-opacity",
    "stroke-opacity",
    "opacity",
    "text-anchor",
)
"""Properties of a mark that are kept; others are the library's habits, which the style sheet says once."""

INHERITED = ("class", *(key for key in KEPT if key not in ("opacity", "text-anchor")))

COLOURS: Mapping[str, tuple[str, str]] = {
    "#010101": ("ink", "#1c1b19"),
    "#020202": ("quiet", "#66625b"),
    "#030303": ("line", "#d9d5cc"),
    "#040404": ("accent", "#8a3b12"),
    "#050505": ("paper", "#fdfcf9"),
    "#060606": ("second", "#2b6ca3"),
    "#070707": ("third", "#2f7d55"),
}
"""What the library draws with, and what is meant: the page's variable, and its value where there is no page."""
PREFIX = {"fill": "bf", "stroke": "bs"}  # of the classes
OWN = ("second", "third")  # the page knows nothing of these, so they are set on the drawing itself
DARK = {
    "ink": "#e9e6df",
    "quiet": "#a39d92",
    "line": "#3a3731",
    "accent": "#e5a26f",
    "paper": "#171614",
    "second": "#7db4e6",
    "third": "#7cc49b",
}
INK, QUIET, LINE, ACCENT, PAPER, SECOND, THIRD = COLOURS
FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'


def style(used: Set[str]) -> str:
    """The rules of a drawing that uses these classes. Its own colours count where it is a file of its own; in a page, the page's."""
    page = [(name, value) for name, value in COLOURS.values() if name not in OWN]
    own = [
        (name, value)
        for name, value in COLOURS.values()
        if name in OWN and {f"{one}-{name}" for one in PREFIX.values()} & used
    ]
    light, light_own = (_variables(which) for which in (page, own))
    dark, dark_own = (
        _variables([(name, DARK[name]) for name, _ in which]) for which in (page, own)
    )
    uses = "".join(  # who knows no variables takes the first
        f".{prefix}-{name}{{{kind}:{value};{kind}:{'currentColor' if name == 'ink' else f'var(--{name},{value})'}}}"
        for name, value in COLOURS.values()
        for kind, prefix in PREFIX.items()
        if f"{prefix}-{name}" in used
    )
    return (
        f"svg:root{{{light}color:var(--ink)}}.bench-figure{{{light_own}width:100%;height:auto;max-width:520px;overflow:visible;"
        f"font-family:var(--sans,{FONT});font-variant-numeric:tabular-nums}}"
        f".bench-figure *{{stroke-linecap:round;stroke-linejoin:round}}{uses}"
        f"@media screen and (prefers-color-scheme:dark){{svg:root{{{dark}}}{f'.bench-figure{{{dark_own}}}' if own else ''}}}"
    )


def _variables(colours: Iterable[tuple[str, str]]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours)


def finish(drawn: str, name: str, title: str, alt: str, tips: Mapping[str, str]) -> str:
    """The element that stands for the ``drawn`` file. ``tips``: id of a mark -> what is shown when it is pointed at."""
    root = ET.fromstring(drawn)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update(
        {
            "class": "bench-figure",
            "viewBox": view,
            "role": "img",
            "aria-labelledby": f"bf-{name}-title bf-{name}-alt",
        }
    )
    for child in list(root):
        if child.tag in (f"{SVG}metadata", f"{SVG}defs"):
            root.remove(child)
    targets = dict.fromkeys(
        target for element in root.iter() if (target := element.get(f"{XLINK}href"))
    )
    short = hashlib.sha256(name.encode()).hexdigest()[
        :6
    ]  # a drawing of many marks names its targets a thousand times
    ids = {target.removeprefix("#"): f"b{short}-{i}" for i, target in enumerate(targets, 1)}
    _walk(root, ids, tips)
    for child in list(root):
        _flatten(child)
        _gather(child)
    used = {name for element in root.iter() for name in element.get("class", "").split()}
    root[:0] = [
        _element("title", title, id=f"bf-{name}-title"),
        _element("desc", alt, id=f"bf-{name}-alt"),
        _element("style", style(used)),
    ]
    ET.register_namespace("", SVG.strip("{}"))
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _element(tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.Element(f"{SVG}{tag}", attributes)
    element.text = text
    return element


def _walk(root: ET.Element, ids: Mapping[str, str], tips: Mapping[str, str]) -> None:
    for element in root.iter():
        element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None
        if element is root:
            continue
        own = element.attrib.pop("id", "")
        if own in ids:
            element.set("id", ids[own])
        element.attrib.pop("clip-path", None)
        target = element.attrib.pop(f"{XLINK}href", None)
        if target is not None:
            element.set("href", "#" + ids[target.removeprefix("#")])
        _restyle(element)
        for key in DRAWN:
            if key in element.attrib:
                element.set(
                    key,
                    SPACE.sub(
                        lambda found: found.group(1) or " ", NUMBER.sub(_short, element.attrib[key])
                    ).strip(),
                )
        if own in tips:  # of a mark, not a target
            element.insert(0, _element("title", tips[own]))


def _restyle(element: ET.Element) -> None:
    """The style attribute as attributes, and as classes of the colours that a page's style sheet says."""
    rules = [
        rule.partition(":") for rule in element.attrib.pop("style", "").split(";") if rule.strip()
    ]
    properties = {key.strip(): value.strip() for key, _, value in rules}
    classes = []
    for key in KEPT:
        value = properties.get(key)
        if value is None or (key, value) in (
            ("stroke-width", "1"),
            ("opacity", "1"),
            ("text-anchor", "start"),
        ):
            continue
        if value in COLOURS and key in PREFIX:
            classes.append(f"{PREFIX[key]}-{COLOURS[value][0]}")
        else:
            element.set(key, value)
    if classes:
        element.set("class", " ".join(classes))
    if element.tag == f"{SVG}text":
        font = properties.get("font", "")
        if size := re.search(r"([\d.]+)px", font or properties.get("font-size", "")):
            element.set("font-size", size.group(1))
        if "700" in font or "bold" in font:
            element.set("font-weight", "600")
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]


def _flatten(element: ET.Element) -> None:
    """Groups that say nothing are replaced by what they hold."""
    for child in list(element):
        _flatten(child)
    kept: list[ET.Element] = []
    for child in element:
        if (
            child.tag == f"{SVG}g"
            and not child.attrib
            and not any(one.tag == f"{SVG}title" for one in child)
        ):
            kept.extend(child)
        elif not (child.tag == f"{SVG}defs" and not len(child)):
            kept.append(child)
    element[:] = kept


def _gather(element: ET.Element) -> None:
    """Neighbours that are drawn alike stand in a group, which says once how."""
    kept: list[ET.Element] = []
    for look, some in groupby(element, _look):
        alike = list(some)
        if look and len(alike) > 2:
            for mark in map(_mark, alike):
                for key, _ in look:
                    del mark.attrib[key]
            group = ET.Element(f"{SVG}g", dict(look))
            group.extend(alike)
            alike = [group]
        else:
            for child in alike:
                _gather(child)
        kept += alike
    element[:] = kept


def _mark(element: ET.Element) -> ET.Element:
    """What is drawn: the element itself, or what stands beside its title."""
    return (
        element[-1]
        if element.tag == f"{SVG}g" and not element.attrib and len(element) == 2
        else element
    )


def _look(element: ET.Element) -> tuple[tuple[str, str], ...]:
    """The properties of a mark that it may have from its group."""
    mark = _mark(element)
    marks = (f"{SVG}path", f"{SVG}use")
    return (
        tuple((key, mark.attrib[key]) for key in INHERITED if key in mark.attrib)
        if mark.tag in marks
        else ()
    )


def _short(number: re.Match[str]) -> str:
    text = f"{float(number.group()):.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


# --- The sheet that all figures begin with, and what they put on it: axes without boxes, points, labels, bars ---

WIDTH = 360.0  # units; as wide as a phone, so that text has its size there
SMALL, TEXT = 11.0, 12.0  # sizes of tick labels and of all other text
LEFT, RIGHT, TOP, BOTTOM = 38.0, 14.0, 30.0, 42.0
RADIUS = 4.0


def missing_library(command: str) -> BenchError | None:
    """What is wrong where matplotlib, an extra, is not installed: a command that draws raises it before anything else."""
    if importlib.util.find_spec("matplotlib") is not None:
        return None
    return BenchError(
        f"{command} draws figures with matplotlib, which is not installed",
        "pip install 'sentence-bench[publish]'",
    )


@contextmanager
def library() -> Iterator[None]:
    """matplotlib with its own defaults, whatever its user has set, and quiet about characters that its font lacks."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.fonttype": "none",
                "svg.hashsalt": "bench",
                "font.family": ["DejaVu Sans"],
                "text.usetex": False,
                "text.parse_math": False,
                "axes.unicode_minus": True,
                "path.simplify": False,
            }
        )
        yield


@dataclass
class Drawing:
    """A sheet of ``height`` units, 360 wide, with one or more axes on it. Only within ``library()``."""

    height: float = 300.0
    tips: dict[str, str] = field(default_factory=dict)
    sheet: Sheet = field(init=False)

    def __post_init__(self) -> None:
        from matplotlib.figure import Figure as Sheet

        self.sheet = Sheet(figsize=(WIDTH / 72, self.height / 72), dpi=72)
        self.sheet.patch.set_visible(False)

    def axes(
        self,
        left: float = LEFT,
        low: float = BOTTOM,
        right: float = WIDTH - RIGHT,
        high: float | None = None,
    ) -> Axes:
        """Axes in a part of the sheet, by default all of it: a line at the bottom, no frame, no ticks."""
        high = self.height - TOP if high is None else high
        axes = self.sheet.add_axes(
            (left / WIDTH, low / self.height, (right - left) / WIDTH, (high - low) / self.height)
        )
        axes.patch.set_visible(False)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(QUIET)
        axes.spines["bottom"].set_linewidth(0.8)
        axes.tick_params(
            left=False, bottom=False, labelsize=SMALL, labelcolor=QUIET, pad=4, which="both"
        )
        axes.minorticks_off()
        axes.grid(axis="y", color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)
        return axes

    def names(self, axes: Axes, x: str, y: str) -> None:
        """What the axes are: y at the top left, x below the middle."""
        box = self.box(axes)
        self.text(2.0, box.high + 14.0, y, colour=QUIET)
        self.text((box.left + box.right) / 2, box.low - 32.0, x, anchor="middle", colour=QUIET)

    def box(self, axes: Axes) -> Box:
        """Where the axes lie on the sheet."""
        part = axes.get_position()
        return Box(part.x0 * WIDTH, part.y0 * self.height, part.x1 * WIDTH, part.y1 * self.height)

    def at(self, axes: Axes, x: float, y: float) -> tuple[float, float]:
        """Where a value lies on the sheet."""
        place_2 = axes.transData.transform((x, y))
        return float(place_2[0]), float(place_2[1])

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        anchor: str = "start",
        colour: str = INK,
        bold: bool = False,
    ) -> None:
        """A line of text with its baseline at ``y``."""
        side = {"start": "left", "middle": "center", "end": "right"}[anchor]
        self.sheet.text(
            x / WIDTH,
            y / self.height,
            text,
            fontsize=size,
            ha=side,
            va="baseline",
            color=colour,
            fontweight="bold" if bold else "normal",
            parse_math=False,
        )

    def tip(self, text: str) -> str:
        """The id of a mark that shows ``text`` when it is pointed at."""
        self.tips[f"tip{len(self.tips)}"] = text
        return f"tip{len(self.tips) - 1}"

    def dot(
        self,
        axes: Axes,
        x: float,
        y: float,
        tip: str,
        *,
        strong: bool = False,
        square: bool = False,
    ) -> None:
        """A point: filled in the accent where it is ``strong``, else hollow."""
        axes.plot(
            [x],
            [y],
            marker="s" if square else "o",
            markersize=2 * RADIUS - 1,
            linestyle="",
            gid=self.tip(tip),
            zorder=6 if strong else 5,
            markerfacecolor=ACCENT if strong else PAPER,
            markeredgecolor=ACCENT if strong else QUIET,
            markeredgewidth=1.4,
            clip_on=False,
        )

    def bar(
        self, axes: Axes, x: Sequence[float], y: Sequence[float], *, strong: bool = False
    ) -> Box:
        """An error bar from the first to the second of ``x`` and ``y``; returns what it covers."""
        axes.plot(
            x,
            y,
            color=ACCENT if strong else QUIET,
            linewidth=1.1,
            alpha=0.75,
            zorder=3,
            clip_on=False,
        )
        (x0, y0), (x1, y1) = self.at(axes, x[0], y[0]), self.at(axes, x[1], y[1])
        return Box(min(x0, x1) - 1, min(y0, y1) - 1, max(x0, x1) + 1, max(y0, y1) + 1)

    def specks(self, axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
        """Small dots: points that only show where the others are."""
        if x:
            axes.plot(
                x,
                y,
                marker="o",
                markersize=3,
                linestyle="",
                markerfacecolor=QUIET,
                markeredgewidth=0,
                alpha=0.6,
                zorder=4,
                clip_on=False,
            )

    def label(
        self,
        axes: Axes,
        points: Sequence[tuple[float, float]],
        texts: Sequence[str],
        *,
        strong: Sequence[bool],
        avoid: Sequence[Box] = (),
        specks: Sequence[tuple[float, float]] = (),
    ) -> int:
        """Labels beside points, those of ``strong`` ones first; returns how many found a place."""
        order = sorted(range(len(points)), key=lambda i: not strong[i])
        spots = [self.at(axes, *points[i]) for i in order]
        inside = self.box(axes)
        frame = Box(inside.left - 4, inside.low + 2, WIDTH - 2, inside.high + 8)
        found = place_labels(
            spots,
            [texts[i] for i in order],
            frame,
            size=TEXT,
            radius=RADIUS,
            avoid=avoid,
            specks=[self.at(axes, *speck) for speck in specks],
        )
        for i, spot, place in zip(order, spots, found, strict=True):
            if place is None:
                continue
            if place.lead:
                self.line(*lead(spot, place.box, RADIUS))
            self.text(
                place.x, place.y, texts[i], anchor=place.anchor, colour=ACCENT if strong[i] else INK
            )
        return sum(place is not None for place in found)

    def line(
        self, begin: tuple[float, float], end: tuple[float, float], colour: str = QUIET
    ) -> None:
        """A thin line between two places on the sheet."""
        from matplotlib.lines import Line2D

        self.sheet.add_artist(
            Line2D(
                [begin[0] / WIDTH, end[0] / WIDTH],
                [begin[1] / self.height, end[1] / self.height],
                color=colour,
                linewidth=0.6,
                transform=self.sheet.transFigure,
            )
        )

    def svg(self, name: str, title: str, alt: str) -> str:
        """The finished element."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        out = io.StringIO()
        FigureCanvasSVG(self.sheet).print_svg(out, metadata={"Date": None, "Creator": None})
        return finish(out.getvalue(), name, title, alt, self.tips)


def fit_text(text: str, room: float, size: float = TEXT) -> str:
    """``text``, cut with an ellipsis where it is wider than ``room``."""
    if width(text, size) <= room:
        return text
    while text and width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip(" +=") + "…"


# --- What a figure is: a drawing, and everything that a reader who does not see it needs ---


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One drawing of a version, with the data that it was drawn from."""

    name: str  # "cost-unsupervised-builtin": letters, digits and hyphens; its file is figures/<name>.svg
    kind: str  # "gains", "cost", "parameters", "shift", "papers", "geometry", "spectrum", "frequent-words", "few-shot", "ablation" ...
    title: str  # a heading
    caption: str  # the finding, computed; then how it was made
    alt: str  # what is to be seen, in one or two sentences
    svg: str  # a whole <svg> element: to be put into a page, or to be a file of its own
    header: tuple[str, ...]  # of the data
    data: tuple[
        tuple[str | float, ...], ...
    ]  # a row for every mark; "" where something was not recorded
    suites: tuple[str, ...] = ("sts",)
    """The suites that it shows; none where it shows whatever a paper printed, or dev scores: it stands beside tables of any suite."""
    paper_figure: str = (
        ""  # the paper's figure or table that it corresponds to: "PromCSE, Figure 1"; "" for none
    )

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


# --- Numbers out of what records keep freely: a detail or a recipe may be anybody's ---

BIGGEST = 1e12


def number(value: Any) -> float | None:
    """A finite number of a size that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < BIGGEST and math.isfinite(value) else None


def numbers(values: Any) -> list[float]:
    """A list of such numbers; empty where any of it is none."""
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
