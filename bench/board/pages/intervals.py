"""The drawn intervals of a table's differences from the baseline, as points of one scale with a
zero line. ``parts.html`` draws them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.compare.statistics.table import Row, Table
from bench.compare.words.finding import BASELINE, comparison_of

WIDTH = 120.0
"""Units of the drawing, about one pixel each."""
EDGE = 4.0
"""Units that stay free at both sides, for a point's radius."""
USUAL = 0.8
"""The share of rows that the scale shows whole, if the others are far away."""
NEAR, FAR = 1.25, 2.0
"""A row within NEAR times the reach of the usual rows is still shown whole; if none is beyond FAR
times it, all are."""
LETTER, BETWEEN = 6.5, 4.5
"""The width of a letter of a tick's label, and the room between two labels."""

Interval = tuple[float, float, float]
"""Difference, low end and high end, in points."""


class Scale(NamedTuple):
    """The scale of a drawing, in points: ``low`` at its left, ``high`` at its right."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def x(self, value: float) -> float:
        """Return the place of a value; a value beyond an end is drawn at that end."""
        inside = min(max(value, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(EDGE + share * (WIDTH - 2 * EDGE), 1)

    @property
    def labels(self) -> list[tuple[float, str]]:
        """Return (place, text) of each tick: "-4", "0", "+2"."""
        return [(self.x(tick), _label(tick)) for tick in self.ticks]


def interval_scale(intervals: Sequence[Interval]) -> Scale | None:
    """Choose one scale for all rows of a table; None if there is no interval.

    It always holds zero. A few rows that are far away would squeeze all others, so they are drawn
    at its end.
    """
    known = [ends for _, *ends in intervals if all(map(math.isfinite, ends))]
    if not known:
        return None
    reach = sorted(max(abs(low), abs(high)) for low, high in known)
    usual = reach[math.ceil(USUAL * len(reach)) - 1]
    limit = reach[-1]
    if limit > FAR * usual:
        limit = max(size for size in reach if size <= NEAR * usual)
    low = min(0.0, *(max(low, -limit) for low, _ in known))
    high = max(0.0, *(min(high, limit) for _, high in known))
    if high == low:
        low, high = -1.0, 1.0
    room = 0.06 * (high - low)
    low, high = low - room, high + room
    return Scale(low, high, _ticks(low, high))


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Return round numbers between two ends, zero among them, so few that labels do not touch."""
    smallest = 10.0 ** math.floor(math.log10(high - low)) / 10
    ticks: tuple[float, ...] = (0.0,)
    for factor in (1, 2, 5, 10, 20, 50, 100):
        step = smallest * factor
        first, last = math.ceil(low / step), math.floor(high / step)
        ticks = tuple(number * step for number in range(first, last + 1))
        longest = max(len(_label(tick)) for tick in ticks)
        if step / (high - low) * (WIDTH - 2 * EDGE) >= LETTER * longest + BETWEEN:
            break
    return ticks


def _label(tick: float) -> str:
    return f"{tick:+g}" if tick else "0"


def draw_interval(interval: Interval | None, scale: Scale, kind: str) -> dict[str, Any]:
    """Return the places of an interval's ends, of its point and of zero.

    ``kind``: "better", "worse", "inconclusive" or "baseline". ``interval`` None: only the zero line
    is drawn. An end or a point beyond the scale is an arrow: "left", "right".
    """
    drawn: dict[str, Any] = {"kind": kind, "zero": scale.x(0.0), "bar": None, "point": None}
    drawn |= {"left": False, "right": False}
    if interval is None:
        return drawn
    value, low, high = interval
    drawn["bar"] = (scale.x(low), scale.x(high))
    drawn["left"], drawn["right"] = low < scale.low, high > scale.high
    if scale.low <= value <= scale.high:
        drawn["point"] = scale.x(value)
    return drawn


def row_interval(row: Row) -> Interval | None:
    """Return a row's difference from the baseline with its ends; None if they are not known."""
    against = comparison_of(row)
    if against is None or against.ci_low is None or against.ci_high is None:
        return None
    return against.difference, against.ci_low, against.ci_high


def drawn_rows(table: Table) -> tuple[Scale | None, list[dict[str, Any]]]:
    """Return the scale of a table and the drawing of each of its rows; none if nothing was
    compared."""
    if not table.comparisons or table.head is None:
        return None, []
    intervals = [row_interval(row) for row in table.rows]
    scale = interval_scale([interval for interval in intervals if interval is not None])
    if scale is None:
        return None, []
    drawn = []
    for row, interval in zip(table.rows, intervals, strict=True):
        if row.is_baseline:
            drawn.append(draw_interval((0.0, 0.0, 0.0), scale, BASELINE))
            continue
        against = comparison_of(row)
        verdict = None if against is None else against.verdict
        drawn.append(draw_interval(interval, scale, verdict or ""))
    return scale, drawn
