"""What ``bench compare`` and a version's tables.json say of rows, and where a text says the same.

The one place that knows the fields of that JSON.
"""

from __future__ import annotations

import re
from typing import Any

import html5lib

WORDS = ("better", "worse", "inconclusive")


def rows_of(table: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rows of a table by name: "promcse", "chosen+good"."""
    return {name_of(row): row for row in table["rows"]}


def name_of(row: dict[str, Any]) -> str:
    """Return a row's method, with its variant after a plus sign."""
    return "+".join(filter(None, [row["method"], row["variant"]]))


def compared(row: dict[str, Any]) -> dict[str, Any]:
    """Return difference, ci_low, ci_high, ci_level and verdict of a row; {} if it has none."""
    return row.get("against") or {}


def verdict(row: dict[str, Any]) -> str | None:
    """Return the row's word: better, worse or inconclusive; None if it is not judged."""
    word = compared(row).get("verdict")
    return word if word in WORDS else None


def hundredths(row: dict[str, Any]) -> set[float]:
    """Return a row's mean, difference and interval as every form prints them."""
    keys = ("difference", "ci_low", "ci_high")
    against = [compared(row)[key] for key in keys if compared(row)]
    return {round(value, 2) for value in (row["mean"], *against)}


def squeezed(text: str) -> str:
    """Return the letters and digits of a text in lower case: "SimCSE" is "simcse"."""
    return "".join(re.findall("[a-z0-9]", text.lower()))


def numbers(text: str) -> set[float]:
    """Return the numbers with two decimals in a text, whatever its sign of minus."""
    plain = re.sub(r"[\\${}]", "", text).replace("\N{MINUS SIGN}", "-")
    return {float(one) for one in re.findall(r"[-+]?\d+\.\d\d(?!\d)", plain)}


def says(lines: list[str], row: dict[str, Any]) -> bool:
    """Say if one of these lines has a row's name and all of its numbers."""
    return any(
        squeezed(name_of(row)) in squeezed(line) and hundredths(row) <= numbers(line)
        for line in lines
    )


def page(text: str) -> Any:
    """Read a page; raise AssertionError if it is not valid HTML."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(text)
    assert not parser.errors, parser.errors[:5]
    return tree


def text_of(element: Any) -> str:
    """Return what a reader sees of an element: no scripts and styles."""
    if element.tag in ("script", "style"):
        return ""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str):
            parts.append(text_of(child))
        parts.append(child.tail or "")
    return " ".join(parts)


def table_lines(tree: Any) -> list[str]:
    """Return the text of each row of the tables of a page."""
    return [text_of(row) for row in tree.iter("tr")]


def loaded(tree: Any) -> list[str]:
    """Return the addresses that a browser fetches when it opens the page."""
    found = []
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        names = {"link": ["href"], "a": []}.get(element.tag, ["src", "srcset", "data", "poster"])
        if element.tag in ("image", "use", "{http://www.w3.org/2000/svg}image"):
            names = ["href", "{http://www.w3.org/1999/xlink}href"]
        found += [element.attrib[name] for name in names if name in element.attrib]
        styles = [element.get("style", "")]
        if element.tag == "style":
            styles.append(element.text or "")
        for style in styles:
            found += re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)", style)
    return found


def elsewhere(addresses: list[str]) -> list[str]:
    """Return those addresses that lie on a host."""
    return [one for one in addresses if re.match(r"\s*([a-z]+:)?//", one.lower())]
