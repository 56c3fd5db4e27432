"""JSON objects in files, with one clear error if a file is missing or damaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.base.reading import SETTINGS_BYTES, read_plain_file


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object as JSON, one field a line."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_run_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a run folder, following no link.

    Raises BenchError, naming the file, if it is missing or damaged.
    """
    try:
        content = json.loads(read_plain_file(path, SETTINGS_BYTES))
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise BenchError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content
