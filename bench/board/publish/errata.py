"""The errata of versions: ``ERRATA.md`` next to them, written by hand.

A heading names versions and a date, ``## v5, v6 (2026-11-29)``; pages print the sentence in bold
letters that begins its section. A table has the commits of versions that have left the tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.base.reading import PLAN_BYTES, read_plain_file
from bench.base.text import slug

ERRATA = "ERRATA.md"
_SECTION = re.compile(
    r"^## (?P<names>v[^(\n]*) \((?P<date>[\d-]+)\)\n+(?:\*\*(?P<said>.+?)\*\*)?", re.M
)


_CHECKOUT = re.compile(
    r"^\| (?P<name>v[0-9]+) \| `(?P<command>git worktree add \S+ (?P<commit>[0-9a-f]+))` \|", re.M
)


class Erratum(NamedTuple):
    """What turned out to be wrong with some versions, on one day."""

    versions: Sequence[str]
    date: str
    # of its section in ERRATA.md
    anchor: str
    # a sentence without its full stop; "" if the section begins with none
    said: str


def read_errata(out: Path) -> list[Erratum]:
    """Read the errata next to the versions, newest first; none without a readable ERRATA.md."""
    errata = []
    for found in _SECTION.finditer(_read(out)):
        names, date = found["names"], found["date"]
        said = (found["said"] or "").removesuffix(".")
        errata.append(Erratum(names.split(", "), date, slug(names, date), said))
    return sorted(errata, key=lambda erratum: erratum.date, reverse=True)


def names_versions_gone(out: Path) -> bool:
    """Return True if the errata name the commit of a version that has left the tree."""
    return any(not (out / found["name"]).exists() for found in _CHECKOUT.finditer(_read(out)))


def find_checkout(out: Path, version: str) -> tuple[str, str] | None:
    """Return the commit that has a version which has left the tree, and the command that checks it
    out; None if the errata name none."""
    for found in _CHECKOUT.finditer(_read(out)):
        if found["name"] == version:
            return found["commit"], found["command"]
    return None


def _read(out: Path) -> str:
    """Return the text of the errata; "" without a readable file."""
    try:
        return read_plain_file(out / ERRATA, PLAN_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
