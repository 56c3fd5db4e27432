"""Names that a user types: ``FILE:COLUMN,COLUMN``, and names of columns."""

from __future__ import annotations

import re

from bench.base.files import expand_home

BY_HASH = "sha256:"
"""Stands before the hash of a text, which may have any file name."""
DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def split_columns(text: str) -> tuple[str, tuple[str, ...]]:
    """Split ``FILE:COLUMN,COLUMN`` at the first colon that is not part of the path; () if there is
    no such colon.

    A drive and ``sha256:`` have a colon of their own. A path that exists may hold more of them.
    """
    start = 0
    if text.startswith(BY_HASH):
        start = len(BY_HASH)
    elif DRIVE.match(text):
        start = 2
    colons = [at for at, character in enumerate(text) if character == ":" and at >= start]
    if not colons:
        return text, ()
    split = colons[0]
    for colon in colons:
        if path_exists(text[:colon]):
            split = colon
    return text[:split], tuple(part.strip() for part in text[split + 1 :].split(","))


def path_exists(text: str) -> bool:
    """Say if there is a file or folder of that name. Raises nothing for any text."""
    try:
        return bool(text) and expand_home(text).exists()
    except (OSError, ValueError):  # too long for a path, or a NUL
        return False


def plain_name(name: str) -> str:
    """Return a name in small letters, without blanks, dots, hyphens and underscores."""
    return re.sub(r"[\s._\-\ufeff]+", "", name).lower()
