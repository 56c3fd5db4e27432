"""The template engine of all pages: autoescape, nothing undefined, compiled once for a thousand pages."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup


TEMPLATES = Path(__file__).with_name("templates")
SHEETS = ("board.css", "pages.css", "alone.css")
"""Style sheets of a page that is one file, in their order."""


def render(template: str, **values: Any) -> str:
    """The page as HTML. Raises ``jinja2.UndefinedError`` where the template asks for what it was not given."""
    return _environment().get_template(template).render(**values)


def style() -> Markup:
    """Of a page that is one file: ours, and what alone is not escaped."""
    from markupsafe import Markup

    return Markup("".join((TEMPLATES / sheet).read_text(encoding="utf-8") for sheet in SHEETS))  # noqa: S704


@cache
def _environment() -> jinja2.Environment:
    import jinja2
    from markupsafe import escape

    from bench.board.names import link
    from bench.compare.formatting import score

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
    }
    environment.globals["link"] = link
    # text with the blanks that align it: its control characters must have been shown before (bench.compare.formatting.lines)
    environment.globals["as_is"] = escape
    return environment


def finalize(value: object) -> object:
    """None must never be printed, and foreign text has no control characters."""
    if isinstance(value, str):
        return value if hasattr(value, "__html__") else _shown(value)
    if value is None:
        raise ValueError("the template printed a value that was not recorded")
    return value


@lru_cache(maxsize=1 << 16)  # a thousand records say much the same
def _shown(text: str) -> Markup:
    """Escaped, on one line, with control characters as visible escapes."""
    from markupsafe import escape

    from bench.compare.formatting import visible

    return escape(visible(text, limit=None))


# --- How numbers and values of a recipe are written on pages ---


def minus(text: str) -> str:
    """With a minus sign where a hyphen stands for one."""
    return text.replace("-", "\N{MINUS SIGN}")


def value_words(value: Any) -> str:
    """ "none", "true", 3e-05 as "3e-5"; text as it is, lists as JSON."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}".replace("e-0", "e-").replace("e+0", "e+")
    return (
        value
        if isinstance(value, str) and value
        else json.dumps(value, ensure_ascii=False, default=str)
    )
