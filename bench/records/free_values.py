"""Checks of the fields of a record that may hold any JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.base.errors import RecordDamaged, printable
from bench.base.typed import LARGEST_NUMBER

DEEPEST = 64
"""Objects and lists inside each other in a free field; real ones have four."""


def check_free_value(place: str, value: Any) -> None:
    """Raise RecordDamaged for a value with a fault, at ``place`` in the record."""
    problem = describe_problem(value)
    if problem:
        raise RecordDamaged(f"{place}: {problem}")


def describe_problem(value: Any) -> str:
    """Describe the fault of a free JSON value; "" if every number fits into sums and squares, and
    nothing is nested too deep.
    """
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                below.extend(item.values())
            elif kind is list:
                below.extend(item)
            elif (kind is float or kind is int) and not -LARGEST_NUMBER <= item <= LARGEST_NUMBER:
                return f"a number beyond {LARGEST_NUMBER:.3g}, more than 64 bits, or not finite"
        if not below:
            return ""
        level = below
    return f"more than {DEEPEST} objects or lists inside each other"


def check_determines(determines: Mapping[str, Any] | None) -> None:
    """Raise RecordDamaged for a part of the fingerprint's inputs that has another type.

    Parts that this version does not know may be anything.
    """
    if determines is None:
        return
    where = "provenance.determines"
    places = determines.get("places", {})
    if not isinstance(places, Mapping):
        raise RecordDamaged(f"{where}.places: expected an object of hashes")
    for key, content in places.items():
        if not isinstance(content, str | None):
            raise RecordDamaged(f"{where}.places.{printable(key)[:40]}: expected a text or null")
    for name in ("precision", "dev", "plugin"):
        if not isinstance(determines.get(name), str | None):
            raise RecordDamaged(f"{where}.{name}: expected a text")
    ranks = determines.get("ranks")
    if ranks is not None and not (type(ranks) is int and 1 <= ranks < 1 << 31):
        raise RecordDamaged(f"{where}.ranks: expected a number of processes")
