"""The main page as its reader uses it: order, choices, baseline, search, and the address that keeps
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from board_page import ROWS, choose, column, current, header, methods, sort_by
from browser import address, expect, visit
from made_runs import made_run
from published import publish

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.nightly  # each of them drives a browser


def scrolls_sideways(page: Page, *widths: int) -> list[int]:
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        # asked of the browser, which answers without a page's script too
        if page.locator("html").evaluate("one => one.scrollWidth") > width:
            found.append(width)
    return found


@pytest.mark.parametrize("suite", ["", "sts"])
def test_no_width_and_no_suite_makes_the_page_scroll_sideways(
    chromium: Browser, site: Path, suite: str
) -> None:
    where = address(site / "index.html") + f"#suite={suite}"
    with visit(chromium, where, script=bool(suite)) as one:
        assert scrolls_sideways(one.page, 320, 360, 640, 641, 1024, 1200, 1279, 1280, 1600) == []


def test_sorting_by_a_task(page: Page) -> None:
    name = "STS12"
    before = methods(page)
    sort_by(page, name)
    values = column(page, name)
    assert values == sorted(values, reverse=True) and len(set(values)) > 3
    expect(header(page, name)).to_have_attribute("aria-sort", "descending")
    sort_by(page, name)
    assert column(page, name) == values[::-1]
    expect(header(page, name)).to_have_attribute("aria-sort", "ascending")
    sort_by(page, name)
    assert methods(page) == before
    assert page.locator("[aria-sort]").count() == 0


def test_the_back_button_undoes_what_was_chosen(page: Page) -> None:
    begun = page.url
    sort_by(page, "STS12")
    sorted_by = methods(page)
    choose(page, "suite", "transfer")
    assert current(page, "suite") == "transfer"
    page.go_back()
    assert current(page, "suite") == "sts" and methods(page) == sorted_by
    page.go_back()
    assert page.url == begun and page.locator("[aria-sort]").count() == 0
    page.go_forward()
    assert methods(page) == sorted_by


def test_a_view_can_be_linked(page: Page, chromium: Browser) -> None:
    choose(page, "suite", "transfer")
    sort_by(page, "MR")
    page.get_by_label("search").fill("p")
    text = methods(page)
    numbers = column(page, "MR")
    where = page.url
    with visit(chromium, where) as again:
        assert methods(again.page) == text and column(again.page, "MR") == numbers
        assert again.page.get_by_label("search").input_value() == "p"
        assert again.troubles == []


def test_search_leaves_the_rows_that_have_it(page: Page) -> None:
    everything, all_rows = (methods(page), page.locator(f"section.scores:visible {ROWS}"))
    number, search = all_rows.count(), page.get_by_label("search")
    search.fill("PROM")
    assert methods(page) == [one for one in everything if "prom" in one.lower()] != everything
    assert f"{all_rows.count()} of {number} rows" in page.locator("nav output").inner_text()
    search.fill("nothing has this name")
    expect(page.locator("p.empty")).to_be_visible()
    search.fill("")
    assert methods(page) == everything


@pytest.mark.parametrize("key", ["backbone", "suite"])
def test_counts_of_the_options_add_up(page: Page, key: str) -> None:
    counts = {}
    for link in page.locator(f"nav [data-key={key}] a").all():
        text = link.locator("small").inner_text()
        counts[str(link.get_attribute("data-value"))] = int(text or 0)
    together = counts.pop("all" if "all" in counts else "")
    assert together == sum(counts.values()) > 0


def test_tables_of_another_length_are_shown_when_it_is_chosen(
    chromium: Browser, tmp_path: Path
) -> None:
    for budget, methods_of in (
        ("1000steps", ["simcse", "promcse"]),
        ("100steps", ["simcse", "ct"]),
    ):
        for method in methods_of:
            for seed in (1, 2, 3):
                made_run(tmp_path / "runs", method, seed, recipe={"budget": budget})
    version = publish(tmp_path / "runs", tmp_path / "out", "--main-budget", "1000steps")
    with visit(chromium, address(version / "index.html")) as one:
        assert current(one.page, "length") == "1000steps"
        shown = one.page.locator("section.scores:visible h2")
        assert [text.split(" steps")[0][-5:] for text in shown.all_inner_texts()] == ["1,000"]
        choose(one.page, "length", "100steps")
        assert [text.split(" steps")[0][-4:] for text in shown.all_inner_texts()] == [" 100"]
        assert "CT" in methods(one.page)
        assert one.troubles == []
