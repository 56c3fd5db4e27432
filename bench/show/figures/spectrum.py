"""How fast the singular values of a method's vectors fall (SimCSE, Figure F.1): whether a few directions hold most of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.runs.predictions import predictions_file
from bench.score.metrics.geometry import effective_rank
from bench.show.figures import lines
from bench.show.figures.drawing import BOTTOM, LEFT, TOP, WIDTH, Drawing, library
from bench.show.figures.figure import Figure
from bench.show.figures.points import Group, counted, leading, listed, methods, points

if TYPE_CHECKING:
    from bench.board.board import PublishedRun
    from bench.compare.statistics.table import Row, Table

TASK, VALUES = "uniformity", "singular_values"  # of whose predictions they are a part
HOW = "Singular values of the unit vectors of STS-B test less their mean, over the largest of them; means over seeds. Effective rank: exp of the entropy of the values (Roy and Vetterli 2007)."


@dataclass(frozen=True)
class Spectrum:
    """Of a row: means over its runs."""

    label: str
    share: tuple[float, ...]  # of each singular value in the largest, that first
    rank: float  # effective: how many directions are used


def spectrum(group: Group, runs: Mapping[str, PublishedRun]) -> Figure | None:
    """A line per method over the number of the singular value, in powers of two. None where fewer than two methods have them."""
    table = group.tables.get("geometry")
    if table is None:
        return None
    rows = methods(points(table.table, TASK), table.table)
    found = [made for point in rows if (made := _spectrum(point.label, point.row, table.table, runs)) is not None]
    if len(found) < 2:
        return None
    last = min(len(made.share) for made in found)
    places = sorted({*(1 << i for i in range(last.bit_length())), last})
    found.sort(key=lambda made: -made.rank)
    shown = found if len(found) <= lines.MOST else [*found[: lines.MOST - 1], found[-1]]
    best = leading([(made.label, made.rank) for made in found])
    drawn = [
        lines.Line(
            label=made.label,
            x=tuple(range(len(places))),
            y=tuple(made.share[k - 1] for k in places),
            strong=made.label in best,
            tips=tuple(f"{made.label}, singular value {k}: {made.share[k - 1]:.3f} of the largest" for k in places),
        )
        for made in shown
    ]
    name, title, finding = group.name("spectrum"), group.titled("How many directions the vectors use"), spectrum_words(found)
    rest = f" Shown are {len(shown)} of {len(found)} methods." if len(shown) < len(found) else ""
    alt = f"Falling lines of {counted(len(shown), 'method')}: singular values over the largest. {finding}"
    with library():
        drawing = Drawing()
        axes = lines.panel(drawing, LEFT, BOTTOM, WIDTH - lines.room(drawn), drawing.height - TOP)
        axes.set_xlim(-0.3, len(places) - 0.9)
        lines.draw(drawing, axes, drawn, also=(0.0,))
        lines.ticks(drawing, axes, range(len(places)), [str(k) for k in places])
        drawing.names(axes, "singular value, the largest first", "share of the largest")
        return Figure(
            name=name,
            kind="spectrum",
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            caption=f"{finding} {HOW}{rest}",
            header=("method", "effective rank", *(f"value {k}" for k in places)),
            of=("geometry",),
            paper_figure="SimCSE, Figure F.1",
            data=tuple((made.label, round(made.rank, 3), *(round(made.share[k - 1], 5) for k in places)) for made in found),
        )


def spectrum_words(found: Sequence[Spectrum]) -> str:
    """Whose vectors use most directions, and whose fewest. ``found``: at least two."""
    most, fewest = (leading([(made.label, sign * round(made.rank, 1)) for made in found], 3) for sign in (1, -1))
    of = " to ".join(str(size) for size in sorted({len(made.share) for made in found}))
    ranks = {made.label: f"{made.rank:.1f}" for made in found}
    if most == fewest:
        return f"All {len(found)} methods use {ranks[most[0]]} of {of} directions."
    return (
        f"The vectors of {listed(most)} use most directions, {ranks[most[0]]} of {of}; those of {listed(fewest)} fewest, "
        f"{ranks[fewest[0]]}."
    )


def _spectrum(label: str, row: Row, table: Table, runs: Mapping[str, PublishedRun]) -> Spectrum | None:
    values = [own for run in row.runs if run in runs and (own := _values(runs[run], table))]
    if not values or len({len(own) for own in values}) > 1:
        return None
    try:
        ranks = [effective_rank(own) for own in values]
    except ValueError:
        return None
    return Spectrum(
        label,
        tuple(fmean(column) for column in zip(*([value / own[0] for value in own] for own in values), strict=True)),
        fmean(ranks),
    )


def _values(run: PublishedRun, table: Table) -> list[float]:
    """As the run stored them; empty where it did not, or where they are not what they should be."""
    import numpy as np

    from bench.runs.arrays import read_arrays

    try:
        found = read_arrays(predictions_file(run.folder, (table.suite, TASK, table.protocol, table.text)), (VALUES,)).get(VALUES)
    except BenchError:
        return []
    fits = found is not None and found.dtype.kind == "f" and found.ndim == 1 and found.size > 1 and bool(np.isfinite(found).all())
    return [float(number) for number in found] if found is not None and fits and found[0] > 0 and found.min() >= 0 else []
