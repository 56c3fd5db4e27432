"""The template engine of all pages: autoescape, nothing undefined, compiled once for a thousand pages."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from bench.base.text import plural, slug
from bench.board.addresses import link, method_page, run_file, search_file
from bench.board.board import Board
from bench.board.repeat import NOT_REPEATABLE
from bench.compare.formatting import metric_words, score, setting_words
from bench.compare.statistics.table import Table
from bench.show.grid import Grid
from bench.show.markup import as_html, html_text
from bench.show.tables.scores import (
    difference_heading,
    difference_text,
    lines_below,
    sign_name,
    spread_text,
)

TEMPLATES = Path(__file__).with_name("templates")
ASSETS = ("board.css", "board.js")
"""Files that lie in ``assets/`` of a version."""


def render_template(template: str, **values: Any) -> str:
    """The page as HTML. Raises ``jinja2.UndefinedError`` where the template needs something that is not among ``values``."""
    return _environment().get_template(template).render(**values)


@cache
def asset(name: str) -> Markup:
    """A style sheet or a script, for a page that is one file."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 - ours


@cache
def script_hash() -> str:
    """What allows the script within a page that is one file, and no other."""
    digest = hashlib.sha256(asset("board.js").encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
        auto_reload=False,
    )
    environment.filters |= {
        "score": score,
        "minus": minus,
        "capital": lambda text: text[:1].upper() + text[1:],
        "metric": metric_words,
        "setting": setting_words,
        "html": html,
        "form": form_text,
    }
    environment.globals |= {
        "link": link,
        "search_file": search_file,
        "not_repeatable": NOT_REPEATABLE,
        "run_link": run_link,
        "method_link": method_link,
        "plural": plural,
        "slug": slug,
        "difference_heading": difference_heading,
        "difference_text": difference_text,
        "sign_name": sign_name,
        "spread_text": spread_text,
        "lines_below": lines_below,
        "asset": asset,
        "script_hash": script_hash,
        # text with the blanks that align it: its control characters were shown before (bench.base.text.lines)
        "as_is": escape,
        "one_file": False,
    }
    return environment


def finalize(value: object) -> object:
    """None must never be printed, and foreign text has no control characters."""
    if isinstance(value, str):
        return value if hasattr(value, "__html__") else Markup(html_text(value))  # noqa: S704 - escaped
    if value is None:
        raise ValueError("the template printed a value that was not recorded")
    return value


def html(grid: Grid) -> Markup:
    """A table under a heading that has its title."""
    return Markup(as_html(replace(grid, title="")))  # noqa: S704 - it escapes every text


# --- where links lead, how numbers and values of a recipe are written ---


def run_link(board: Board, run_id: str, up: int = 0) -> str:
    """To the page that has the scores of a run, from a page that lies ``up`` folders deep."""
    page = board.page_of[run_id]
    return f"#{link(page)}" if board.one_file else link(run_file(page, "index.html"), up)


def method_link(board: Board, method: str, up: int = 0) -> str:
    """To the page of a method; "" where there is none."""
    return "" if board.one_file else link(method_page(method), up)


def form_text(table: Table) -> str:
    """ "senteval-all/1, tokenised" """
    return f"{table.protocol}, {table.text}" if table.text else table.protocol


def minus(text: str) -> str:
    """With a minus sign where a hyphen stands for one."""
    return text.replace("-", "\N{MINUS SIGN}")
