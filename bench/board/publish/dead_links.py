"""The links of published pages: every one that stays in the folder of all versions is followed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from bench.base.findings import AGREES, DIFFERS, Finding
from bench.board.verify.findings import RunReport

PAGES = ("*.html", "README.md")
_HTML = re.compile(r'\b(?:href|src)="([^"]*)"')
_MARKDOWN = re.compile(r"\]\(([^)\s]+)\)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)
_PLACE = re.compile(r'\bid="([^"]*)"')


def check_links(out: Path) -> RunReport:
    """Follow every link of the pages below a folder that leads to a file, or to a place of a page,
    below it; one finding per page, and per dead link."""
    findings = []
    for pattern in PAGES:
        for page in sorted(out.rglob(pattern)):
            name = str(page.relative_to(out))
            dead = list(_dead_links(page))
            findings += [
                Finding("links", name, DIFFERS, f"leads to {link}, which is not there")
                for link in dead
            ]
            if not dead:
                findings.append(Finding("links", name, AGREES))
    return RunReport("links", findings, "published")


def _dead_links(page: Path) -> Iterator[str]:
    """Yield each link of a page whose file, or place in a page, is not there."""
    text = page.read_text(encoding="utf-8", errors="replace")
    pattern = _HTML if page.suffix == ".html" else _MARKDOWN
    for link in dict.fromkeys(pattern.findall(text)):
        address = html.unescape(link)
        if _SCHEME.match(address) or address.startswith("//"):
            continue
        path, _, place = address.partition("#")
        target = page if not path else page.parent / unquote(path.partition("?")[0])
        if (
            not target.exists()
            or place
            and target.suffix == ".html"
            and unquote(place) not in _places(target)
        ):
            yield address


@cache
def _places(page: Path) -> frozenset[str]:
    """Return the ids of a page."""
    text = page.read_text(encoding="utf-8", errors="replace")
    return frozenset(html.unescape(name) for name in _PLACE.findall(text))
