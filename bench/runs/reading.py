"""Reading one record's file, whoever wrote it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from bench.base.errors import RecordDamaged
from bench.runs.record import RunRecord

LARGEST = 1 << 26  # bytes of a record; real ones have some tens of kilobytes


def read_record(path: Path) -> RunRecord:
    """The record in one file. Raises RecordDamaged, naming the file and the field."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # reading a pipe would wait for ever
            raise RecordDamaged("not a file")
        if found.st_size > LARGEST:
            raise RecordDamaged(f"{found.st_size:,} bytes are too many for a record")
        return RunRecord.from_json(loads(path.read_bytes()))
    except RecordDamaged as error:
        what, hint = error.message, error.hint
    except (ValueError, RecursionError) as error:
        what, hint = f"not JSON: {error}", None
    except OSError as error:
        what, hint = str(error.strerror), None
    # the message may quote what a damaged file holds: nothing in it may move the cursor
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in f"{path}: {what}")
    raise RecordDamaged(line, hint)


_SHAPES = bytes(ord("0") if chr(i).isdecimal() and i < 128 else ord("e") if chr(i) in "eE" else ord(".") for i in range(256))


def _perhaps_too_large(data: bytes) -> bool:
    """Whether anything looks like a number that we refuse, within text or as a number: looking at each number takes three times as
    long as all else, and a pattern twice as long as this."""
    shapes = data.translate(_SHAPES, b"+")
    return b"NaN" in data or b"Infinity" in data or b"0e000" in shapes or b"0" * 300 in shapes


def loads(text: str | bytes) -> Any:
    """JSON, without numbers that would be infinite or that nobody could print. Raises ValueError, RecursionError."""
    data, words = (text.encode("utf-8", "surrogatepass"), text) if isinstance(text, str) else (text, text.decode())
    if not _perhaps_too_large(data):
        return json.loads(words)
    return json.loads(words, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def _whole(text: str) -> int:
    if len(text) > 300:  # more than a float can hold
        raise ValueError(f"{text[:20]}... has {len(text)} digits")
    return int(text)
