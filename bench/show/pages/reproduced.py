"""A paper's tables and figures that were run again, as one page. Pure functions of their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.show.figures import Figure
    from bench.show.pages.cosines import Cosines


@dataclass(frozen=True, kw_only=True)
class PageRow:
    """One printed row and ours."""

    title: str
    cells: tuple[tuple[str, str, str, str], ...]  # (task, printed, ours, verdict)


@dataclass(frozen=True, kw_only=True)
class PageFigure:
    """A figure of a paper, drawn from our runs; or why it is not drawn."""

    title: str
    anchor: str
    drawn: tuple[Figure, ...] = ()
    ridges: tuple[tuple[str, Cosines], ...] = ()  # (what is drawn, the drawing)
    words: tuple[str, ...] = ()
    points: tuple[tuple[str, str, str, str], ...] = ()  # printed: (task, key and x, y, source)


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The page."""

    title: str
    figures: tuple[PageFigure, ...] = ()
    rows: tuple[PageRow, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()  # (rows, reason)


def render(page: Reproduction) -> str:
    """The page as HTML: one file, no script, no network."""
    from markupsafe import Markup

    from bench.show.pages import engine

    return engine.render("reproduced.html", page=page, style=engine.style(), drawn=Markup)
