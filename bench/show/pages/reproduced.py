"""A paper's tables and figures that were run again, as one page. Pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError
from bench.board.board import PublishedRun
from bench.board.content import board
from bench.references import Part, figure_runs, printed_points
from bench.runs.predictions import Run
from bench.show.figures import Figure, figures
from bench.show.figures.papers import rescaling
from bench.show.pages.cosines import Cosines, cosines


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


def page_figure(part: Part, runs: Mapping[str, Sequence[Run]]) -> PageFigure:
    """A figure of a paper, drawn from our runs, or from its formula; or why it is not drawn. ``runs``: by name, one a seed."""
    spec = next((one for one in figure_runs() if one.part == part), None)
    words = [f"It shows {part.shows}" + (f"; {spec.open}." if spec and spec.open else ".")]
    drawn, ridges = list[Figure](), list[tuple[str, Cosines]]()
    first = {name: ours[0] for name, ours in runs.items()}
    try:
        if spec is None:
            drawn = [rescaling()]
        elif spec.draws == "cosines":
            ridges = [(name, one) for name, run in first.items() if (one := cosines(run))]
        elif runs:
            published = [
                PublishedRun(record=r, folder=f) for ours in runs.values() for r, f in ours
            ]
            made = board(published, version="reproduced", title=part.name, statistics="no")
            drawn = [figure for figure in figures(made) if figure.kind == spec.draws]
    except BenchError as error:
        words.append(f"Not drawn: {error.message}.")
    if not drawn and not ridges and len(words) == 1:
        words.append("Not drawn: its finished runs do not have what it needs.")
    return PageFigure(
        title=f"{part.paper} {part.part}",
        anchor=f"{part.paper}-{part.short}",
        drawn=tuple(drawn),
        ridges=tuple(ridges),
        words=tuple(words),
        points=tuple(
            (point.panel, f"{point.key} {point.x:g}", f"{point.y:g}", point.read)
            for point in printed_points(part)
        ),
    )


def render(page: Reproduction) -> str:
    """The page as HTML: one file, no script, no network."""
    from bench.show.pages import engine

    return engine.render("reproduced.html", page=page, style=engine.style())
