"""A version with an address: the preview that other sites show for a link to it.

Without an address a version has no preview.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import bench
from published import Publish

from bench.board.publish.versions import check_versions

ADDRESS = "https://example.org/boards"


def tags(page: Path) -> dict[str, str]:
    """The properties and names of a page's meta elements."""
    text = page.read_text("utf-8")
    found = re.findall(r'<meta (?:property|name)="([^"]+)" content="([^"]*)">', text)
    return dict(found)


def pages(out: Path) -> list[Path]:
    found = sorted(out.rglob("*.html"))
    assert len(found) > 4
    return found


def test_without_an_address_there_is_a_description_and_nothing_that_must_be_absolute(
    quick: Publish, out: Path
) -> None:
    quick()
    for page in pages(out):
        found = tags(page)
        assert found["description"]
        assert not any(name.startswith(("og:", "twitter:")) for name in found)
        assert "canonical" not in page.read_text("utf-8")
    assert "address" not in json.loads((out / "v1" / "tables.json").read_bytes())


def test_with_an_address_every_page_has_its_own(quick: Publish, out: Path) -> None:
    quick(address=ADDRESS)
    for page in pages(out):
        found = tags(page)
        path = page.relative_to(out).as_posix()
        there = f"{ADDRESS}/{path}".removesuffix("/index.html") if path == "index.html" else ""
        assert found["og:url"].rstrip("/") == (there or f"{ADDRESS}/{path}")
        assert found["og:title"] and found["og:description"] == found["description"]
        assert f'rel="canonical" href="{found["og:url"]}"' in page.read_text("utf-8")
    made = json.loads((out / "v1" / "tables.json").read_bytes())
    assert made["address"] == f"{ADDRESS}/" and "docs" not in made
    assert made["answer"] in tags(out / "v1" / "index.html")["og:description"]
    (report,) = check_versions(out)
    assert report.differences == []


def test_the_next_version_keeps_the_address(quick: Publish, out: Path) -> None:
    quick(address=ADDRESS)
    quick(note="Second.")
    assert json.loads((out / "v2" / "tables.json").read_bytes())["address"] == f"{ADDRESS}/"
    quick(note="Third.", address="")
    assert "address" not in json.loads((out / "v3" / "tables.json").read_bytes())


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--address", "example.org"),
        ("--address", "javascript:alert(1)"),
        ("--docs", "docs/README.md"),
    ],
)
def test_a_bad_address_is_refused_in_one_line(
    runs: Path, out: Path, option: str, text: str
) -> None:
    done = bench("publish", "--runs", runs, "--out", out, option, text)
    assert done.exit_code == 2 and not out.exists()
    assert f"{option} {text}: expected the address of a folder on the web" in done.stderr
