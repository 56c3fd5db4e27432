"""The blocks of a docstring: paragraphs, list items and equations, for a terminal or a page to lay out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from bench.compare.formatting import visible

BULLETS = ("* ", "- ")


@dataclass(frozen=True)
class Block:
    """``kind`` is "paragraph", "item" (of a list; its text has no bullet) or "lines" (as they stand, such as equations)."""

    kind: str
    text: str
    bullet: str = ""  # "* " or "- " of an item
    first: bool = False  # begins a paragraph of the source: a blank line stood above


def blocks(text: str) -> tuple[Block, ...]:
    """Lines that belong together joined; an indented line that continues no bullet stands as it is. Control characters are shown."""
    made: list[Block] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()) if text.strip() else []:
        inside: list[Block] = []
        for line in lines(paragraph):
            last = inside[-1] if inside else None
            bullet = next((sign for sign in BULLETS if line.startswith(sign)), "")
            goes_on = last is not None and last.kind == "item" and re.match(r"  \S", line)
            if bullet:
                inside.append(Block("item", line[2:], bullet, not inside))
            elif last is not None and (goes_on or (not line.startswith(" ") and last.kind != "lines")):
                inside[-1] = replace(last, text=f"{last.text} {line.strip()}")
            elif last is not None and last.kind == "lines" and line.startswith(" "):
                inside[-1] = replace(last, text=f"{last.text}\n{line}")
            else:
                inside.append(Block("lines" if line.startswith(" ") else "paragraph", line, "", not inside))
        made += inside
    return tuple(made)


def lines(text: str) -> list[str]:
    """Without control characters; blanks inside a line, which align equations, stay."""
    return [
        "".join(visible(part, limit=None) if part.strip(" ") else part for part in re.split("( +)", line)) for line in text.splitlines()
    ]


def spans(text: str) -> tuple[tuple[str, bool], ...]:
    """(text, is code) of each stretch; code stands between backticks."""
    parts = re.split(r"``?([^`]+)``?", text)
    return tuple((part, i % 2 == 1) for i, part in enumerate(parts) if part)
