"""Faults of pages and of links in a folder of pages: html5lib's strict reading, and our own rules.

What a reader needs beyond that (names, headings, contrast) axe finds in the browser tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

import html5lib

XLINK = "{http://www.w3.org/1999/xlink}href"
ADDRESSES = (*["href", "src", "action", "formaction", "poster", "data", "srcset", "cite"], XLINK)
FORBIDDEN = [
    "frame",
    "frameset",
    "applet",
    "object",
    "embed",
    "iframe",
    "base",
    "template",
    "foreignObject",
]


def faults(text: str) -> list[str]:
    """List the faults of a page, in words."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=True)
    elements = list(parser.parse(text).iter())
    ids = Counter(str(one.get("id")) for one in elements if one.get("id") is not None)
    return [
        *(f"line {place[0]}: {code} {values or ''}" for place, code, values in parser.errors),
        *(f"the id {name!r} stands {count} times" for name, count in ids.items() if count > 1),
        *(fault for element in elements for fault in _element(element)),
    ]


def _element(element: Element) -> Iterator[str]:
    if not isinstance(element.tag, str):  # a comment
        return
    tag = element.tag.rsplit("}", 1)[-1]
    if tag in FORBIDDEN:
        yield f"a {tag}"
    if tag == "script" and not element.get("src") and element.get("type") != "application/json":
        yield "a script within the page"
    if tag == "meta" and element.get("http-equiv", "").lower() == "refresh":
        yield "a page that goes elsewhere by itself"
    for name, value in element.attrib.items():
        if name.lower().startswith("on"):
            yield f"{tag} has {name}"
        icon = tag == "link" and value == "data:,"  # without it a browser asks for /favicon.ico
        if name in ADDRESSES and not icon and (odd := odd_address(value)):
            yield f"{tag} {name}: {odd}"


def odd_address(address: str) -> str | None:
    """Say why an address is refused: only relative ones and https are allowed."""
    parts = urlsplit(address.strip())
    if parts.scheme == "https":
        return None if parts.netloc else f"no host in {address[:60]!r}"
    if parts.scheme or parts.netloc or address.startswith(("/", "\\")):
        return f"neither relative nor https: {address[:60]!r}"
    return None


def ids_and_links(text: str) -> tuple[set[str], list[str]]:
    """Return the ids of a page, and every address that it names."""
    root = html5lib.parse(text)
    links = []
    for element in root.iter():
        links += [element.attrib[name] for name in ADDRESSES if name in element.attrib]
    return {element.attrib["id"] for element in root.iter() if "id" in element.attrib}, links


def broken_links(folder: Path) -> list[str]:
    """Find relative links below ``folder`` that lead out of it, to no file, or to no place on a
    page.
    """
    pages = {
        path: ids_and_links(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    found = []
    for path, (_, links) in pages.items():
        for link in sorted(set(links)):
            why = _broken(link, path, folder, pages)
            if why:
                found.append(f"{path.relative_to(folder)}: {why}")
    return found


def _broken(
    link: str, page: Path, folder: Path, pages: dict[Path, tuple[set[str], list[str]]]
) -> str | None:
    parts = urlsplit(link)
    if parts.scheme:
        return None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_relative_to(folder.resolve()):
        return f"{link} leads out of the folder"
    if target.is_dir():  # a host would show its index; from a disk it is a list of files
        return f"{link} is a folder, not a page"
    if not target.is_file():
        return f"{link} leads to no file"
    if parts.fragment and "=" not in parts.fragment and target.suffix == ".html":
        ids = next(found for path, (found, _) in pages.items() if path.resolve() == target)
        if unquote(parts.fragment) not in ids:
            return f"{link}: no such place on that page"
    return None
