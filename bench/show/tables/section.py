"""A titled table of plain text: what a terminal, a page and a card show of a record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A titled table. ``numbers`` are the columns that stand right-aligned; a cell that begins with blanks is a part of what
    stands above it."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
