"""Find earlier code of a method that computes the same numbers as today's.

``methods/same_numbers.toml`` lists it; tools/same_numbers.py writes that file.
"""

from __future__ import annotations

import tomllib
from functools import cache

from bench.base.import_scope import own_packages

TABLE = "same_numbers.toml"


def equivalent_code(sha256: str | None) -> str | None:
    """Return the hash that compares a method's code: runs with equal results have the same code.

    If the code with this hash had the same numbers as today's, it is the hash of today's code.
    """
    if sha256 is None:
        return None
    return _today().get(sha256, sha256)


@cache
def _today() -> dict[str, str]:
    """Return hash of earlier code -> hash of the code that has the same numbers today."""
    folder = own_packages().get("bench.methods")
    if folder is None or not (folder / TABLE).is_file():
        return {}
    today: dict[str, str] = {}
    for module in tomllib.loads((folder / TABLE).read_text("utf-8")).values():
        for earlier in module["earlier"]:
            today[earlier] = module["code"]
    return today
