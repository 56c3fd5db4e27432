"""The main page in a browser, and the reading of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import Visit, address, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

ROWS = "table.main tbody:not(.finished) tr:not(.printed):visible"
STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


@pytest.fixture
def seen(chromium: Browser, site: Path) -> Iterator[Visit]:
    """Open the main page from the disk; fail if anything went wrong by the end of the test."""
    with visit(chromium, address(site / "index.html")) as found:
        yield found
        assert found.troubles == []


@pytest.fixture
def page(seen: Visit) -> Page:
    """Return the page with its tables unfolded."""
    seen.page.locator(".all-tables > summary").click()
    return seen.page


def settle(page: Page) -> None:
    """Wait for the page: a click or a step back changes the address first, and the page later."""
    page.evaluate(
        "() => new Promise((done) => "
        "setTimeout(() => requestAnimationFrame(() => setTimeout(done))))"
    )


def shown_tables(page: Page) -> Locator:
    settle(page)
    return page.locator("section.scores:visible")


def rows(page: Page) -> Locator:
    """Return the rows of the first visible table, without the printed ones."""
    return shown_tables(page).first.locator(ROWS)


def column(page: Page, name: str) -> list[float]:
    """Return the numbers of a column, from the top; a missing one is NaN."""
    at = [
        one.inner_text().strip()
        for one in shown_tables(page).first.locator("thead tr:last-child th").all()
    ].index(name)
    found = [row.locator("th, td").nth(at) for row in rows(page).all()]
    texts = [
        cell.locator("a").first.inner_text() if cell.locator("a").count() else "nan"
        for cell in found
    ]
    return [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]


def methods(page: Page) -> list[str]:
    return [one.inner_text() for one in rows(page).locator("th.method").all()]


def header(page: Page, name: str) -> Locator:
    return shown_tables(page).first.get_by_role("columnheader", name=name, exact=True)


def show_tasks(page: Page) -> None:
    """Show the columns of single tasks in every visible table."""
    for switch_tasks in page.locator(".switch-tasks:visible").all():
        switch_tasks.check()


def sort_by(page: Page, name: str) -> None:
    show_tasks(page)
    header(page, name).get_by_role("button").click()


def switch(page: Page, key: str) -> Locator:
    return page.locator(f"nav [data-key={key}]")


def choose(page: Page, key: str, value: str) -> None:
    switch(page, key).locator(f"a[data-value='{value}']").click()
    settle(page)


def current(page: Page, key: str) -> str | None:
    return switch(page, key).locator("a[aria-current]").get_attribute("data-value")
