"""How values of a recipe are written on pages."""

from __future__ import annotations

import json
from typing import Any


def value_words(value: Any) -> str:
    """ "none", "true", 3e-05 as "3e-5"; text as it is, lists as JSON."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}".replace("e-0", "e-").replace("e+0", "e+")
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)
