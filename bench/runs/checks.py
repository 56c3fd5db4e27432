"""Checks of one JSON value each: ``(value, path) -> what the dataclass holds``. They raise RecordDamaged, naming the path."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from bench.errors import RecordDamaged

_BIGGEST = sys.float_info.max
Check = Callable[[Any, str], Any]


def kind(value: Any) -> str:
    if isinstance(value, str):
        return f"text {value[:40]!r}"
    names = {dict: "an object", list: "a list", type(None): "null"}
    return names.get(type(value)) or f"{type(value).__name__} {str(value)[:40]}"


def wrong(path: str, expected: str, value: Any) -> RecordDamaged:
    return RecordDamaged(f"{path}: expected {expected}, found {kind(value)}")


def text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise wrong(path, "text", value)
    return value


def name(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise wrong(path, "a name", value)
    return value


def pattern(expression: re.Pattern[str], what: str) -> Check:
    def check(value: Any, path: str) -> str:
        if not isinstance(value, str) or not expression.search(value):
            raise wrong(path, what, value)
        return value

    return check


def one_of(names: tuple[str, ...]) -> Check:
    def check(value: Any, path: str) -> str:
        if not isinstance(value, str) or value not in names:
            raise wrong(path, " or ".join(names), value)
        return value

    return check


def number(value: Any, path: str) -> float:
    # one comparison refuses NaN, infinities and integers too long for a float
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_BIGGEST <= value <= _BIGGEST:
        raise wrong(path, "a finite number", value)
    return float(value)


def natural(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or not 0 <= value <= 2**63 - 1:
        raise wrong(path, "a whole number from 0 on", value)
    return int(value)


def at_least_zero(value: Any, path: str) -> float:
    found = number(value, path)
    if found < 0:
        raise wrong(path, "a number from 0 on", value)
    return found


def free(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong(path, "an object", value)
    return value


def anything(value: Any, path: str) -> Any:
    return value


def maybe(check: Check) -> Check:
    return lambda value, path: None if value is None else check(value, path)


def each(names: str, check: Check) -> dict[str, Check]:
    """The same check for several fields, named in one line."""
    return dict.fromkeys(names.split(), check)
