"""Read options from the command line, Python or a plan into fields of RunConfig."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from bench.base.errors import BenchError
from bench.base.typed import convert_typed
from bench.method.config import KINDS
from bench.run.seeds import parse_seeds

Say = Callable[[str, Any], str]
"""Says how a field's value was given: ``--chunk 0``, ``chunk=0``; a recipe value is "set.KEY"."""
MAY_BE_EMPTY = ("variant", "command")
"""Fields with a meaning for an empty text; for any other it is a mistake, such as a variable of a
shell that is not set.
"""


def read_fields(
    given: Mapping[str, Any], say: Say, *, strict: bool = True, hint: str = ""
) -> dict[str, Any]:
    """Return the values of fields that a person gave, each with its type.

    Recipe values may be numbers and lists. ``strict``: False for the texts of a command line, in
    which "8" is a number. Raises BenchError, which begins with ``say`` of the value, for one of
    another type or out of its range.
    """
    fields: dict[str, Any] = {}
    for name, value in given.items():
        try:
            if name == "overrides":
                fields[name] = _recipe_texts(value, say)
            elif name == "seeds":
                fields[name] = parse_seeds(value)
            elif isinstance(value, str) and not value and name not in MAY_BE_EMPTY:
                raise ValueError("expected a value")
            else:
                fields[name] = convert_typed(value, KINDS[name], strict=strict)
        except ValueError as error:
            raise BenchError(f"{say(name, value)}: {error}", hint or None) from None
    if "compile" in fields.get("overrides", {}):  # no recipe value: it holds for all runs
        text = fields["overrides"].pop("compile")
        try:
            fields["compile"] = convert_typed(text, bool, strict=False)
        except ValueError as error:
            raise BenchError(f"{say('set.compile', text)}: {error}", hint or None) from None
    return fields


def _recipe_texts(values: Any, say: Say) -> dict[str, str]:
    if not isinstance(values, Mapping):
        raise BenchError(f"{say('set', values)}: expected recipe values, KEY = VALUE")
    return {key: as_typed(value) for key, value in values.items()}


def as_typed(value: Any) -> str:
    """Return a recipe value as a user types it after ``--set KEY=``: a list is a series, and a
    comma in one of its values is escaped.
    """
    if isinstance(value, list):
        return ",".join(as_typed(item).replace(",", "\\,") for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def combinations_of(overrides: Mapping[str, str]) -> list[dict[str, str]]:
    """Return every combination of the values of ``--set``; the last key changes first.

    {"a": "1,2", "b": "3"} -> a=1 b=3, a=2 b=3. A comma that belongs to a value is written ``\\,``;
    the name of a file or folder that exists is one value. Raises BenchError if there is nothing
    between two commas.
    """
    series = [_values_of(key, text) for key, text in overrides.items()]
    return [dict(zip(overrides, values, strict=True)) for values in product(*series)]


def _values_of(key: str, text: str) -> list[str]:
    if os.path.exists(os.path.expanduser(text)):
        return [text]
    values = [value.replace("\\,", ",") for value in re.split(r"(?<!\\),", text)]
    if len(values) > 1 and not all(map(str.strip, values)):
        raise BenchError(
            f"--set {key}={text}: a value is missing between two commas",
            f"--set {key}=A,B,C, or \\, for a comma of the value",
        )
    if len(values) == 1:
        return values
    return [value.strip() for value in values]
