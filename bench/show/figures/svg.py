"""From what the drawing library writes to an <svg> element that fits a page: its colours follow the page, its ids are its own.

Text stays text, coordinates have one decimal, and nothing in it depends on the clock. Everything foreign is escaped, because
the element is written from a parsed tree.
"""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Set
from itertools import groupby

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
SPACE = re.compile(r"\s*([A-Za-z,()])\s*|\s+")
DRAWN = ("d", "x", "y", "transform", "points", "width", "height", "stroke-width", "stroke-dasharray", "stroke-dashoffset")
KEPT = ("fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "opacity", "text-anchor")
"""Properties of a mark that are kept; others are the library's habits, which the style sheet says once."""

INHERITED = ("class", *(key for key in KEPT if key not in ("opacity", "text-anchor")))

COLOURS: Mapping[str, tuple[str, str]] = {
    "#010101": ("ink", "#1c1b19"),
    "#020202": ("quiet", "#66625b"),
    "#030303": ("line", "#d9d5cc"),
    "#040404": ("accent", "#8a3b12"),
    "#050505": ("paper", "#fdfcf9"),
    "#060606": ("second", "#2b6ca3"),
    "#070707": ("third", "#2f7d55"),
}
"""What the library draws with, and what is meant: the page's variable, and its value where there is no page."""
PREFIX = {"fill": "bf", "stroke": "bs"}  # of the classes
OWN = ("second", "third")  # the page knows nothing of these, so they are set on the drawing itself
DARK = {
    "ink": "#e9e6df",
    "quiet": "#a39d92",
    "line": "#3a3731",
    "accent": "#e5a26f",
    "paper": "#171614",
    "second": "#7db4e6",
    "third": "#7cc49b",
}
INK, QUIET, LINE, ACCENT, PAPER, SECOND, THIRD = COLOURS
FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'


def style(used: Set[str]) -> str:
    """The rules of a drawing that uses these classes. Its own colours count where it is a file of its own; in a page, the page's."""
    page = [(name, value) for name, value in COLOURS.values() if name not in OWN]
    own = [(name, value) for name, value in COLOURS.values() if name in OWN and {f"{one}-{name}" for one in PREFIX.values()} & used]
    light, light_own = (_variables(which) for which in (page, own))
    dark, dark_own = (_variables([(name, DARK[name]) for name, _ in which]) for which in (page, own))
    uses = "".join(  # who knows no variables takes the first
        f".{prefix}-{name}{{{kind}:{value};{kind}:{'currentColor' if name == 'ink' else f'var(--{name},{value})'}}}"
        for name, value in COLOURS.values()
        for kind, prefix in PREFIX.items()
        if f"{prefix}-{name}" in used
    )
    return (
        f"svg:root{{{light}color:var(--ink)}}.bench-figure{{{light_own}width:100%;height:auto;max-width:520px;overflow:visible;"
        f"font-family:var(--sans,{FONT});font-variant-numeric:tabular-nums}}"
        f".bench-figure *{{stroke-linecap:round;stroke-linejoin:round}}{uses}"
        f"@media screen and (prefers-color-scheme:dark){{svg:root{{{dark}}}{f'.bench-figure{{{dark_own}}}' if own else ''}}}"
    )


def _variables(colours: Iterable[tuple[str, str]]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours)


def finished(drawn: str, name: str, title: str, alt: str, tips: Mapping[str, str]) -> str:
    """The element that stands for the ``drawn`` file. ``tips``: id of a mark -> what is shown when it is pointed at."""
    root = ET.fromstring(drawn)
    view = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib.update({"class": "bench-figure", "viewBox": view, "role": "img", "aria-labelledby": f"bf-{name}-title bf-{name}-alt"})
    for child in list(root):
        if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}defs"):
            root.remove(child)
    targets = dict.fromkeys(target for element in root.iter() if (target := element.get(f"{{{XLINK}}}href")))
    short = hashlib.sha256(name.encode()).hexdigest()[:6]  # a drawing of many marks names its targets a thousand times
    ids = {target.removeprefix("#"): f"b{short}-{i}" for i, target in enumerate(targets, 1)}
    _walk(root, ids, tips)
    for child in list(root):
        _flatten(child)
        _gather(child)
    used = {name for element in root.iter() for name in element.get("class", "").split()}
    head = [
        _element("title", title, id=f"bf-{name}-title"),
        _element("desc", alt, id=f"bf-{name}-alt"),
        _element("style", style(used)),
    ]
    root[:0] = head
    ET.register_namespace("", SVG)
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _element(tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.Element(f"{{{SVG}}}{tag}", attributes)
    element.text = text
    return element


def _walk(root: ET.Element, ids: Mapping[str, str], tips: Mapping[str, str]) -> None:
    for element in root.iter():
        element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None
        if element is root:
            continue
        own = element.attrib.pop("id", "")
        if own in ids:
            element.set("id", ids[own])
        element.attrib.pop("clip-path", None)
        target = element.attrib.pop(f"{{{XLINK}}}href", None)
        if target is not None:
            element.set("href", "#" + ids[target.removeprefix("#")])
        _restyle(element)
        for key in DRAWN:
            if key in element.attrib:
                element.set(key, SPACE.sub(lambda found: found.group(1) or " ", NUMBER.sub(_short, element.attrib[key])).strip())
        if own in tips:  # of a mark, not a target
            element.insert(0, _element("title", tips[own]))


def _restyle(element: ET.Element) -> None:
    """The style attribute as attributes, and as classes of the colours that a page's style sheet says."""
    rules = [rule.partition(":") for rule in element.attrib.pop("style", "").split(";") if rule.strip()]
    found = {key.strip(): value.strip() for key, _, value in rules}
    classes = []
    for key in KEPT:
        if key not in found or (key, found[key]) in (("stroke-width", "1"), ("opacity", "1"), ("text-anchor", "start")):
            continue
        meant = COLOURS.get(found[key])
        if meant and key in PREFIX:
            classes.append(f"{PREFIX[key]}-{meant[0]}")
        else:
            element.set(key, found[key])
    if classes:
        element.set("class", " ".join(classes))
    if element.tag == f"{{{SVG}}}text":
        size = re.search(r"([\d.]+)px", found.get("font", "") or found.get("font-size", ""))
        if size:
            element.set("font-size", size.group(1))
        if "700" in found.get("font", "") or "bold" in found.get("font", ""):
            element.set("font-weight", "600")
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]


