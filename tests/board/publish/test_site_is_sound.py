"""Every file of a published version: valid, linked, escaped, the same bytes again; whatever the
runs said.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import html5lib
import pytest
from valid_html import ADDRESSES, broken_links, faults


@pytest.fixture(params=[pytest.param("site", marks=pytest.mark.nightly), "hostile_site"])
def version(request: pytest.FixtureRequest) -> Path:
    """A version of many tables, nightly, and one of runs that wish us ill."""
    found: Path = request.getfixturevalue(request.param)
    return found


def files(version: Path, kind: str) -> list[Path]:
    """The files of a version and of the index above it."""
    return sorted(version.parent.rglob(f"*.{kind}"))


@pytest.mark.nightly
def test_every_page_is_valid(version: Path) -> None:
    pages = files(version, "html")
    assert len(pages) > 4
    assert {
        str(page.relative_to(version.parent)): found
        for page in pages
        if (found := faults(page.read_text(encoding="utf-8")))
    } == {}


@pytest.mark.nightly
def test_every_link_leads_somewhere(version: Path) -> None:
    assert broken_links(version.parent) == []


def test_tables_of_data_can_be_read_and_hold_no_formula(version: Path) -> None:
    found = files(version, "csv")
    assert found
    for path in found:
        rows = list(csv.reader(io.StringIO(path.read_bytes().decode("utf-8"), newline="")))
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1, path
        for cell in (cell for row in rows for cell in row):
            assert not cell.startswith(("=", "@", "\t", "+")), path
            assert not cell.startswith("-") or re.fullmatch(r"-[\d.e+-]+", cell), path
    for path in files(version, "json"):
        json.loads(path.read_text(encoding="utf-8"))


def test_nothing_outside_is_named(version: Path) -> None:
    """No page, style sheet or script asks for anything by a full address; links that a reader may
    follow are another thing.
    """
    for path in (*files(version, "css"), *files(version, "js")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"@import|url\(\s*['\"]?(?!#|data:image/svg)|fetch\(|XMLHttpRequest|sendBeacon|"
            r"WebSocket|eval\(|new Function",
            text,
        ), path
        assert "http:" not in text.replace("http://www.w3.org/", ""), path
    for page in files(version, "html"):
        for element in html5lib.parse(
            page.read_text(encoding="utf-8"), namespaceHTMLElements=False
        ).iter():
            if element.tag in ("script", "img", "link", "source", "video", "audio", "use"):
                asked = [
                    element.attrib[name]
                    for name in ADDRESSES
                    if name in element.attrib and element.get("rel") != "canonical"
                ]
                assert not any(one.startswith("https:") for one in asked), (page, asked)
