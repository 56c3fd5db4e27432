"""What the correlation on STS-B becomes when the most frequent words are taken out of the sentences.

ConPVP's Figure 5 asks the same otherwise: there tokens of the model are taken out, and the seven STS sets are averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.compare.formatting import score
from bench.compare.statistics.table import Row, Table
from bench.runs.record import RunRecord
from bench.show.figures import plots
from bench.show.figures.drawing import Figure, library, number
from bench.show.figures.points import Group, one_point_per_method, points

UNLIKE = "ConPVP's Figure 5 takes out tokens, and averages the seven STS sets."


def frequent(group: Group, records: Mapping[str, RunRecord]) -> Figure | None:
    """A line per method over the number of words taken out. None where fewer than two methods have them."""
    table = group.table("geometry")
    if table is None:
        return None
    rows = one_point_per_method(points(table, "alignment"), table)
    curves = [
        (point.label, curve) for point in rows if (curve := _curve(point.row, records, table))
    ]
    steps = sorted({k for _, curve in curves for k in curve})
    whole = sorted(
        [(name, curve) for name, curve in curves if len(curve) == len(steps)],
        key=lambda pair: (-pair[1][steps[0]], pair[0]),
    )
    if len(whole) < 2 or len(steps) < 2:
        return None
    gains = [curve[steps[-1]] - curve[steps[0]] for _, curve in whole]
    highest, lowest = gains.index(max(gains)), gains.index(min(gains))
    shown = sorted({*range(min(plots.MOST, len(whole))), highest, lowest})
    drawn = [
        plots.Line(
            label=whole[i][0],
            x=tuple(range(len(steps))),
            y=tuple(whole[i][1][k] for k in steps),
            strong=i == highest,
            tips=tuple(f"{whole[i][0]}, {k} words fewer: {score(whole[i][1][k])}" for k in steps),
        )
        for i in shown
    ]
    with library():
        drawing = plots.drawn_over(
            steps, drawn, "most frequent words taken out", "STS-B test, Spearman × 100"
        )
        name, title = group.name("frequent-words"), group.titled("Without the most frequent words")
        said = ends_words(
            (whole[highest][0], gains[highest]), (whole[lowest][0], gains[lowest]), len(whole)
        )
        finding = f"Without the {steps[-1]} most frequent words {said}."
        rest = (
            f" The {len(shown)} lines are those highest at first; the table has all {len(whole)}."
            if len(shown) < len(whole)
            else ""
        )
        alt = f"Lines of {len(shown)} methods: correlation on STS-B test against the number of words taken out. {finding}"
        return Figure(
            name=name,
            kind="frequent-words",
            suites=("geometry",),
            title=title,
            alt=alt,
            svg=drawing.svg(name, title, alt),
            caption=f"{finding} The words are the most frequent ones of STS-B test; means over seeds. {UNLIKE}{rest}",
            header=("method", *(f"{k} words taken out" for k in steps)),
            data=tuple((name, *(round(curve[k], 4) for k in steps)) for name, curve in whole),
        )


def ends_words(highest: tuple[str, float], lowest: tuple[str, float], count: int) -> str:
    """What the method that gains most and the one that gains least did, of ``count``: "a gains 3.69 points, the most of 8 methods, and b
    loses 1.20, the most"."""
    (best, gain), (worst, least) = highest, lowest
    if score(abs(gain)) == score(abs(least)) and _sign(gain) == _sign(least):
        return f"all {count} methods {_moves(gain, plural=True)}"
    if _sign(gain) > 0:
        extreme = "most" if _sign(least) < 0 else "least"
        return f"{best} {_moves(gain)}, the most of {count} methods, and {worst} {_moves(least)}, the {extreme}"
    return f"{worst} {_moves(least)}, the most of {count} methods, and {best} {_moves(gain)}, the least"


def _sign(gain: float) -> int:
    """Of what is printed."""
    printed = float(score(gain))
    return (printed > 0) - (printed < 0)


def _moves(gain: float, plural: bool = False) -> str:
    one, several = {-1: ("loses", "lose"), 0: ("changes by", "change by"), 1: ("gains", "gain")}[
        _sign(gain)
    ]
    return f"{several if plural else one} {score(abs(gain))} points"


def _curve(row: Row, records: Mapping[str, RunRecord], table: Table) -> dict[int, float]:
    """Number of words -> correlation, mean over the row's runs; only what all of them have."""
    runs = [
        values
        for run in row.runs
        if (record := records.get(run)) and (values := _values(record, table))
    ]
    if not runs:
        return {}
    return {
        k: sum(values[k] for values in runs) / len(runs)
        for k in runs[0]
        if all(k in values for values in runs)
    }


def _values(record: RunRecord, table: Table) -> dict[int, float]:
    """Number of words -> correlation of one run; empty where it kept none, or something else."""
    alignment = record.score("geometry", "alignment", table.protocol, table.text)
    kept: Any = alignment.detail.get("without_frequent_words") if alignment else None
    if not isinstance(kept, list):
        return {}
    pairs = [
        (number(entry.get("k")), number(entry.get("spearman")))
        for entry in kept
        if isinstance(entry, dict)
    ]
    return {int(k): value for k, value in pairs if k is not None and value is not None}
