"""The blocks of code on a page of the documentation."""

from __future__ import annotations

import re
from pathlib import Path


def code_blocks(page: Path, language: str) -> list[str]:
    """Return the texts of a page's blocks in a language, in their order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)
