"""A paper's tables and figures that were run again, as one page. Pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.base.errors import BenchError
from bench.board.content import board
from bench.references import Part, figure_runs, printed_points
from bench.runs.predictions import Run
from bench.show.figures import figures
from bench.show.figures.papers import rescaling
from bench.show.grid import Column, grid
from bench.show.pages.cosines import cosines
from bench.show.pages.engine import render_template

Rows = Iterable[Sequence[str]]


def render(
    title: str, figure: Mapping[str, Any] | None, rows: Mapping[str, Rows], left_out: Rows
) -> str:
    """The page as HTML: one file, no network. ``rows``: title of a printed row -> (task, printed, ours, verdict) of each cell."""
    columns = ("task", Column("printed", right=True), Column("ours", right=True), "verdict")
    return render_template(
        "reproduced.html",
        one_file=True,
        title=title,
        figure=figure,
        rows={name: grid(columns, cells) for name, cells in rows.items()},
        left_out=grid(("rows", "why"), left_out),
    )


def paper_figure(part: Part, runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """A figure of a paper, drawn from our runs, or from its formula; or why it is not drawn. ``runs``: by name, one a seed."""
    spec = next((one for one in figure_runs() if one.part == part), None)
    texts = [f"It shows {part.shows}" + (f"; {spec.open}." if spec and spec.open else ".")]
    drawn, ridges = [], []
    try:
        if spec is None:
            drawn = [rescaling()]
        elif spec.draws == "cosines":
            ridges = [(name, one) for name, ours in runs.items() if (one := cosines(ours[0]))]
        elif runs:
            every = [run for ours in runs.values() for run in ours]
            made = board(every, version="reproduced", title=part.name, statistics="no")
            drawn = [one for one in figures(made) if one.kind == spec.draws]
    except BenchError as error:
        texts.append(f"Not drawn: {error.message}.")
    if not drawn and not ridges and len(texts) == 1:
        texts.append("Not drawn: its finished runs do not have what it needs.")
    points = [(p.panel, f"{p.key} {p.x:g}", f"{p.y:g}", p.read) for p in printed_points(part)]
    return {
        "title": f"{part.paper} {part.part}",
        "drawn": drawn,
        "ridges": ridges,
        "texts": texts,
        "points": grid(("task", "at", Column("printed", right=True), "read from"), points),
    }
