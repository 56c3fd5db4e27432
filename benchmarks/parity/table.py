"""Two sets of named tensors compared, and the table of it. Knows neither program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Arrays = dict[str, np.ndarray]
KINDS = {
    "tokens": "tokens",
    "embeddings": "embeddings",
    "loss": "loss",
    "gradient": "gradient",
    "after": "after an AdamW step",
}
TOLERANCE = 1e-11
"""Relative to a tensor's largest number, or to 1 if that is smaller: the rounding of some 1,000
operations in float64."""


@dataclass(frozen=True)
class Difference:
    """The largest difference of one tensor; ``scale`` is its largest number (theirs)."""

    name: str
    largest: float
    scale: float

    def within(self, tolerance: float) -> bool:
        return self.largest <= tolerance * max(1.0, self.scale)


def differences(
    theirs: Mapping[str, np.ndarray], ours: Mapping[str, np.ndarray]
) -> list[Difference]:
    """Return one entry a tensor, in their order.

    A tensor that only one side has, another shape or a NaN differs infinitely.
    """
    found = []
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        a, b = theirs.get(name), ours.get(name)
        if (
            a is None
            or b is None
            or a.shape != b.shape
            or not (np.isfinite(a).all() and np.isfinite(b).all())
        ):
            found.append(Difference(name, float("inf"), 0.0))
        else:
            scale = float(np.abs(a).max(initial=0.0))
            found.append(Difference(name, float(np.abs(a - b).max(initial=0.0)), scale))
    return found


def tokens(ids: np.ndarray, mask: np.ndarray) -> list[list[int]]:
    """The rows of padded ids without their padding."""
    return [row[kept.astype(bool)].tolist() for row, kept in zip(ids, mask, strict=True)]


def heading() -> str:
    return f"{'case':40} {'what':27} {'largest difference':>18} {'largest number':>14}  where"


def lines(title: str, compared: Sequence[Difference], tolerance: float, every: bool) -> list[str]:
    """The rows of one case: the worst tensor of each kind, or ``every`` one."""
    groups: dict[str, list[Difference]] = {}
    for difference in compared:
        kind = difference.name.split("/")[0]
        groups.setdefault(difference.name if kind == "embeddings" else kind, []).append(difference)
    rows = []
    for group in sorted(groups, key=lambda name: list(KINDS).index(name.split("/")[0])):
        members = sorted(groups[group], key=lambda d: -d.largest / max(1.0, d.scale))
        kind, _, rest = group.partition("/")
        what = f"{KINDS[kind]} {rest}".strip() + (f" ({len(members)})" if len(members) > 1 else "")
        shown = members if every else members[:1]
        for difference in shown:
            good = difference.within(tolerance)
            flag = "" if good else " DIFFERS"
            where = ""
            if not rest and not (good and kind == "tokens"):
                where = difference.name.partition("/")[2]
            numbers = f"{difference.largest:18.1e} {difference.scale:14.3g}"
            rows.append(f"{'' if rows else title:40} {what:27} {numbers}  {where}{flag}".rstrip())
    return rows


def print_cases(cases: Iterable[tuple[str, Arrays, Arrays]], every: bool) -> bool:
    """Print the table of (title, theirs, ours); return True if all of them agree."""
    print(f"float64, tolerance {TOLERANCE:g}\n\n{heading()}")
    same = True
    for title, theirs, ours in cases:
        compared = differences(theirs, ours)
        print(*lines(title, compared, TOLERANCE, every), sep="\n")
        same = same and all(one.within(TOLERANCE) for one in compared)
    return same
