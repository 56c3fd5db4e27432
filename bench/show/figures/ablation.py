"""The average against one recipe value, from runs that are equal in all else (PromCSE, Figure 2 and Table 4; Focal-InfoNCE, Tables 4, 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.compare.formatting import visible
from bench.compare.statistics.table import SENDER
from bench.show.figures.drawing import ACCENT, QUIET, Figure, bar, drawn, parse_number
from bench.show.figures.points import Group, Point, ends, mean_and_ends, points, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ABLATION = (
    "Runs that are equal in all but the recipe value on the axis below, means over seeds. Bars: the intervals of the table, or standard deviations over seeds where it has none. Grey squares: "
    "what papers print."
)
FEWEST = 3  # points of a curve
MOST = 6  # curves of a group
MAIN, BESIDE = (
    "sts",
    "cxc",
)  # the suite whose average is drawn where it was scored, and the one that has a panel under it
PAPERS: Mapping[str, str] = {
    "prompt_length": "PromCSE, Figure 2",
    "eh_margin": "PromCSE, Table 4",
    "temperature": "Focal-InfoNCE, Table 4",
    "hardness_m": "Focal-InfoNCE, Table 5",
}
"""Where papers show the same recipe value."""


@dataclass(frozen=True)
class Swept:
    """Rows that differ in one number of their recipe alone, by that number."""

    method: str  # with its variant
    key: str
    values: tuple[float, ...]
    points: tuple[Point, ...]


def ablations(group: Group) -> list[Figure]:
    """A figure for each recipe value of which a method has at least three, those with most values first: of the STS average, else of
    the column that another suite ranks by."""
    made: dict[tuple[str, str], Figure] = {}
    for suite in group.suites:
        table = group.tables[suite].table
        for curve in swept(points(table, table.head)):
            if (curve.method, curve.key) not in made and len(made) < MOST:
                made[curve.method, curve.key] = _figure(group, suite, curve)
    return list(made.values())


def swept(found: Sequence[Point]) -> list[Swept]:
    """Of each method and recipe key the longest series of rows that are equal in everything else."""
    series: dict[tuple[str, ...], dict[tuple[tuple[str, str], ...], dict[float, Point]]] = {}
    for point in found:
        row = point.row
        for key, text in row.differs:
            value = parse_number(text)
            if value is not None and key != SENDER:
                rest = tuple(pair for pair in row.differs if pair[0] != key)
                series.setdefault((row.name, row.setting, row.backbone, key), {}).setdefault(
                    rest, {}
                ).setdefault(value, point)
    made = []
    for (name, _, _, key), alike in series.items():
        longest = max(
            alike.items(), key=lambda pair: (len(pair[1]), [str(part) for part in pair[0]])
        )[1]
        if len(longest) >= FEWEST:
            values = sorted(longest)
            made.append(
                Swept(
                    visible(name, limit=40),
                    visible(key, limit=40),
                    tuple(values),
                    tuple(longest[v] for v in values),
                )
            )
    return sorted(made, key=lambda one: (-len(one.values), one.method, one.key))


@dataclass(frozen=True)
class Panel:
    """One score against the recipe value."""

    what: str  # "STS Avg."
    points: tuple[tuple[float, Point], ...]
    printed: tuple[tuple[float, float], ...] = ()


def _figure(group: Group, suite: str, curve: Swept) -> Figure:
    head = " ".join(dict.fromkeys((suite, group.tables[suite].table.head or "")))
    panels = [
        Panel(
            "STS Avg." if suite == MAIN else head,
            tuple(zip(curve.values, curve.points, strict=True)),
        )
    ]
    others: list[Point | None] = []
    if suite == MAIN:
        others = _on_captions(group, curve)
        both = zip(curve.values, others, strict=True)
        there = tuple((value, point) for value, point in both if point is not None)
        printed = _printed(group, curve)
        panels = [replace(panels[0], printed=printed.get("STS Avg.", ()))]
        if len(there) >= FEWEST:
            panels.append(Panel("CxC-STS", there, printed.get("CxC-STS", ())))
    more = [] if suite == MAIN else [suite]
    return Figure(
        name=group.name("ablation", curve.method, curve.key.replace("_", "-"), *more),
        kind="ablation",
        title=group.titled(f"{curve.method}: {curve.key}"),
        caption=ABLATION,
        svg=drawn(
            draw_ablation,
            panels,
            curve.key,
            height=60 + 200.0 * len(panels),
            panels=(len(panels), 1),
        ),
        paper_figure=PAPERS.get(curve.key, "") if suite == MAIN else "",
        suites=(suite,),
        header=(
            "method",
            curve.key,
            panels[0].what,
            "low",
            "high",
            *(["CxC-STS"] if suite == MAIN else []),
        ),
        data=tuple(
            (
                curve.method,
                value,
                *mean_and_ends(point.cell),
                *(
                    "" if other is None else round(other.cell.mean, 4)
                    for other in others[i : i + 1]
                ),
            )
            for i, (value, point) in enumerate(zip(curve.values, curve.points, strict=True))
        ),
    )


def draw_ablation(those: Axes | Sequence[Axes], panels: Sequence[Panel], key: str) -> None:
    """A curve a panel; on a logarithmic axis where the values are far apart."""
    for axes, panel in zip(those if isinstance(those, list) else [those], panels, strict=True):
        values = [value for value, _ in panel.points]
        if values[0] > 0 and values[-1] / values[0] >= 8:
            axes.set_xscale("log")
        for value, point in panel.points:
            if interval := ends(point.cell):
                bar(axes, (value, value), interval, ACCENT)
        axes.plot(values, [point.cell.mean for _, point in panel.points], "o-", color=ACCENT)
        inside = [(x, y) for x, y in panel.printed if values[0] <= x <= values[-1]]
        axes.plot([x for x, _ in inside], [y for _, y in inside], "s", color=QUIET, markersize=5)
        axes.margins(x=0.05, y=0.1)
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set_xticks([], minor=True)
        axes.locator_params(axis="y", nbins=5)
        axes.set_xlabel(key)
        axes.set_title(panel.what)


def _on_captions(group: Group, curve: Swept) -> list[Point | None]:
    """The points of the same runs on CxC."""
    cxc = group.table(BESIDE)
    there = points(cxc, cxc.columns[0]) if cxc is not None else []
    by_run = {run: point for point in there for run in point.row.runs}
    return [by_run.get(point.row.runs[0]) for point in curve.points]


def _printed(group: Group, curve: Swept) -> dict[str, tuple[tuple[float, float], ...]]:
    """Panel -> (value of the recipe key, printed number): of the same method, setting and backbone, from tables and from the points of
    pictures that a source gives."""
    from bench.references import figure_runs, printed_points, results
    from bench.references.ours import meaning

    backbone, found = short_name(group.backbone), dict[str, dict[float, float]]()
    for task, panel in (("Avg.", "STS Avg."), ("CxC-STS", "CxC-STS")):
        for cell in results(backbone=backbone, setting=group.setting, task=task):
            means = meaning(cell.method, cell.variant, cell.setting)
            if (
                means.name == curve.method
                and set(means.set) == {curve.key}
                and cell.metric in ("spearman", "spearman-bootstrap")
            ):
                found.setdefault(panel, {})[float(means.set[curve.key])] = cell.value
        for spec in figure_runs():
            of_it = backbone in spec.backbones and (group.setting, curve.method, "") in spec.runs
            if of_it and spec.series and spec.series[0] == curve.key:
                points = [
                    point
                    for point in printed_points(spec.part)
                    if (point.panel, point.key) == (task, curve.key)
                ]
                found.setdefault(panel, {}).update({point.x: point.y for point in points})
    return {panel: tuple(sorted(values.items())) for panel, values in found.items()}
