"""The page of a paper's tables and figures that were run again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.base.grid import GridColumn, grid
from bench.board.board import build_board
from bench.board.figures import board_figures, rescaling
from bench.board.pages.drawings import cosine_ridges
from bench.board.pages.engine import render_template
from bench.papers import PaperPart, figure_runs, printed_points
from bench.records.run import Run


def render_reproduced(
    title: str,
    figure: Mapping[str, Any] | None,
    rows: Mapping[str, Iterable[Sequence[str]]],
    left_out: Iterable[Sequence[str]],
) -> str:
    """Write the page as HTML: one file, no network.

    ``rows``: title of a printed row -> (task, printed, ours, verdict) of each cell.
    """
    columns = ("task", GridColumn("printed", right=True), GridColumn("ours", right=True), "verdict")
    return render_template(
        "reproduced.html",
        one_file=True,
        title=title,
        figure=figure,
        rows={name: grid(columns, cells) for name, cells in rows.items()},
        left_out=grid(("rows", "why"), left_out),
    )


def paper_figure(part: PaperPart, runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Draw a figure of a paper from our runs, or from its formula.

    ``runs``: by name, one a seed. Raises BenchError if none of them has a score.
    """
    spec = None
    for known in figure_runs():
        if known.part == part:
            spec = known
            break
    page: dict[str, Any] = {
        "part": part,
        "open": spec.open if spec else "",
        "drawn": [] if spec else [rescaling()],
        "ridges": [],
        "points": grid(
            ("task", "at", GridColumn("printed", right=True), "read from"),
            [(p.panel, f"{p.key} {p.x:g}", f"{p.y:g}", p.read) for p in printed_points(part)],
        ),
    }
    if spec and spec.draws == "cosines":
        for name, ours in runs.items():
            ridges = cosine_ridges(ours[0])
            if ridges is not None:
                page["ridges"].append((name, ridges))
    elif spec and runs:
        made = build_board(
            [run for ours in runs.values() for run in ours], version="reproduced", title=part.name
        )
        page["drawn"] = [figure for figure in board_figures(made) if figure.kind == spec.draws]
    return page
