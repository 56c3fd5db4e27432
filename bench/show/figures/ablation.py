"""The average against one recipe value, from runs that are equal in all else (PromCSE, Figure 2 and Table 4; Focal-InfoNCE, Tables 4, 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.compare.formatting import score, visible
from bench.compare.statistics.table import SENDER
from bench.show.figures import plots
from bench.show.figures.drawing import (
    BOTTOM,
    LEFT,
    TOP,
    WIDTH,
    Drawing,
    Figure,
    library,
    parse_number,
)
from bench.show.figures.points import (
    Group,
    Point,
    bars_words,
    count_words,
    ends,
    leaders,
    names_in_words,
    points,
    short_name,
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


def _figure(group: Group, suite: str, curve: Swept) -> Figure:
    table = group.tables[suite].table
    cxc = group.table(BESIDE) if suite == MAIN else None
    there = (
        {run: point for point in points(cxc, cxc.columns[0]) for run in point.row.runs}
        if cxc
        else {}
    )
    others = [there.get(point.row.runs[0]) for point in curve.points]
    head = "STS Avg." if suite == MAIN else " ".join(dict.fromkeys((suite, table.head or "")))
    panels = [(head, list(zip(curve.values, curve.points, strict=True)))]
    there_as_well = [
        (value, point)
        for value, point in zip(curve.values, others, strict=True)
        if point is not None
    ]
    if len(there_as_well) >= FEWEST:
        panels.append(("CxC-STS", there_as_well))
    printed = _printed(group, curve) if suite == MAIN else {}
    drawn = 0
    log = curve.values[0] > 0 and curve.values[-1] / curve.values[0] >= 8
    with library():
        high = 190.0
        drawing = Drawing(height=TOP + BOTTOM + high * len(panels) - 40)
        for i, (what, shown) in enumerate(panels):
            low = BOTTOM + (len(panels) - 1 - i) * (high + (TOP - 40) / 2)
            axes = drawing.axes(LEFT, low, WIDTH - 24, low + high - 50)
            plots.range_x(axes, curve.values[0], curve.values[-1], 0.06, log=log)
            there_too = [
                (x, y) for x, y in printed.get(what, ()) if curve.values[0] <= x <= curve.values[-1]
            ]
            drawn += len(there_too)
            plots.draw(
                drawing,
                axes,
                [_line(what, shown), *([_printed_line(what, there_too)] if there_too else [])],
            )
            plots.ticks(drawing, axes, curve.values, [f"{v:g}" for v in curve.values])
            drawing.names(axes, curve.key if i == len(panels) - 1 else "", what)
        name = group.name(
            "ablation",
            curve.method,
            curve.key.replace("_", "-"),
            *([] if suite == MAIN else [suite]),
        )
        title = group.titled(f"{curve.method}: {curve.key}")
        means = [point.cell.mean for point in curve.points]
        lowest, top = min(means), max(means)
        highest = leaders(
            [
                (f"{value:g}", point.cell.mean)
                for value, point in zip(curve.values, curve.points, strict=True)
            ]
        )
        over = f"over {curve.values[0]:g} to {curve.values[-1]:g}"
        finding = (
            f"{curve.method} is highest at {curve.key} = {names_in_words(highest)}: {score(top)}; {over} it moves by {score(top - lowest)} points."
            if len(highest) < len(curve.values)
            else f"{curve.method} stays at {score(top)} {over} of {curve.key}."
        )
        seeds = sorted({len(point.row.runs) for point in curve.points})
        each = f", {count_words(seeds[0], 'seed')} each" if len(seeds) == 1 else ""
        how = f"Runs that are equal in all else{each}."
        alt = f"Curve of {len(curve.values)} points: {'average of the STS sets' if suite == MAIN else head} against {curve.key}. {finding}"
        return Figure(
            name=name,
            kind="ablation",
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            paper_figure=PAPERS.get(curve.key, "") if suite == MAIN else "",
            suites=(suite,),
            caption=" ".join(
                filter(None, (finding, how, PRINTED if drawn else "", bars_words([table])))
            ),
            header=(
                "method",
                curve.key,
                head,
                "low",
                "high",
                *(["CxC-STS"] if suite == MAIN else []),
            ),
            data=tuple(
                (
                    curve.method,
                    value,
                    round(point.cell.mean, 4),
                    *(ends(point.cell) or ("", "")),
                    *(
                        ["" if other is None else round(other.cell.mean, 4)]
                        if suite == MAIN
                        else []
                    ),
                )
                for value, point, other in zip(curve.values, curve.points, others, strict=True)
            ),
        )


PRINTED = "Grey, not joined: what papers print."


def _printed(group: Group, curve: Swept) -> dict[str, list[tuple[float, float]]]:
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
        for drawn in figure_runs():
            of_it = backbone in drawn.backbones and (group.setting, curve.method, "") in drawn.runs
            if of_it and drawn.series and drawn.series[0] == curve.key:
                points = [
                    point
                    for point in printed_points(drawn.part)
                    if (point.panel, point.key) == (task, curve.key)
                ]
                found.setdefault(panel, {}).update({point.x: point.y for point in points})
    return {panel: sorted(values.items()) for panel, values in found.items()}


def _printed_line(what: str, at: Sequence[tuple[float, float]]) -> plots.Line:
    return plots.Line(
        label="",
        x=tuple(x for x, _ in at),
        y=tuple(y for _, y in at),
        joined=False,
        tips=tuple(f"{x:g}: {what} printed {score(y)}" for x, y in at),
    )


def _line(what: str, shown: Sequence[tuple[float, Point]]) -> plots.Line:
    """Nothing stands at its end: a panel has one line, and says what it is."""
    return plots.Line(
        label="",
        x=tuple(x for x, _ in shown),
        y=tuple(point.cell.mean for _, point in shown),
        strong=True,
        bars=tuple(ends(point.cell) for _, point in shown),
        tips=tuple(f"{x:g}: {what} {score(point.cell.mean)}" for x, point in shown),
    )
