"""The checker of pages finds what it is for; without that, a page without faults would mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from valid_html import broken_links, faults, odd_address

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>t</title></head>
<body><main><h1 id="top">t</h1><p>text <a href="other.html#there">other</a></p>HERE</main></body></html>
"""


def test_a_page_without_faults() -> None:
    assert (
        faults(
            PAGE.replace(
                "HERE", "<h2>b</h2><table><thead><tr><th scope='col'>a</th></tr></thead></table>"
            )
        )
        == []
    )


@pytest.mark.parametrize(
    ("inserted", "said"),
    [
        ("<p><div></div></p>", "unexpected-end-tag"),
        ("<b><i></b></i>", "adoption"),
        ('<p id="top"></p>', "2 times"),
        ('<p class="a" class="b"></p>', "duplicate-attribute"),
        ("<label for='nowhere'>x</label>", "nowhere"),
        ("<h3>too deep</h3>", "h3 after h1"),
        ("<img src='a.png'>", "without alt"),
        ("<table><tr><th>x</th></tr></table>", "without scope"),
        ("<script>1</script>", "script within"),
        ("<p onclick='f()'>x</p>", "onclick"),
        ("<a href='javascript:f()'>x</a>", "neither relative nor https"),
        ("<svg><a xlink:href='http://a.b'>x</a></svg>", "neither relative nor https"),
        ("<iframe src='x.html'></iframe>", "a iframe"),
        ("<a href='x'><button>y</button></a>", "button within a"),
        ("<h1>again</h1>", "2 h1"),
        ("&nosuch; x", "entity"),
    ],
)
def test_a_page_with_a_fault(inserted: str, said: str) -> None:
    found = faults(PAGE.replace("HERE", inserted))
    assert any(said in one for one in found), found


@pytest.mark.parametrize(
    "address",
    [
        "http://a.b",
        "//a.b/c",
        "/c",
        "data:text/html,x",
        " javascript:x",
        "file:///x",
        "\\\\a",
        "https:",
    ],
)
def test_addresses_that_are_refused(address: str) -> None:
    assert odd_address(address)


@pytest.mark.parametrize(
    "address",
    ["a.html", "../a.html#b", "#b", "?suite=sts", "https://a.b/c", "runs/a+b@c=d/index.html", ""],
)
def test_addresses_that_are_allowed(address: str) -> None:
    assert odd_address(address) is None


def test_links_between_pages(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    assert broken_links(tmp_path) == ["index.html: other.html#there leads to no file"]
    (tmp_path / "other.html").write_text(PAGE.replace("other.html#there", "deep"))
    assert broken_links(tmp_path) == [
        "index.html: other.html#there: no such place on that page",
        "other.html: deep is a folder, not a page",
    ]
    (tmp_path / "other.html").write_text(
        PAGE.replace("other.html#there", "../outside").replace('"top"', '"there"')
    )
    assert broken_links(tmp_path) == ["other.html: ../outside leads out of the folder"]
