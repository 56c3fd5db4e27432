"""How things are called on published pages: no path of the publisher's machine, and addresses that stay from version to version."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container

GENERIC = ("model", "checkpoint", "snapshot", "encoder", "")
"""Last parts of a path that say nothing: the folder above says more."""
LONGEST = 100  # characters of an address


def public_name(backbone: str) -> str:
    """A backbone by its own name: that of the hub as it is, of a local folder its last part that says something."""
    if not _is_path(backbone):
        return backbone
    parts = [part for part in re.split(r"[/\\]+", backbone) if part not in (".", "..", "~") and not part.endswith(":")]
    named = [part for part in parts if part not in GENERIC]
    return named[-1] if named else "local folder"


def _is_path(backbone: str) -> bool:
    """A hub name has at most one slash; a folder is given absolutely, from here, or through several."""
    return backbone.startswith(("/", ".", "~", "\\")) or bool(re.match(r"[A-Za-z]:[\\/]", backbone)) or backbone.count("/") > 1


def slug(*parts: str | None) -> str:
    """Lower-case letters, digits and hyphens: "senteval-all/1" -> "senteval-all-1"; what has none of them is left out."""
    text = unicodedata.normalize("NFKD", " ".join(part for part in parts if part)).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")[:LONGEST].strip("-") or "table"


def unused(name: str, taken: Container[str]) -> str:
    """``name``, with a number where it is taken."""
    made, number = name, 2
    while made in taken:
        made, number = f"{name}-{number}", number + 1
    return made
