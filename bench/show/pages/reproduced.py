"""What a repetition of papers came to, as one page: orders of tables, figures, and what could not be run. Pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.compare.formatting import span_words

if TYPE_CHECKING:
    from bench.show.figures import Figure
    from bench.show.pages.cosines import Cosines

NO_EVIDENCE = (
    "This is no evidence about the papers. {why}. It shows that every line that can be run here runs, and which orders "
    "this scale happens to keep; a paper's order that is not kept here may well hold where the paper looked."
)


@dataclass(frozen=True, kw_only=True)
class PageRow:
    """One printed row beside ours."""

    label: str
    printed: str
    ours: str  # "" where there is none
    places: tuple[
        str, str
    ]  # among the rows that both have: the paper's, ours; "" where there is no ours
    run: str  # what ours is, or why there is none


@dataclass(frozen=True, kw_only=True)
class PageOrder:
    """One task of one table."""

    title: str  # "promcse table 1, unsupervised, bert-base-uncased: Avg."
    anchor: str
    finding: str  # the rank correlation and the pairs, in words
    rows: tuple[PageRow, ...]


@dataclass(frozen=True, kw_only=True)
class PageFigure:
    """A figure of a paper, drawn from our runs; or why it is not drawn."""

    title: str
    anchor: str
    drawn: tuple[Figure, ...] = ()
    ridges: tuple[tuple[str, Cosines], ...] = ()  # (what is drawn, the drawing)
    words: tuple[
        str, ...
    ] = ()  # what the sources leave open; which points are printed ones, or that there are none


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The page."""

    title: str
    answer: str  # one sentence over all tables
    statement: str  # what it is no evidence of; "" where runs are meant to be the papers'
    made_of: str
    summary: tuple[
        tuple[str, str, str, str], ...
    ]  # (part, rows run of rows printed, rank correlation, pairs kept)
    orders: tuple[PageOrder, ...]
    figures: tuple[PageFigure, ...]
    left_out: tuple[tuple[str, str], ...]  # (rows, reason)


def render(page: Reproduction) -> str:
    """The page as HTML: one file, no script, no network."""
    from bench.show.pages import engine

    return engine.render("reproduced.html", page=page, style=engine.style())


def places(values: Sequence[float | None], *, lowest_first: bool = False) -> list[str]:
    """ "1" for the best value, "2-3" where two share the next places; "" for None."""
    known = [value for value in values if value is not None]
    found = []
    for value in values:
        if value is None:
            found.append("")
            continue
        better = sum((other < value) if lowest_first else (other > value) for other in known)
        found.append(span_words((better + 1, better + known.count(value))))
    return found
