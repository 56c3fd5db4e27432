"""The blocks of a docstring: paragraphs, list items and equations, for a page to lay out."""

from __future__ import annotations

import re
from typing import NamedTuple

from bench.base.foreign_text import printable_lines

PIECE = re.compile(
    r"(?P<item>[*-] .*(?:\n(?:  \S|(?![*-] )\S).*)*)"
    r"|(?P<lines> .*(?:\n .*)*)"
    r"|(?P<paragraph>\S.*(?:\n(?![*-] )\S.*)*)"
)
"""Of a paragraph: an item goes on in lines that are not indented, or by two blanks; indented lines
are unchanged.
"""


class Block(NamedTuple):
    """``kind`` is "paragraph", "item" (of a list; its text has no bullet) or "lines" (kept
    unchanged, such as equations).
    """

    kind: str
    text: str


def blocks(text: str) -> tuple[Block, ...]:
    """Join lines that belong together; an indented line that continues no bullet is unchanged.
    Control characters are shown.
    """
    made = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        for match in PIECE.finditer("\n".join(printable_lines(paragraph))):
            kind, piece = str(match.lastgroup), match.group()
            if kind == "item":
                piece = piece[2:]
            if kind != "lines":
                piece = " ".join(line.strip() for line in piece.splitlines())
            made.append(Block(kind, piece))
    return tuple(made)


def spans(text: str) -> tuple[tuple[str, bool], ...]:
    """Return (text, is code) for each stretch; code is between backticks."""
    return tuple(
        (part, i % 2 == 1) for i, part in enumerate(re.split(r"``?([^`]+)``?", text)) if part
    )
