"""What a field of a page says, beside the field."""

from __future__ import annotations


def says(text: str) -> dict[str, str]:
    """As the metadata of a dataclass field."""
    return {"help": text}
