"""Texts of methods and recipes as pages write them, and the words that pages explain."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from bench.base.markup import html_text
from bench.compare.words.glossary import TERMS
from bench.compare.words.legend import MEANS

MEANINGS = TERMS | MEANS
_LONGEST_FIRST = sorted(MEANINGS, key=len, reverse=True)
_TERM = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, _LONGEST_FIRST))})(?![\w-])")


def plain_text(text: str) -> str:
    """Return a text without the backticks around code, for places without a type for code."""
    return text.replace("`", "")


def explained(text: str) -> Markup:
    """Write a text in which a pointer that rests on a known word shows its meaning.

    A finger finds the same under "How to read this page".
    """
    return Markup(_TERM.sub(_explanation, html_text(text)))  # noqa: S704 - escaped


def _explanation(found: re.Match[str]) -> str:
    return f'<dfn title="{escape(MEANINGS[found[0]])}">{found[0]}</dfn>'
