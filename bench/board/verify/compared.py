"""Compares what is written with what was computed again, up to the last digits."""

from __future__ import annotations

import math
from collections.abc import Container
from os.path import commonprefix
from typing import Any

ABSOLUTE, RELATIVE = 1e-6, 1e-9
"""Libraries of linear algebra add in different orders; a millionth of a point is not a difference.
"""

SHOWN, BEFORE = 60, 20
"""Characters of a text that are shown, and how many of them are before the first that differs."""


def close(written: Any, again: Any) -> bool:
    """Say if two numbers are equal up to the last digits, which differ between machines."""
    return (
        isinstance(written, int | float)
        and isinstance(again, int | float)
        and math.isclose(written, again, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    )


def first_difference(
    written: Any, again: Any, path: str, source: str, ignored: Container[str] = ()
) -> str:
    """Describe the first difference of two JSON values; "" if there is none.

    An older file may hold less than what is computed again, but never more. ``source``: what it is
    computed from: "its predictions". ``ignored``: keys of objects that are not compared.
    """
    if isinstance(written, dict) and isinstance(again, dict):
        more = [str(key) for key in written if key not in again and key not in ignored]
        if more:
            return f"{path}.{more[0][:60]} is recorded, {source} do not give it"
        pairs = [
            (f"{path}.{key}", written[key], again[key])
            for key in again
            if key in written and key not in ignored
        ]
    elif isinstance(written, list) and isinstance(again, list) and len(written) == len(again):
        pairs = [(f"{path}[{i}]", written[i], again[i]) for i in range(len(again))]
    else:
        is_same = written == again
        if isinstance(again, float):
            is_same = close(written, again)
        if is_same:
            return ""
        shown, given = _apart(str(written), str(again))
        return f"{path}: {shown} is recorded, {source} give {given}"
    for at, written_part, part_again in pairs:
        difference = first_difference(written_part, part_again, at, source, ignored)
        if difference:
            return difference
    return ""


def _apart(one: str, other: str) -> tuple[str, str]:
    """Cut two texts to the part in which they differ first."""
    if max(len(one), len(other)) <= SHOWN:
        return one, other
    start = max(0, len(commonprefix([one, other])) - BEFORE)
    before = "..." if start else ""
    return before + one[start:][:SHOWN], before + other[start:][:SHOWN]
