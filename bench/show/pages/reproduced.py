"""A paper's tables and figures that were run again, as one page. Pure functions of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.board.content import board
from bench.references import Part, figure_runs, printed_points
from bench.runs.store import Run
from bench.show.figures import figures
from bench.show.figures.lines import rescaling
from bench.show.grid import Column, grid
from bench.show.pages.drawings import cosines
from bench.show.pages.engine import render_template


def render(
    title: str,
    figure: Mapping[str, Any] | None,
    rows: Mapping[str, Iterable[Sequence[str]]],
    left_out: Iterable[Sequence[str]],
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
    """A figure of a paper, drawn from our runs, or from its formula. ``runs``: by name, one a seed. Raises BenchError where none
    of them has a score."""
    spec = next((one for one in figure_runs() if one.part == part), None)
    points = [(p.panel, f"{p.key} {p.x:g}", f"{p.y:g}", p.read) for p in printed_points(part)]
    page = {
        "part": part,
        "open": spec.open if spec else "",
        "drawn": [] if spec else [rescaling()],
        "ridges": [],
        "points": grid(("task", "at", Column("printed", right=True), "read from"), points),
    }
    if spec and spec.draws == "cosines":
        ridges = [(name, cosines(ours[0])) for name, ours in runs.items()]
        page["ridges"] = [(name, one) for name, one in ridges if one]
    elif spec and runs:
        every = [run for ours in runs.values() for run in ours]
        made = board(every, version="reproduced", title=part.name)
        page["drawn"] = [one for one in figures(made) if one.kind == spec.draws]
    return page
