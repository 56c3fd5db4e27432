"""Cells of a table as texts and numbers, by one rule for training text and evaluation data."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from bench.base.errors import CorpusError, printable
from bench.data.reading.lines import NOT_TEXT

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
TRUTH = {"true": 1.0, "false": 0.0}


def text_of(value: Any, place: str, column: str, expected: str = "a text") -> str:
    """Return a cell as a text; bytes are UTF-8, as Spark and pandas write texts into Parquet.

    ``place`` names file and row in messages, ``expected`` the possible content of the column.
    Raises CorpusError for anything that is no text.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        raise CorpusError(
            f"{place}: '{column}' is {shown(value)}, expected {expected}",
            "drop the row, or name another column",
        )
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        raise CorpusError(
            f"{place}: '{column}' has bytes that are not UTF-8 text",
            "decode the column before it is written, or name another column",
        ) from None
    if NOT_TEXT.search(text):
        raise CorpusError(f"{place} has a NUL character")
    return text


def number_of(value: Any, place: str, what: str, otherwise: str) -> float:
    """Return a cell as a finite number; true and false are 1 and 0.

    ``what``: "score" or "rating"; ``otherwise``: the hint for a cell without a number. Raises
    CorpusError.
    """
    word = str(value).strip()
    try:
        number = TRUTH[word.lower()] if word.lower() in TRUTH else float(value)
    except (TypeError, ValueError, OverflowError):  # an integer may be too large for a float
        number = math.nan
    if math.isfinite(number):
        return number
    hint = otherwise
    if DECIMAL_COMMA.fullmatch(word):
        hint = f"write a decimal point: {word.replace(',', '.')}"
    raise CorpusError(f"{place} has the {what} {value!r:.40}; expected a number", hint)


def shown(value: Any) -> str:
    """Return a value for a message, as JSON if possible: null, 7, ["a", "b"]."""
    return printable(json.dumps(value, default=str, ensure_ascii=False)[:40])
