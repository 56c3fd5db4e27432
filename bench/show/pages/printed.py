"""What the papers printed, table by table, with the audit's remarks and what runs here made of each number; and the page of a paper's
tables and figures that were run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.base.text import plural, slug
from bench.board.board import Board, board
from bench.compare.consistency import DIFFERS, NOT_TESTED
from bench.records.store import Run
from bench.references import (
    PAPERS,
    SUITES,
    Part,
    ReferenceResult,
    Row,
    figure_runs,
    meaning,
    printed_points,
    results,
    rows,
    tables,
)
from bench.references.audit import KINDS, Remark, remarks
from bench.show.figures import figures, rescaling
from bench.show.grid import Cell, Column, Grid, grid
from bench.show.pages.engine import method_link, render_template
from bench.show.pages.run_page import cosines

SIGNS = {DIFFERS: "outside", NOT_TESTED: "not tested"}


class PrintedTable(NamedTuple):
    anchor: str  # "printed-promcse-1"
    table: str  # "1"
    about: str  # "sts, 24 rows, 3 remarks"
    grid: Grid


def printed_papers(
    board: Board, method: str | None = None, up: int = 0
) -> dict[str, list[PrintedTable]]:
    """Name and citation of a paper -> its tables, in the paper's order; with ``method`` the rows that mean it, and the columns in
    which they have a number."""
    papers: dict[str, list[PrintedTable]] = {}
    for paper, table in () if board.one_file else tables():
        lines = [
            row
            for row in rows(results(paper=paper, table=table), by_metric=False)
            if method in (None, method_of(row))
        ]
        if not lines:
            continue
        made = printed_grid(board, lines, up)
        about = [
            *dict.fromkeys(SUITES[cell.metric] for row in lines for cell in row.cells),
            plural(len(lines), "row"),
        ]
        about += [plural(len(made.footnotes), "remark")] if made.footnotes else []
        papers.setdefault(f"{paper}: {PAPERS[paper]}", []).append(
            PrintedTable(f"printed-{slug(paper, table)}", table, ", ".join(about), made)
        )
    return papers


def method_of(row: Row) -> str:
    """The method that a printed row means, "" for none of ours."""
    return meaning(row.first.method, row.first.variant, row.first.setting).method


def printed_grid(board: Board, lines: Sequence[Row], up: int = 0) -> Grid:
    """Rows as printed, each with ours below it where runs have its method, backbone and recipe."""
    texts = remark_texts(lines)
    tasks = dict.fromkeys(cell.task for row in lines for cell in row.cells)
    made: list[list[Cell | str]] = []
    for row in lines:
        cells, ours = {cell.task: cell for cell in row.cells}, method_of(row)
        label = Cell(
            text=row.first.label,
            link=method_link(board, ours) if ours in board.methods and up == 0 else "",
            marks=_marks(
                (one for cell in row.cells for one in remarks(cell) if not one.task), texts
            ),
        )
        made.append(
            [
                label,
                row.first.backbone,
                *(_number(cells.get(task), texts) for task in tasks),
                _origin(row),
            ]
        )
        here = [_ours(board, cells.get(task)) for task in tasks]
        made += [["  ours", "", *here, ""]] if any(cell.main for cell in here) else []
    return grid(
        ["as printed", "backbone", *(Column(task, right=True) for task in tasks), "of"],
        made,
        footnotes=texts,
    )


def _origin(row: Row) -> str:
    """ "unsupervised; copied from simcse; one run" """
    first = row.first
    facts = [
        "" if first.setting == "none" else first.setting,
        *(cell.corpus for cell in row.cells),
        *(
            f"copied from {cell.source}".removesuffix(" from ")
            for cell in row.cells
            if not cell.own_result
        ),
        *(cell.runs for cell in row.cells),
    ]
    return "; ".join(dict.fromkeys(filter(None, facts)))


def remark_texts(lines: Sequence[Row]) -> list[str]:
    """What the audit says of these rows, the gravest kinds first; that a row is copied stands next to it."""
    ranked = {
        (list(KINDS).index(one.kind), _text(one))
        for row in lines
        for cell in row.cells
        for one in remarks(cell)
        if one.kind != "copied"
    }
    return [text for _, text in sorted(ranked)]


def _text(remark: Remark) -> str:
    return f"{KINDS[remark.kind]}: {remark.why}"


def _marks(about: Iterable[Remark], texts: Sequence[str]) -> tuple[int, ...]:
    """Numbers of these remarks."""
    mine = set(map(_text, about))
    return tuple(i for i, text in enumerate(texts, 1) if text in mine)


def _number(cell: ReferenceResult | None, texts: Sequence[str]) -> Cell:
    if cell is None:
        return Cell()
    return Cell(
        text=cell.printed + ("" if cell.std is None else f" ±{cell.std:g}"),
        marks=_marks((one for one in remarks(cell) if one.task), texts),
    )


def _ours(board: Board, cell: ReferenceResult | None) -> Cell:
    """The mean of our runs with half of the prediction interval for as many runs as the paper had."""
    here = board.reproduced.get(cell) if cell else None
    if here is None or here.mean is None:
        return Cell()
    return Cell(
        number=here.mean, decimals=here.decimals, spread=here.half, sign=SIGNS.get(here.verdict, "")
    )


# --- a paper's tables and figures that were run again, as one page ---


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
    page = {
        "part": part,
        "open": spec.open if spec else "",
        "drawn": [] if spec else [rescaling()],
        "ridges": [],
        "points": grid(
            ("task", "at", Column("printed", right=True), "read from"),
            [(p.panel, f"{p.key} {p.x:g}", f"{p.y:g}", p.read) for p in printed_points(part)],
        ),
    }
    if spec and spec.draws == "cosines":
        page["ridges"] = [(name, one) for name, ours in runs.items() if (one := cosines(ours[0]))]
    elif spec and runs:
        made = board(
            [run for ours in runs.values() for run in ours], version="reproduced", title=part.name
        )
        page["drawn"] = [one for one in figures(made) if one.kind == spec.draws]
    return page
