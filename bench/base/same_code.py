"""Which earlier code of a method computes the same numbers as today's:
``methods/same_numbers.toml``, which tools/same_numbers.py writes.
"""

from __future__ import annotations

import tomllib
from functools import cache

from bench.base.import_scope import own_packages

TABLE = "same_numbers.toml"


def code_of(sha256: str | None) -> str | None:
    """The hash that stands for a method's code in comparisons: of today's code, if the code of this
    hash had the same numbers.

    Two runs are of the same code if this is equal for both.
    """
    return sha256 if sha256 is None else _today().get(sha256, sha256)


@cache
def _today() -> dict[str, str]:
    """Hash of earlier code -> hash of the code that has the same numbers today."""
    folder = own_packages().get("bench.methods")
    if folder is None or not (folder / TABLE).is_file():
        return {}
    today: dict[str, str] = {}
    for module in tomllib.loads((folder / TABLE).read_text("utf-8")).values():
        for earlier in module["earlier"]:
            today[earlier] = module["code"]
    return today
