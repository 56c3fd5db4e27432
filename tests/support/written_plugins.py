"""A plugin and the files next to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_plugin(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files by name, and return the path of mine.py among them."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "mine.py"
