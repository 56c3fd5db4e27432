"""Every link of the published pages is followed; a dead one is named with its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.board.publish.dead_links import check_links


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "a b.html").write_text('<h1 id="top">x</h1><a href="#top">up</a>')
    (tmp_path / "index.html").write_text(
        '<a href="v1/a%20b.html#top">a</a> <a href="https://example.org/no">b</a>'
        '<a href="mailto:x@y">c</a> <img src="data:image/png;base64,AA">'
    )
    (tmp_path / "README.md").write_text("[page](v1/a%20b.html) [out](https://example.org)")
    return tmp_path


def test_a_sound_site_has_no_dead_link(site: Path) -> None:
    report = check_links(site)
    assert report.count() == 3 and not report.differences


@pytest.mark.parametrize(
    ("page", "text", "dead"),
    [
        ("index.html", '<a href="v4/index.html">v4</a>', "v4/index.html"),
        ("index.html", '<a href="v1/a%20b.html#gone">x</a>', "v1/a%20b.html#gone"),
        ("README.md", "[v4](v4/README.md)", "v4/README.md"),
    ],
)
def test_a_dead_link_is_named(site: Path, page: str, text: str, dead: str) -> None:
    file = site / page
    file.write_text(file.read_text() + text)
    (found,) = check_links(site).differences
    assert (found.what, found.why) == (page, f"leads to {dead}, which is not there")
