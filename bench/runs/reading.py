"""Reading one record's file, whoever wrote it."""

from __future__ import annotations

import contextlib
import json
import stat
from pathlib import Path
from typing import Any

import msgspec

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
        data = path.read_bytes()
        with contextlib.suppress(msgspec.DecodeError):
            if not _has_long_number(data):
                return RunRecord.decode(data)
        return RunRecord.from_json(loads(data))  # an older schema, or damaged: this says where
    except RecordDamaged as error:
        what, hint = error.message, error.hint
    except (ValueError, RecursionError) as error:
        what, hint = f"not JSON: {error}", None
    except OSError as error:
        what, hint = str(error.strerror), None
    # the message may quote what a damaged file holds: nothing in it may move the cursor
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in f"{path}: {what}")
    raise RecordDamaged(line, hint)


_DIGITS = bytes(ord("0") if chr(i).isdecimal() and i < 128 else ord(".") for i in range(256))


def _has_long_number(data: bytes) -> bool:
    """Whether a number may be too long for a float; looking at each number takes three times as long as reading the record."""
    return b"0" * 300 in data.translate(_DIGITS)


def loads(text: str | bytes) -> Any:
    """JSON, without numbers that would be infinite or that nobody could print. Raises ValueError, RecursionError."""
    words = text if isinstance(text, str) else text.decode()
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
