"""Where labels go beside their points so that none lies on another, on a point, or outside: numbers in, numbers out.

All lengths are in drawing units, x to the right, y upwards.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NARROW, WIDE = frozenset("fijlrt.,:;'|!I()[]{}-/\\ 1*`\""), frozenset("mwMW@%&…—")
DISTANCES = (5.0, 9.0, 15.0, 22.0, 30.0, 40.0)
"""From the point's edge to the label; beyond the second one a thin line joins the two."""
JOINED = 12.0
ROUND = 2  # sweeps in which each label may still move
APART = 5.0  # between two labels side by side, which would else read as one
SPECK = 2.0  # radius of a point without a label
KEPT = 24  # places of a label that are looked at, the best ones
TRIES = 5  # orders in which labels choose


@dataclass(frozen=True)
class Box:
    """A rectangle: left, low, right, high."""

    left: float
    low: float
    right: float
    high: float

    def within(self, frame: Box) -> bool:
        return (
            self.left >= frame.left
            and self.right <= frame.right
            and self.low >= frame.low
            and self.high <= frame.high
        )


@dataclass(frozen=True)
class LabelPlace:
    """Where a label stands: ``x`` of its ``anchor`` ("start", "middle", "end"), ``y`` of its baseline."""

    x: float
    y: float
    anchor: str
    box: Box
    lead: tuple[Box, ...]  # along the thin line to its point; empty where it stands beside it
    hull: Box  # around the label and its line


Options = list[tuple[LabelPlace, float]]  # places and what speaks against each


def width(text: str, size: float) -> float:
    """About how wide ``text`` is in a sans-serif font: rather too wide than too narrow."""
    return size * sum(_em(c) for c in text)


def _em(c: str) -> float:
    if c in NARROW:
        return 0.42
    if c in WIDE:
        return 1.0
    if unicodedata.east_asian_width(c) in "WF":
        return 1.05
    return 0.72 if c.isupper() else 0.64


def place_labels(
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    frame: Box,
    *,
    size: float = 12.0,
    radius: float = 4.0,
    avoid: Sequence[Box] = (),
    specks: Sequence[tuple[float, float]] = (),
) -> list[LabelPlace | None]:
    """A place for each text beside its point, None where there is no free one; earlier texts choose first.

    No label overlaps another or a point, or leaves the ``frame``; ``avoid`` (error bars, lines) is kept clear where possible. An empty
    text needs no place. ``specks`` are further points: small, without labels.
    """
    dots_P4 = _sides(
        [Box(x - radius, y - radius, x + radius, y + radius) for x, y in points]
        + [Box(x - SPECK, y - SPECK, x + SPECK, y + SPECK) for x, y in specks]
    )
    options = [
        _options(point, text, frame, size, radius, i, dots_P4, _sides(avoid)) if text else []
        for i, (point, text) in enumerate(zip(points, texts, strict=True))
    ]
    search = _Search(options)
    order = [i for i, possible in enumerate(options) if possible]
    best: dict[int, int] = {}
    for k in range(TRIES):
        found = search.arranged(order)
        late = [i for i in order if i not in found]
        if k == 0 or _loss(late) < _loss([i for i in order if i not in best]):
            best = found
        if not late:
            break
        order = [
            *late,
            *(i for i in order if i not in late),
        ]  # those without a place choose first in the next try
    return [search.places[best[i]] if i in best else None for i in range(len(points))]


def _loss(missing: Sequence[int]) -> float:
    """The fewer the better, and the first ones matter most."""
    return sum(1.0 + 3.0 / (1 + i) for i in missing)


class _Search:
    """All places of all labels, and which of them exclude each other."""

    def __init__(self, options: Sequence[Options]) -> None:
        self.places = [place for possible in options for place, _ in possible]
        self.costs_K = np.array([cost for possible in options for _, cost in possible])
        owners = [i for i, possible in enumerate(options) for _ in possible]
        self.own = {
            i: np.array([k for k, owner in enumerate(owners) if owner == i], dtype=int)
            for i in set(owners)
        }
        boxes_K4, hulls_K4 = (
            _sides(boxes) for boxes in ([p.box for p in self.places], [p.hull for p in self.places])
        )
        self.areas_KK = _overlaps(boxes_K4 + [-APART, 0, APART, 0], boxes_K4)
        self.collide_KK = self.areas_KK > 0
        near_KK = np.triu(_overlaps(hulls_K4, hulls_K4) > 0) & ~self.collide_KK
        for a, b in np.argwhere(near_KK):
            if owners[a] != owners[b] and _cross(self.places[a], self.places[b]):
                self.collide_KK[a, b] = self.collide_KK[b, a] = True

    def arranged(self, order: Sequence[int]) -> dict[int, int]:
        """Each label at its best free place, in this order; then each may move, now that all others have one."""
        chosen: dict[int, int] = {}
        for sweep in range(ROUND + 1):
            for rank, i in enumerate(order):
                own, taken = (
                    self.own[i],
                    np.array([k for label, k in chosen.items() if label != i], dtype=int),
                )
                free = own[~self.collide_KK[np.ix_(own, taken)].any(axis=1)]
                costs = self.costs_K[free]
                if sweep == 0:  # leave room for those that come after: their best places come first
                    costs = costs + 0.1 * self.areas_KK[
                        np.ix_(
                            free, np.array([self.own[k][0] for k in order[rank + 1 :]], dtype=int)
                        )
                    ].sum(axis=1)
                chosen.pop(i, None)
                if len(free):
                    chosen[i] = int(free[np.argmin(costs)])
        return chosen