def _flatten(element: ET.Element) -> None:
    """Groups that say nothing are replaced by what they hold."""
    for child in list(element):
        _flatten(child)
    kept: list[ET.Element] = []
    for child in element:
        if child.tag == f"{{{SVG}}}g" and not child.attrib and not any(one.tag == f"{{{SVG}}}title" for one in child):
            kept.extend(child)
        elif not (child.tag == f"{{{SVG}}}defs" and not len(child)):
            kept.append(child)
    element[:] = kept


def _gather(element: ET.Element) -> None:
    """Neighbours that are drawn alike stand in a group, which says once how."""
    kept: list[ET.Element] = []
    for look, some in groupby(element, _look):
        alike = list(some)
        if look and len(alike) > 2:
            for mark in map(_mark, alike):
                for key, _ in look:
                    del mark.attrib[key]
            group = ET.Element(f"{{{SVG}}}g", dict(look))
            group.extend(alike)
            alike = [group]
        else:
            for child in alike:
                _gather(child)
        kept += alike
    element[:] = kept


def _mark(element: ET.Element) -> ET.Element:
    """What is drawn: the element itself, or what stands beside its title."""
    return element[-1] if element.tag == f"{{{SVG}}}g" and not element.attrib and len(element) == 2 else element


def _look(element: ET.Element) -> tuple[tuple[str, str], ...]:
    """The properties of a mark that it may have from its group."""
    mark = _mark(element)
    marks = (f"{{{SVG}}}path", f"{{{SVG}}}use")
    return tuple((key, mark.attrib[key]) for key in INHERITED if key in mark.attrib) if mark.tag in marks else ()


def _short(number: re.Match[str]) -> str:
    text = f"{float(number.group()):.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
