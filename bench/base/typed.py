"""Values that a person typed, as msgspec converts them, and the words for those that it refuses.

The command line, keywords of Python and TOML files share them: so the same mistake gets the same
words in all three.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

Count = Annotated[int, Meta(ge=1)]
LARGEST_NUMBER = 2.0**64
"""Bound of numbers in a record: it admits any seed or count of 64 bits, and nothing that arithmetic
could make infinite.
"""


def convert_typed(value: Any, kind: Any, *, strict: bool = True) -> Any:
    """Return a value as the type ``kind``. ``strict`` is False for a text of the command line or
    the environment, which may spell a number or a truth value.

    Raises ValueError, "expected a whole number >= 1", for a value of another type or out of its
    range, and for a number that no record can hold.
    """
    try:
        converted = msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError:
        raise ValueError(f"expected {in_words(kind)}") from None
    if isinstance(converted, float) and not math.isfinite(converted):
        raise ValueError(f"expected {in_words(kind)}")
    if isinstance(converted, int | float) and abs(converted) > LARGEST_NUMBER:
        raise ValueError(f"expected {in_words(kind)} up to {LARGEST_NUMBER:.2g}")
    return converted


def in_words(kind: Any) -> str:
    """Say which values a type has: "a whole number >= 1", "auto, fp32 or bf16"."""
    return _words(inspect.type_info(kind))


def _words(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.UnionType):
        some = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
        if any(isinstance(part, inspect.FloatType) for part in some):
            some = [part for part in some if not isinstance(part, inspect.IntType)]
        return " or ".join(_words(part) for part in some)
    if isinstance(kind, inspect.LiteralType):
        *names, last = map(str, kind.values)
        return f"{', '.join(names)} or {last}"
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return _number_in_words(kind)
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        return f"a list in which each entry is {_words(kind.item_type)}"
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.StrType):
        return "a text"
    return "a table"


def _number_in_words(kind: inspect.IntType | inspect.FloatType) -> str:
    name = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
    limits = {">=": kind.ge, ">": kind.gt, "<=": kind.le, "<": kind.lt}
    bounds = [f"{sign} {limit:g}" for sign, limit in limits.items() if limit is not None]
    return " ".join([name, " and ".join(bounds)]).strip()
