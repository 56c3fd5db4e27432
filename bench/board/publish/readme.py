"""README.md of a version and of all versions, for code hosts: templates that escape every text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from bench.base.foreign_text import escape_markdown
from bench.base.grid import Grid
from bench.base.markup import as_markdown
from bench.base.text import plural
from bench.board.addresses import link, search_file
from bench.board.board import PREVIEW, Board
from bench.board.figures import Figure
from bench.board.pages.claims import ClaimGrids
from bench.board.pages.engine import TEMPLATES
from bench.board.pages.gain_sizes import GainSizes
from bench.board.pages.matrix import ShownMatrix, matrix_grid, other_findings, shown_matrix
from bench.board.pages.questions import answered_questions, questions_grid
from bench.board.publish.versions import Version
from bench.compare.forms.scores import score_grid
from bench.compare.statistics.table import Table
from bench.compare.words.names import table_name


def _escaped(value: Any) -> Any:
    """Escape a value that a template prints, unless it is Markdown already."""
    if isinstance(value, Markup):
        return value
    return escape_markdown(value, limit=None)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 - ``finalize`` escapes, for Markdown
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escaped,
    )
    environment.globals |= {
        "link": lambda path: Markup(link(path)),  # noqa: S704 - quoted
        "search_file": search_file,
        # as_markdown escapes every text
        "table": lambda grid: Markup(as_markdown(beside_page(grid))),  # noqa: S704
        "plural": plural,
        "counted": counted,
        "table_name": table_name,
    }
    return environment


def beside_page(table: Grid) -> Grid:
    """Return a table without its title, for a file beside the page whose places it links to."""
    rows = []
    for row in table.rows:
        cells = []
        for cell in row:
            is_place = cell.link.startswith("#")
            cells.append(replace(cell, link=f"index.html{cell.link}") if is_place else cell)
        rows.append(replace(row, cells=tuple(cells)))
    return replace(table, title="", rows=tuple(rows))


def counted(board: Board | Version) -> str:
    """Return "12 runs of 4 methods"."""
    return f"{plural(len(board.runs), 'run')} of {plural(len(board.methods), 'method')}"


def table_grid(board: Board, table: Table) -> Grid:
    """Lay out a table without its single tasks, which its CSV file has. The main table's finding
    is above all of them."""
    laid_out = score_grid(table, board.rows_for_scale(table))
    tasks = set(table.columns[:-1]) if table.head else set()
    kept = [i for i, column in enumerate(laid_out.columns) if column.name not in tasks]
    rows = [replace(row, cells=tuple(row[i] for i in kept)) for row in laid_out.rows]
    columns = tuple(laid_out.columns[i] for i in kept)
    is_main = table is board.main
    lead = "" if is_main else laid_out.lead
    return replace(laid_out, columns=columns, rows=tuple(rows), lead=lead)


def versions_readme(matrix: ShownMatrix | None, **values: Any) -> str:
    """Write the README of all versions, with the matrix of the newest one."""
    laid_out = None if matrix is None else matrix_grid(matrix)
    return _templates().get_template("versions.md").render(matrix=laid_out, **values)


def version_readme(
    board: Board,
    figures: Sequence[Figure] = (),
    claims: ClaimGrids | None = None,
    sizes: GainSizes | None = None,
) -> str:
    """Write the README of a version: all of it. It links only to the main page, because code hosts
    show HTML as source."""
    template = _templates().get_template("version.md")
    matrix = shown_matrix(board)
    questions = answered_questions(board)
    return template.render(
        board=board,
        preview=PREVIEW,
        table_grid=table_grid,
        main=board.main,
        figures=figures,
        matrix=None if matrix is None else matrix_grid(matrix),
        other_findings=other_findings(board),
        claims=claims,
        questions=None if questions is None else questions_grid(questions),
        gain_sizes=sizes,
    )
