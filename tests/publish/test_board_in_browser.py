"""The main page as its reader uses it: order, choices, baseline, search, the panel of a number, the address, the keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import PHONE, Visit, address, chromium, host, under, visit  # noqa: F401 - fixtures
from playwright.sync_api import Browser, Locator, Page, expect
from published import SUB_PATH, site  # noqa: F401 - fixtures

STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


@pytest.fixture
def seen(chromium: Browser, site: Path) -> Iterator[Visit]:  # noqa: F811
    """The main page, from the disk. Nothing may have gone wrong by the end of a test."""
    with visit(chromium, address(site / "index.html")) as found:
        yield found
        assert found.troubles == []


@pytest.fixture
def page(seen: Visit) -> Page:
    return seen.page


def shown_tables(page: Page) -> Locator:
    return page.locator("section.scores:visible")


def rows(page: Page) -> Locator:
    """Those of the first table that is shown, without the printed ones."""
    return shown_tables(page).first.locator("tbody tr:not(.printed):visible")


def column(page: Page, name: str) -> list[float]:
    """The numbers of a column, from the top; a missing one is NaN."""
    at = [one.inner_text().strip() for one in shown_tables(page).first.locator("thead tr:last-child th").all()].index(name)
    found = [row.locator("th, td").nth(at) for row in rows(page).all()]
    texts = [cell.locator("a").first.inner_text() if cell.locator("a").count() else "nan" for cell in found]
    return [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]


def methods(page: Page) -> list[str]:
    return [one.inner_text() for one in rows(page).locator("th.method").all()]


def header(page: Page, name: str) -> Locator:
    return shown_tables(page).first.get_by_role("columnheader", name=name, exact=True)


def sort_by(page: Page, name: str) -> None:
    header(page, name).get_by_role("button").click()


def switch(page: Page, key: str) -> Locator:
    return page.locator(f"nav [data-key={key}]")


def choose(page: Page, key: str, value: str) -> None:
    switch(page, key).locator(f"a[data-value='{value}']").click()


def current(page: Page, key: str) -> str | None:
    return switch(page, key).locator("a[aria-current]").get_attribute("data-value")


def test_the_first_screen_answers(page: Page) -> None:
    assert page.locator("p.answer").inner_text().endswith(".")
    assert "no evidence" in page.locator("p.note").inner_text()
    assert set(STS) <= set(shown_tables(page).first.locator("thead").inner_text().split())
    assert {table.get_attribute("data-suite") for table in shown_tables(page).all()} == {"sts"}


# --- order ---


@pytest.mark.parametrize("name", ["STS12", "SICK-R"])
def test_sorting_by_a_task(page: Page, name: str) -> None:
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


def test_sorting_by_name_and_by_parameters(page: Page) -> None:
    sort_by(page, "method")
    names = [name.lower() for name in methods(page)]
    assert names == sorted(names)
    sort_by(page, "params")
    assert header(page, "params").get_attribute("aria-sort") == "ascending"


def test_a_row_keeps_its_printed_lines_below_it_when_sorted(page: Page) -> None:
    def below() -> dict[str, str]:
        lines = shown_tables(page).first.locator("tbody tr").all()
        return {
            lines[i - 1].inner_text(): line.inner_text()
            for i, line in enumerate(lines)
            if "printed" in (line.get_attribute("class") or "")
        }

    choose(page, "backbone", "bert-base-uncased")
    before, order = below(), methods(page)
    sort_by(page, "STS13")
    sort_by(page, "STS13")
    assert below() == before != {}
    assert methods(page) == order[::-1]


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


# --- choices ---


def test_every_choice_leaves_as_many_rows_as_it_says(page: Page) -> None:
    for key in ("setting", "backbone", "suite", "text"):
        for value in [one.get_attribute("data-value") for one in switch(page, key).locator("a").all()]:
            assert value is not None
            link = switch(page, key).locator(f"a[data-value='{value}']")
            said = int(link.locator("small").inner_text())
            link.click()
            assert page.locator("section.scores:visible tbody tr:not(.printed):visible").count() == said > 0
            assert f"{said} row" in page.locator("nav output").inner_text()
            assert current(page, key) == value
            wrong = [one for one in shown_tables(page).all() if value not in ("all", one.get_attribute(f"data-{key}"))]
            assert wrong == []


def test_a_view_can_be_linked(page: Page, chromium: Browser) -> None:  # noqa: F811
    choose(page, "suite", "transfer")
    sort_by(page, "MR")
    choose(page, "baseline", "promcse")
    page.get_by_label("search").fill("p")
    text, numbers, where = methods(page), column(page, "MR"), page.url
    with visit(chromium, where) as again:
        assert methods(again.page) == text and column(again.page, "MR") == numbers
        assert current(again.page, "baseline") == "promcse" and again.page.get_by_label("search").input_value() == "p"
        assert again.troubles == []


def test_a_setting_that_another_backbone_has_takes_the_backbone_along(page: Page) -> None:
    choose(page, "backbone", "bert-base-uncased")
    choose(page, "setting", "supervised")
    assert shown_tables(page).count() == 1
    assert (current(page, "setting"), current(page, "backbone")) == ("supervised", "builtin")


def test_an_address_that_names_nothing_shows_the_whole_page(chromium: Browser, site: Path) -> None:  # noqa: F811
    for view in ("#suite=nonsense", "#cell=a/b/c", "#sort=nonsense", "#show=nonsense&baseline=nobody", "#nowhere"):
        with visit(chromium, address(site / "index.html") + view) as one:
            assert one.troubles == []
            assert shown_tables(one.page).count() > 0 or one.page.locator("p.empty").is_visible(), view


def test_a_table_can_be_linked_by_its_name(chromium: Browser, site: Path, page: Page) -> None:  # noqa: F811
    anchors = page.evaluate("[...document.querySelectorAll('section.scores h2')].map(one => one.id)")
    assert len(set(anchors)) == len(anchors) > 3
    with visit(chromium, address(site / "index.html") + "#" + anchors[-1]) as one:
        assert shown_tables(one.page).locator(f"h2[id='{anchors[-1]}']").is_visible()


def test_ours_and_papers(page: Page) -> None:
    choose(page, "backbone", "bert-base-uncased")
    printed = page.locator("section.scores:visible tr.printed:visible")
    assert printed.count() > 0
    choose(page, "show", "ours")
    assert printed.count() == 0 and rows(page).count() > 0
    assert not page.locator(".printed-tables").is_visible()
    choose(page, "show", "papers")
    assert shown_tables(page).count() == 0 and page.locator(".printed-tables").is_visible()
    page.go_back()
    assert rows(page).count() > 0


def test_printed_rows_have_no_rank(page: Page) -> None:
    lines = page.locator("section.scores tr.printed").all()
    assert lines
    for line in lines:
        assert line.locator("td.rank").all_inner_texts() in ([], [""])


# --- search ---


def test_search_leaves_the_rows_that_have_it(page: Page) -> None:
    everything, all_rows = methods(page), page.locator("section.scores:visible tbody tr:not(.printed):visible")
    number, search = all_rows.count(), page.get_by_label("search")
    search.fill("PROM")
    assert methods(page) == [one for one in everything if "prom" in one.lower()] != everything
    assert f"{all_rows.count()} of {number} rows" in page.locator("nav output").inner_text()
    search.fill("nothing has this name")
    expect(page.locator("p.empty")).to_be_visible()
    search.fill("")
    assert methods(page) == everything


# --- the baseline ---


def verdicts(page: Page, task: str) -> dict[str, str]:
    at = [one.inner_text().strip() for one in shown_tables(page).first.locator("thead tr:last-child th").all()].index(task)
    return {
        row.locator("th.method").inner_text(): (row.locator("th, td").nth(at).locator("i").first.text_content() or "")
        for row in rows(page).all()
    }


def test_another_baseline_turns_the_verdicts_round(page: Page) -> None:
    names = [one.get_attribute("data-value") for one in switch(page, "baseline").locator("li:visible a").all()]
    assert {"simcse", "promptbert"} <= set(names)
    choose(page, "baseline", "simcse")
    first = verdicts(page, "STS12")
    assert first["simcse"] == "" and first["promptbert"] == "better"
    assert page.locator(".against:visible .baseline").first.inner_text() == "simcse"
    choose(page, "baseline", "promptbert")
    second = verdicts(page, "STS12")
    assert second["promptbert"] == "" and second["simcse"] == "worse"
    assert page.locator(".against:visible .baseline").first.inner_text() == "promptbert"
    page.go_back()
    assert verdicts(page, "STS12") == first


def test_a_verdict_is_never_colour_alone(page: Page) -> None:
    signs = page.locator("section.scores:visible tbody td i:visible")
    words = {one.text_content() for one in signs.all()}
    assert words <= {"better", "worse", "cannot tell", ""} and "better" in words


# --- the panel of a number ---


def first_number(page: Page) -> Locator:
    return rows(page).first.locator("td:visible > a").nth(1)


def test_a_number_tells_what_it_is_made_of(page: Page, site: Path) -> None:  # noqa: F811
    row = shown_tables(page).first.locator("tbody tr", has=page.locator("th", has_text="promptbert")).first
    at = [one.inner_text().strip() for one in shown_tables(page).first.locator("thead tr:last-child th").all()].index("STS12")
    row.locator("th, td").nth(at).locator("a").click()
    panel = page.get_by_role("dialog")
    said = panel.inner_text()
    records = [json.loads(path.read_text()) for path in site.glob("runs/promptbert-builtin-s[123]-*/run.json")]
    assert len(records) == 3
    for record in records:
        (score,) = [one for one in record["scores"] if one["task"] == "STS12"]
        assert f"{score['value']:.2f}" in said and record["provenance"]["command"] in said
    assert "senteval-all/1" in said and "interval" in said and "150" in said
    for link in panel.get_by_role("link").all():
        path = site / unquote(str(link.get_attribute("href")))
        assert path.is_file(), path


def test_the_panel_closes_and_the_number_is_where_one_was(page: Page) -> None:
    number = first_number(page)
    number.click()
    panel = page.get_by_role("dialog")
    expect(panel).to_be_visible()
    expect(number).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(number).to_be_focused()
    number.click()
    page.get_by_role("button", name="close").click()
    expect(panel).to_have_count(0)
    number.click()
    page.locator("p.answer").click()
    expect(panel).to_have_count(0)


def test_a_panel_can_be_linked_and_the_back_button_closes_it(page: Page, chromium: Browser) -> None:  # noqa: F811
    first_number(page).click()
    said = page.get_by_role("dialog").inner_text()
    with visit(chromium, page.url) as again:
        assert again.page.get_by_role("dialog").inner_text() == said
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_command_can_be_copied(chromium: Browser, site: Path) -> None:  # noqa: F811
    """On a host, where a page may write to the clipboard."""
    root = site.parents[len(Path(SUB_PATH).parts) + 1]
    with (
        host(root) as base,
        visit(
            chromium, under(base, f"{SUB_PATH}/leaderboards/v1/index.html"), permissions=["clipboard-read", "clipboard-write"]
        ) as one,
    ):
        first_number(one.page).click()
        box = one.page.get_by_role("dialog").locator(".command").first
        box.get_by_role("button", name="copy").click()
        expect(box.get_by_role("button")).to_have_text("copied")
        assert one.page.evaluate("navigator.clipboard.readText()") == box.locator("pre").inner_text()


def test_a_panel_fits_on_a_phone(chromium: Browser, site: Path) -> None:  # noqa: F811
    with visit(chromium, address(site / "index.html"), PHONE) as one:
        first_number(one.page).click()
        box = one.page.get_by_role("dialog").bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= PHONE[0]
        assert one.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE[0]


def test_the_average_comes_right_after_the_method_on_a_phone(chromium: Browser, site: Path) -> None:  # noqa: F811
    with visit(chromium, address(site / "index.html"), PHONE) as one:
        heads = [
            head.inner_text().strip()
            for head in shown_tables(one.page).first.locator("thead tr:last-child th").all()
            if head.is_visible()
        ]
        assert heads[:2] == ["method", "Avg."] and heads.count("Avg.") == 1


# --- the keyboard ---


def test_all_of_it_works_by_keyboard(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("to the tables")  # the first stop leads past everything
    tab_to(page, "nav [data-key=suite] a[data-value=transfer]")
    page.keyboard.press("Enter")
    assert current(page, "suite") == "transfer"
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
        if page.evaluate("one => document.activeElement.matches(one.replaceAll(':visible', ''))", selector):
            return
    raise AssertionError(f"{selector} is not reached by Tab")


def test_what_has_the_focus_can_be_seen(page: Page) -> None:
    for selector in ("nav a", "th button", "td > a", "summary"):
        one = page.locator(f"{selector}:visible").first
        one.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        style = page.evaluate(
            "(() => { const s = getComputedStyle(document.activeElement); return [s.outlineStyle, parseFloat(s.outlineWidth)]; })()"
        )
        assert style[0] != "none" and style[1] >= 1, selector
