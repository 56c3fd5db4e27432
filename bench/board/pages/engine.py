"""The template engine of all pages: autoescape, nothing undefined, compiled once for a thousand
pages."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from bench.base.grid import Grid
from bench.base.markup import as_html, html_text
from bench.base.text import capitalised, plural, slug
from bench.board.addresses import link, run_file, search_file
from bench.board.pages.links import (
    docs_link,
    method_link,
    method_paper_url,
    minus,
    outside_links,
    page_address,
    paper_url,
    run_link,
)
from bench.board.pages.words import explained
from bench.board.repeat import NOT_REPEATABLE
from bench.compare.formatting import metric_words, score
from bench.compare.forms.scores import difference_text, lines_below, spread_text
from bench.compare.words.glossary import TERMS
from bench.compare.words.names import budget_words, setting_words

TEMPLATES = Path(__file__).with_name("templates")
CARD = "figures/matrix.png"
"""The picture that a link's card shows, in a version."""
ASSETS = ("board.css", "board.js")
"""Files in ``assets/`` of a version."""


def render_template(template: str, **values: Any) -> str:
    """Write a page as HTML. Raises ``jinja2.UndefinedError`` if a value that the template needs is
    missing."""
    return _environment().get_template(template).render(**values)


@cache
def asset(name: str) -> Markup:
    """Return a style sheet or a script, for a page that is one file."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 - ours


@cache
def script_hash() -> str:
    """Return the hash that allows the script in a page that is one file, and no other."""
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
        "capital": capitalised,
        "metric": metric_words,
        "setting": setting_words,
        "html": html,
        "explained": explained,
        "budget": budget_words,
    }
    environment.globals |= {
        "link": link,
        "run_file": run_file,
        "search_file": search_file,
        "not_repeatable": NOT_REPEATABLE,
        "run_link": run_link,
        "method_link": method_link,
        "method_paper_url": method_paper_url,
        "paper_url": paper_url,
        "docs_link": docs_link,
        "outside_links": outside_links,
        "page_address": page_address,
        "plural": plural,
        "slug": slug,
        "difference_text": difference_text,
        "spread_text": spread_text,
        "lines_below": lines_below,
        "asset": asset,
        "script_hash": script_hash,
        # text with the blanks that align it: its control characters were shown before
        # (bench.base.text.lines)
        "as_is": escape,
        "card": CARD,
        "terms": TERMS,
        "one_file": False,
    }
    return environment


def finalize(value: object) -> object:
    """Escape a value that a template prints: no None, and no control characters in foreign text."""
    if isinstance(value, str):
        if hasattr(value, "__html__"):
            return value
        return Markup(html_text(value))  # noqa: S704 - escaped
    if value is None:
        raise ValueError("the template printed a value that was not recorded")
    return value


def html(grid: Grid) -> Markup:
    """Write a table without its title, which is a heading above it."""
    return Markup(as_html(replace(grid, title="")))  # noqa: S704 - it escapes every text
