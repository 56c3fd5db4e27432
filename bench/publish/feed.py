"""The Atom feed of versions (RFC 4287): one entry per version and per erratum, newest first."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from xml.etree import ElementTree

from bench.publish.errata import Erratum
from bench.publish.versions import Version

ATOM = "http://www.w3.org/2005/Atom"
MOST = 20  # entries: readers keep the older ones


def feed(versions: Sequence[Version]) -> bytes:
    """The feed as XML. Its links are relative to where it lies, as the format allows; its ids are made from the manifests."""
    ElementTree.register_namespace("", ATOM)
    newest = versions[-1]
    root = ElementTree.Element(f"{{{ATOM}}}feed")
    _text(root, "id", _id("feed", versions[0]))
    _text(root, "title", newest.title)
    errata = [one for version in versions for one in version.errata]
    _text(root, "updated", max([one.updated for one in versions] + [_midnight(one) for one in errata]))
    ElementTree.SubElement(root, f"{{{ATOM}}}link", rel="self", href="feed.xml")
    ElementTree.SubElement(root, f"{{{ATOM}}}link", href="index.html")
    author = ElementTree.SubElement(root, f"{{{ATOM}}}author")
    _text(author, "name", newest.title)
    for erratum in sorted(errata, key=lambda one: one.date, reverse=True)[:MOST]:
        entry = ElementTree.SubElement(root, f"{{{ATOM}}}entry")
        _text(entry, "id", uuid.uuid5(uuid.NAMESPACE_OID, f"erratum {erratum.version} {erratum.date} {erratum.text}").urn)
        _text(entry, "title", f"{newest.title}: erratum to {erratum.version}")
        _text(entry, "updated", _midnight(erratum))
        ElementTree.SubElement(entry, f"{{{ATOM}}}link", href=f"index.html#{erratum.version}")
        _text(entry, "summary", erratum.text)
    for one in reversed(versions[-MOST:]):
        entry = ElementTree.SubElement(root, f"{{{ATOM}}}entry")
        _text(entry, "id", _id("version", one))
        _text(entry, "title", f"{one.title}: {one.name}")
        _text(entry, "updated", one.updated)
        ElementTree.SubElement(
            entry, f"{{{ATOM}}}link", href=f"{one.name}/index.html" if one.has_page else f"{one.name}/README.md"
        )
        _text(entry, "summary", " ".join((one.answer, *(one.changes if one.changes is not None else ("The first version.",)))))
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _midnight(erratum: Erratum) -> str:
    return f"{erratum.date}T00:00:00Z"


def _id(kind: str, version: Version) -> str:
    """The same for ever, for a version never changes."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{kind} {version.name} {version.manifest}").urn


def _text(parent: ElementTree.Element, tag: str, text: str) -> None:
    """Foreign text: characters that XML cannot hold are made visible."""
    from bench.tables.words import visible

    ElementTree.SubElement(parent, f"{{{ATOM}}}{tag}").text = visible(text, limit=None)
