"""Finds absolute paths in records and searches, which may not be published."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from bench.base.errors import DataDamaged, printable
from bench.base.paths import find_path, find_path_in_command, path_name

HINT = "write only the name in the place of the path: no score or hash depends on it"


def paths_in(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, path) of every absolute path in a JSON value; keys of objects count, too."""
    if isinstance(value, str):
        for text in _readings(value):
            if where.rpartition(".")[2] == "command":
                found = find_path_in_command(text)
            else:
                found = find_path(text, is_prompt="prompt" in where)
            if found is not None:
                yield where, found
                break
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str) and any(map(find_path, _readings(key))):
                yield f"a key of {where or 'the object'}", key
            else:
                yield from paths_in(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from paths_in(item, f"{where}[{number}]")


def _readings(text: str) -> list[str]:
    """Return a text as it is, and as a reader or a browser takes it: with full-width letters as
    plain ones, and without the escapes of addresses ("%2Fhome").
    """
    readings = [text]
    if not text.isascii():
        readings.append(unicodedata.normalize("NFKC", text))
    if "%2f" in text.lower() or "%5c" in text.lower():
        readings.append(unquote(text))
    return readings


def refuse_paths(value: Any, what: str) -> None:
    """Raise DataDamaged for the first absolute path in a JSON value.

    Its message has only the field and the last part of the path: pages print it.
    """
    for where, path in paths_in(value):
        field = f"{what}: {where}" if where else what
        raise DataDamaged(
            f"{printable(field)[:120]} holds the absolute path of "
            f"'{printable(path_name(path))[:60]}'; "
            "what is published gives away no folder",
            HINT,
        )
