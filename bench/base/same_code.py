"""Earlier code of methods and suites that computes the same numbers as today's.

tools/same_numbers.py writes ``methods/same_numbers.toml``, tools/same_suites.py
``bench/score/same_numbers.toml``.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from bench.base.import_scope import own_packages

TABLE = "same_numbers.toml"


def equivalent_code(sha256: str | None) -> str | None:
    """Return the hash that compares a method's code: runs with equal results have the same code.

    If the code with this hash had the same numbers as today's, it is the hash of today's code.
    """
    if sha256 is None:
        return None
    return _today().get(sha256, sha256)


def name_of_code(sha256: str | None) -> str | None:
    """Return the hash that names a method's code in fingerprints.

    It stays when code is rewritten and its numbers are equal, so that ids of runs stay, too.
    Code that the table does not know is named by its own hash.
    """
    if sha256 is None:
        return None
    return _names().get(sha256, sha256)


def suite_code_of(suite: str, sha256: str | None) -> str | None:
    """Return the hash of a suite's code for comparisons: today's, if the code with this hash gave
    the same scores."""
    return sha256 if sha256 is None else _suites_today().get((suite, sha256), sha256)


@cache
def _suites_today() -> dict[tuple[str, str], str]:
    """Return (suite, hash of earlier code) -> hash of the code that gives the same scores today."""
    folder = own_packages().get("bench.score.suites")
    if folder is None or not (folder.parent / TABLE).is_file():
        return {}
    today: dict[tuple[str, str], str] = {}
    for suite, entry in tomllib.loads((folder.parent / TABLE).read_text("utf-8")).items():
        for earlier in entry["earlier"]:
            today[suite, earlier] = entry["code"]
    return today


@cache
def _today() -> dict[str, str]:
    """Return hash of earlier code -> hash of the code that has the same numbers today."""
    today: dict[str, str] = {}
    for module in _methods_table().values():
        for earlier in module["earlier"]:
            today[earlier] = module["code"]
    return today


@cache
def _names() -> dict[str, str]:
    """Return hash of code, today's or earlier -> hash that names it in fingerprints."""
    names: dict[str, str] = {}
    for module in _methods_table().values():
        for code in (module["code"], *module["earlier"]):
            names[code] = module["named"]
    return names


def _methods_table() -> dict[str, dict[str, Any]]:
    folder = own_packages().get("bench.methods")
    if folder is None or not (folder / TABLE).is_file():
        return {}
    return tomllib.loads((folder / TABLE).read_text("utf-8"))