def _sides(boxes: Sequence[Box]) -> np.ndarray:
    """(K, 4): left, low, right, high."""
    return np.array([(b.left, b.low, b.right, b.high) for b in boxes], dtype=float).reshape(-1, 4)


def _overlaps(boxes_J4: np.ndarray, boxes_K4: np.ndarray) -> np.ndarray:
    """(J, K): the area that two boxes both cover."""
    low_JK2 = np.maximum(boxes_J4[:, None, :2], boxes_K4[None, :, :2])
    high_JK2 = np.minimum(boxes_J4[:, None, 2:], boxes_K4[None, :, 2:])
    return np.clip(high_JK2 - low_JK2, 0, None).prod(axis=2)


def _options(
    point: tuple[float, float],
    text: str,
    frame: Box,
    size: float,
    radius: float,
    own: int,
    dots_P4: np.ndarray,
    avoid_A4: np.ndarray,
) -> Options:
    """The possible places of one label, best first: within the frame, covering no point; the line to it covers no other point."""
    others_P4 = np.delete(dots_P4, own, axis=0)
    found = []
    for place in _around(point, text, size, radius):
        if not place.box.within(frame):
            continue
        box_14 = _sides([place.box])
        if _overlaps(box_14, dots_P4).any() or (
            place.lead and _overlaps(_sides(place.lead), others_P4).any()
        ):
            continue
        away = abs(place.x - point[0]) + abs((place.box.low + place.box.high) / 2 - point[1])
        cost = (
            away
            + 3.0 * float(_overlaps(box_14, avoid_A4).sum())
            + {"start": 0.0, "end": 1.0, "middle": 2.0}[place.anchor]
        )
        found.append((place, cost))
    return sorted(found, key=lambda label: label[1])[:KEPT]


def _around(point: tuple[float, float], text: str, size: float, radius: float) -> list[LabelPlace]:
    long, x, y = width(text, size), *point
    middle, low, high = (
        y - 0.35 * size,
        0.25 * size,
        0.85 * size,
    )  # of a line with its middle at y; below and above a baseline
    made = []
    for far in DISTANCES:
        d, slant = radius + far, 0.7 * (radius + far)
        for dx, base, anchor in (
            (d, middle, "start"),
            (-d, middle, "end"),
            (0.0, y + d - 2, "middle"),
            (0.0, y - d - high + 2, "middle"),
            (slant, y + slant - 2, "start"),
            (slant, y - slant - high + 4, "start"),
            (-slant, y + slant - 2, "end"),
            (-slant, y - slant - high + 4, "end"),
        ):
            at = x + dx
            left = at - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
            box = Box(left, base - low, left + long, base + high)
            line = _along(*lead(point, box, radius)) if far > JOINED else ()
            made.append(LabelPlace(at, base, anchor, box, line, _around_all((box, *line))))
    return made


def lead(
    point: tuple[float, float], box: Box, radius: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of the thin line from a point's edge to its label."""
    x, y = min(max(point[0], box.left), box.right), min(max(point[1], box.low), box.high)
    long = max(math.hypot(x - point[0], y - point[1]), 1e-9)
    part = (radius + 1) / long
    return (point[0] + (x - point[0]) * part, point[1] + (y - point[1]) * part), (x, y)


def _along(begin: tuple[float, float], end: tuple[float, float]) -> tuple[Box, ...]:
    """Small boxes along a line."""
    many = max(2, math.ceil(math.dist(begin, end) / 3))
    spots = [
        (begin[0] + (end[0] - begin[0]) * k / many, begin[1] + (end[1] - begin[1]) * k / many)
        for k in range(many)
    ]
    return tuple(Box(x - 0.8, y - 0.8, x + 0.8, y + 0.8) for x, y in spots)


def _around_all(boxes: Sequence[Box]) -> Box:
    return Box(
        min(b.left for b in boxes),
        min(b.low for b in boxes),
        max(b.right for b in boxes),
        max(b.high for b in boxes),
    )


def _cross(place: LabelPlace, other: LabelPlace) -> bool:
    """Whether the line of one crosses the label or the line of the other."""
    boxes, lines = _sides([place.box, *place.lead]), _sides([other.box, *other.lead])
    return bool(_overlaps(boxes, lines).any())  # the two labels are known not to overlap


def spread_out(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Heights as near to the ``wanted`` ones as possible, in the same order, at least ``gap`` apart, within ``low`` to ``high``.

    Where there is not room enough for all the gap shrinks.
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[float]] = []  # [sum of the lowest member's wished heights, members]
    for k, i in enumerate(order):
        blocks.append([wanted[i] - k * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    heights = [0.0] * len(wanted)
    bases = [total / count for total, count in blocks for _ in range(int(count))]
    room = high - gap * (len(wanted) - 1)
    for k, i in enumerate(order):
        heights[i] = min(max(bases[k], low), max(room, low)) + k * gap
    return heights
