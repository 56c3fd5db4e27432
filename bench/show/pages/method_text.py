"""How a method works, in its own words: a paragraph for a run's page, all of it for the method's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

from bench.compare.formatting import Block, blocks, spans
from bench.run.method_reader import MethodDescription, method_description

Spans = tuple[tuple[str, bool], ...]
"""(text, is code) of each stretch."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A paragraph, a list or lines as they stand."""

    kind: str  # "paragraph", "list" or "lines"
    items: tuple[Spans, ...]  # one, but for a list
    text: str  # of lines, with their blanks; empty for the others


@dataclass(frozen=True, kw_only=True)
class MethodText:
    """What a method says of itself."""

    summary: Spans  # one line; may be empty
    paper: str  # citation; may be empty
    trains: Spans  # which parameters train; may be empty
    short: tuple[Piece, ...]  # its first paragraph, with the list or the equation that follows
    whole: tuple[Piece, ...]  # all of it


@cache
def how(method: str, package: str | None) -> MethodText | None:
    """None where no method of this name is installed, or where the run was made with another package's."""
    said = source(method, package)
    if said is None:
        return None
    told = list(blocks(said.about))
    if len(told) > 1 and _is_title(told[0], said.paper):
        told = told[1:]
    second = next((i for i, block in enumerate(told) if i and block.first and block.kind == "paragraph"), len(told))
    return MethodText(
        summary=_sentence(said.summary),
        paper=said.paper,
        trains=_sentence(said.trains),
        short=_pieces(told[:second]),
        whole=_pieces(told),
    )


def source(method: str, package: str | None) -> MethodDescription | None:
    """What the installed method says, if it is the one that the run was made with, as far as the record tells."""
    found = method_description(method)
    return found if found is not None and package in (None, found.package) else None


def _sentence(text: str) -> Spans:
    return spans(f"{text[:1].upper()}{text[1:].rstrip('.')}.") if text else ()


def _is_title(block: Block, paper: str) -> bool:
    """The first line is the paper's title and authors, which the citation says too."""
    words, cited = (set(re.findall(r"\w{4,}", text.lower())) for text in (block.text, paper))
    return bool(paper) and block.kind == "paragraph" and len(words & cited) > len(words) / 2


def _pieces(told: list[Block]) -> tuple[Piece, ...]:
    made: list[Piece] = []
    for block in told:
        if block.kind == "lines":
            made.append(Piece(kind="lines", items=(), text=dedent(block.text)))
        elif block.kind == "item" and made and made[-1].kind == "list":
            made[-1] = Piece(kind="list", items=(*made[-1].items, spans(block.text)), text="")
        else:
            made.append(Piece(kind="list" if block.kind == "item" else "paragraph", items=(spans(block.text),), text=""))
    return tuple(made)
