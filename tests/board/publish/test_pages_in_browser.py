"""All kinds of pages in a real browser: nothing is asked of anybody else, nothing complains,
nothing is hard to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import PHONE, WIDE, address, host, under, violations, visit
from published import SUB_PATH

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.nightly  # each of them drives a browser

SERIOUS = ("serious", "critical")
WCAG = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
KINDS = {
    "main": "index.html",
    "run": "runs/*/index.html",
    "method": "methods/*.html",
    "versions": "../index.html",
}


def page_of(version: Path, kind: str) -> Path:
    """The largest page of that kind: the one with most on it."""
    if kind == "versions":
        return version.parent / "index.html"
    return max(version.glob(KINDS[kind]), key=lambda path: (path.stat().st_size, path))


@pytest.fixture(scope="module")
def base(site: Path) -> Iterator[str]:
    """The address of the site on a static host, under a path of its own."""
    root = site.parents[len(Path(SUB_PATH).parts) + 1]
    with host(root) as found:
        yield under(found, f"{SUB_PATH}/leaderboards")


@pytest.mark.parametrize("kind", KINDS)
def test_under_a_path_of_a_host_nothing_else_is_asked_for(
    chromium: Browser, site: Path, base: str, kind: str
) -> None:
    path = page_of(site, kind).resolve().relative_to(site.parent.resolve())
    with visit(chromium, under(base, str(path))) as seen:
        assert seen.troubles == []
        assert seen.outside(base) == []


def test_pages_of_hostile_runs_run_nothing(chromium: Browser, hostile_site: Path) -> None:
    pages = sorted(hostile_site.parent.rglob("*.html"))
    for path in pages:
        with visit(chromium, address(path)) as seen:
            assert seen.troubles == [], path
            assert seen.outside(address(hostile_site.parent)) == [], path
            press_everything(seen.page)
            assert seen.page.evaluate("window.hit") is None, path
            assert seen.troubles == [], path
            assert seen.page.evaluate("document.querySelectorAll('img[src=x]').length") == 0, path


def press_everything(page: Page) -> None:
    """Every button and every heading that can be opened: texts of records are put in place by a
    script, too.
    """
    page.evaluate("""() => {
        for (const one of document.querySelectorAll('details')) one.open = true;
        for (const one of document.querySelectorAll('button, th[tabindex], td a')) {
            one.addEventListener('click', event => event.preventDefault());
            one.click();
        }
        for (const one of document.querySelectorAll('input')) {
            one.value = '<img src=x onerror="window.hit=1">';
            one.dispatchEvent(new Event('input', {bubbles: true}));
        }
    }""")


def test_hostile_words_in_the_address_do_nothing(chromium: Browser, site: Path) -> None:
    page = address(page_of(site, "main"))
    for view in (
        "#<img src=x onerror=window.hit=1>",
        "?search=<script>window.hit=1</script>#suite=<b>&sort=__proto__&baseline=constructor",
        "#%",
        "#sort=%E0%A4%A",
        "#" + "x" * 5000,
        "#suite=%00",
    ):
        with visit(chromium, page + view) as seen:
            assert seen.troubles == [], view
            assert seen.page.evaluate("window.hit") is None, view
            assert (
                seen.page.locator("table:visible").count()
                or seen.page.locator("p.empty").is_visible()
            ), view


@pytest.mark.parametrize(
    ("kind", "size", "dark"),
    [(kind, *view) for kind in KINDS for view in ((WIDE, False), (PHONE, True))],
)
def test_no_serious_finding_of_accessibility(
    chromium: Browser, site: Path, kind: str, size: Any, dark: bool
) -> None:
    with visit(chromium, address(page_of(site, kind)), size, dark=dark) as seen:
        for one in seen.page.locator("details").all()[:12]:  # more of the same takes a minute
            one.evaluate("one => { one.open = true }")
        found = violations(seen.page, options=WCAG)
        serious = [
            (one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in SERIOUS
        ]
        assert serious == []
