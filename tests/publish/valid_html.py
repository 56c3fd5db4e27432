"""What is wrong with a page, and with the links of a folder of pages: html5lib's strict reading, and the rules that it does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

import html5lib

HTML, SVG, XLINK = (
    "{http://www.w3.org/1999/xhtml}",
    "{http://www.w3.org/2000/svg}",
    "{http://www.w3.org/1999/xlink}",
)
ADDRESSES = (
    "href",
    "src",
    "action",
    "formaction",
    "poster",
    "data",
    "srcset",
    "cite",
    XLINK + "href",
)
NAMED = (
    "for",
    "aria-labelledby",
    "aria-describedby",
    "aria-controls",
    "aria-owns",
    "headers",
    "list",
)
"""Attributes that name ids of their own page."""
RUNS = ("a", "button", "input", "select", "textarea", "label", "summary")
OLD = (
    "center",
    "font",
    "marquee",
    "frame",
    "frameset",
    "applet",
    "object",
    "embed",
    "iframe",
    "base",
    "template",
)
FORBIDDEN = (*OLD, "foreignObject")


def faults(text: str) -> list[str]:
    """Of one page, in words; empty where there are none."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=True)
    root = parser.parse(text)
    found = [
        f"line {place[0]}: {code} {values or ''}".strip() for place, code, values in parser.errors
    ]
    if not text.lstrip().lower().startswith("<!doctype html>"):
        found.append("no doctype")
    return (
        found
        + list(_page(root))
        + [one for element in root.iter() for one in _element(element)]
        + list(_nesting(root))
    )


def _page(root: Element) -> Iterator[str]:
    if not root.get("lang"):
        yield "html has no lang"
    tags = Counter(str(element.tag).removeprefix(HTML) for element in root.iter())
    for name in ("title", "h1", "main"):
        if tags[name] != 1:
            yield f"{tags[name]} {name}"
    metas = [element.attrib for element in root.iter(HTML + "meta")]
    if not any("charset" in one for one in metas) or not any(
        one.get("name") == "viewport" for one in metas
    ):
        yield "no charset or no viewport"
    ids = Counter(
        identity for element in root.iter() if (identity := element.get("id")) is not None
    )
    yield from (f"the id {name!r} stands {count} times" for name, count in ids.items() if count > 1)
    yield from (
        f"the id {name!r} is empty or holds a space"
        for name in ids
        if not name or name.split() != [name]
    )
    for element in root.iter():
        for attribute in NAMED:
            missing = [name for name in element.get(attribute, "").split() if name not in ids]
            yield from (f"{attribute} names {name!r}, which is not there" for name in missing)
    last = 0
    for element in root.iter():
        tag = str(element.tag).removeprefix(HTML)
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            if int(tag[1]) > last + 1:
                yield f"{tag} after h{last}: {''.join(element.itertext())[:40]}"
            last = int(tag[1])


def _element(element: Element) -> Iterator[str]:
    if not isinstance(element.tag, str):  # a comment
        return
    tag = element.tag.rsplit("}", 1)[-1]
    if tag in FORBIDDEN:
        yield f"a {tag}"
    if tag == "script" and not element.get("src") and element.get("type") != "application/json":
        yield "a script within the page"
    if tag == "img" and element.get("alt") is None:
        yield "an img without alt"
    if tag == "th" and element.get("scope") not in ("col", "row", "colgroup", "rowgroup"):
        yield f"a th without scope: {''.join(element.itertext())[:40]}"
    if tag == "meta" and element.get("http-equiv", "").lower() == "refresh":
        yield "a page that goes elsewhere by itself"
    for name, value in element.attrib.items():
        if name.lower().startswith("on"):
            yield f"{tag} has {name}"
        empty_icon = (
            tag == "link" and element.get("rel") == "icon" and value == "data:,"
        )  # without it a browser asks for /favicon.ico
        if name in ADDRESSES and not empty_icon and (odd := odd_address(value)):
            yield f"{tag} {name}: {odd}"
        if name == "target" and "noopener" not in element.get("rel", ""):
            yield "a target without rel=noopener"


def odd_address(address: str) -> str | None:
    """What is wrong with an address: only relative ones and https are allowed."""
    parts = urlsplit(address.strip())
    if parts.scheme == "https":
        return None if parts.netloc else f"no host in {address[:60]!r}"
    if parts.scheme or parts.netloc or address.startswith(("/", "\\")):
        return f"neither relative nor https: {address[:60]!r}"
    return None


def _nesting(root: Element) -> Iterator[str]:
    """What a reader can press must not hold another such thing."""

    def walk(element: Element, outer: str) -> Iterator[str]:
        tag = str(element.tag).rsplit("}", 1)[-1]
        if (
            tag in RUNS
            and outer
            and not (outer == "label" and tag != "label")
            and not (outer == "summary" and tag == "label")
        ):
            yield f"{tag} within {outer}"
        for child in element:
            yield from walk(child, tag if tag in RUNS else outer)

    return walk(root, "")


# --- a folder of pages ---


def ids_and_links(text: str) -> tuple[set[str], list[str]]:
    """The ids of a page, and every address that it names."""
    root = html5lib.parse(text)
    links = [
        element.attrib[name]
        for element in root.iter()
        for name in ADDRESSES
        if name in element.attrib
    ]
    return {element.attrib["id"] for element in root.iter() if "id" in element.attrib}, links


def broken_links(folder: Path) -> list[str]:
    """Relative links of every page below ``folder`` that lead out of it, to no file, or to no place on its page."""
    pages = {
        path: ids_and_links(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
    }
    return [
        f"{path.relative_to(folder)}: {why}"
        for path, (_, links) in pages.items()
        for link in sorted(set(links))
        if (why := _broken(link, path, folder, pages))
    ]


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
