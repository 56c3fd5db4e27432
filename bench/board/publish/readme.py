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
from bench.base.text import plural, slug
from bench.board.addresses import link, search_file
from bench.board.board import PREVIEW, Board
from bench.board.figures import Figure
from bench.board.finding import board_finding
from bench.board.pages.engine import TEMPLATES
from bench.board.pages.gain_sizes import gain_sizes_grid
from bench.board.pages.intervals import level_text, versus_heading
from bench.board.pages.small_grids import changes_grid
from bench.board.publish.versions import Version
from bench.compare.formatting import SEVERAL, budget_words, setting_words
from bench.compare.forms.scores import difference_heading, score_grid
from bench.compare.statistics.table import Row, Table
from bench.papers import PAPERS, tables


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
        "table": lambda table: Markup(as_markdown(replace(table, title=""))),  # noqa: S704
        "counted": counted,
        "slug": slug,
        "place": place_in_words,
    }
    return environment


def counted(board: Board | Version) -> str:
    """Return "12 runs of 4 methods"."""
    return f"{plural(len(board.runs), 'run')} of {plural(len(board.methods), 'method')}"


def place_in_words(table: Table) -> str:
    """Return "unsupervised, bert-base-uncased"."""
    words = [f"submitted by {table.sender}"] if table.sender else []
    words += [setting_words(table.setting), table.backbone or SEVERAL]
    words.append(budget_words(table.length))
    return ", ".join(word for word in words if word)


def page_grid(table: Table, scale: Sequence[tuple[Table, Row]]) -> Grid:
    """Lay out a table, with the name that pages have for the column of differences."""
    laid_out = score_grid(table, scale)
    heading = difference_heading(table)
    columns = []
    for column in laid_out.columns:
        if heading and column.name == heading:
            column = replace(column, name=f"{versus_heading(table)} {level_text(table)}".rstrip())
        columns.append(column)
    return replace(laid_out, columns=tuple(columns))


def versions_readme(**values: Any) -> str:
    """Write the README of all versions."""
    return _templates().get_template("versions.md").render(**values)


def version_readme(board: Board, figures: Sequence[Figure] = ()) -> str:
    """Write the README of a version: all of it. It links only to the main page, because code hosts
    show HTML as source."""
    template = _templates().get_template("version.md")
    return template.render(
        board=board,
        preview=PREVIEW,
        score_grid=page_grid,
        figures=figures,
        changes=changes_grid(board),
        finding=board_finding([shown.table for shown in board.tables]),
        gain_sizes=gain_sizes_grid(board),
        printed=[(paper, number, PAPERS[paper]) for paper, number in tables()],
    )
