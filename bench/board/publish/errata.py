"""The errata of versions: ``ERRATA.md`` beside them, written by hand.

A heading names versions and a date, ``## v5, v6 (2026-11-29)``; a sentence in bold letters at the
beginning of its section is what the pages print of it.
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


class Erratum(NamedTuple):
    """What turned out to be wrong with some versions, on one day."""

    versions: Sequence[str]
    date: str
    # of its section in ERRATA.md
    anchor: str
    # a sentence without its full stop; "" if the section begins with none
    said: str


def read_errata(out: Path) -> list[Erratum]:
    """Read the errata beside the versions, newest first; none without a readable ERRATA.md."""
    try:
        text = read_plain_file(out / ERRATA, PLAN_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    errata = []
    for found in _SECTION.finditer(text):
        names, date = found["names"], found["date"]
        said = (found["said"] or "").removesuffix(".")
        errata.append(Erratum(names.split(", "), date, slug(names, date), said))
    return sorted(errata, key=lambda erratum: erratum.date, reverse=True)
