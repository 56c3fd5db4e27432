"""The panel of a number on the main page, the page on a phone, and all of it by keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from board_page import column, current, show_tasks, shown_tables
from browser import Visit, expect

from bench.board.repeat import NOT_REPEATABLE

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.nightly  # each of them drives a browser


def test_a_number_tells_what_it_is_made_of(page: Page, site: Path) -> None:
    show_tasks(page)
    row = (
        shown_tables(page)
        .first.locator("tbody tr", has=page.locator("th", has_text="promptbert"))
        .first
    )
    at = [
        one.inner_text().strip()
        for one in shown_tables(page).first.locator("thead tr:last-child th").all()
    ].index("STS12")
    row.locator("th, td").nth(at).locator("a").click()
    panel = page.get_by_role("dialog")
    said = panel.inner_text()
    records = [
        json.loads(path.read_text())
        for path in site.glob("runs/promptbert-builtin-s[123]-*/run.json")
    ]
    assert len(records) == 3
    for record in records:
        (score,) = [one for one in record["scores"] if one["task"] == "STS12"]
        assert f"{score['value']:.2f}" in said
    assert NOT_REPEATABLE in said, "runs without a plan"
    assert "senteval-all/1" in said and "interval" in said and "150" in said
    for link in panel.get_by_role("link").all():
        path = site / unquote(str(link.get_attribute("href")))
        assert path.is_file(), path


def test_all_of_it_works_by_keyboard(seen: Visit) -> None:
    page = seen.page
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text(
        "to the tables"
    )  # the first stop leads past everything, and unfolds what it leads to
    page.keyboard.press("Enter")
    tab_to(page, "nav [data-key=suite] a[data-value=transfer]")
    page.keyboard.press("Enter")
    expect(page.locator("nav [data-key=suite] a[data-value=transfer]")).to_have_attribute(
        "aria-current", "true"
    )  # after the address
    assert current(page, "suite") == "transfer"
    show_tasks(page)
    tab_to(page, "section.scores:visible th[data-sort=CR] button")
    page.keyboard.press("Enter")
    values = column(page, "CR")
    assert values == sorted(values, reverse=True)
    tab_to(page, "section.scores:visible td > a")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    number = page.locator("td > a:focus")
    assert number.evaluate("one => one.closest('tr').sectionRowIndex") >= 1
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_focused()
    page.keyboard.press("Escape")
    expect(number).to_be_focused()


def tab_to(page: Page, selector: str, most: int = 80) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(
            "one => document.activeElement.matches(one.replaceAll(':visible', ''))", selector
        ):
            return
    raise AssertionError(f"{selector} is not reached by Tab")
