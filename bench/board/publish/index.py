"""The page of all versions, and the other files next to their folders."""

from __future__ import annotations

from collections.abc import Sequence

from bench.base.text import plural
from bench.board.pages.engine import TEMPLATES, render_template
from bench.board.pages.run_page import sentences
from bench.board.publish.errata import names_versions_gone, read_errata
from bench.board.publish.readme import versions_readme
from bench.board.publish.versions import Version, docs_beside

SCOPE = 2
"""Sentences of the publisher's note that stand above the matrix; the version has all of it."""


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """Return file name -> content of the files next to the versions."""
    newest = versions[-1]
    out = newest.folder.parent
    errata = read_errata(out)
    facts = {
        "versions": versions[::-1],
        "scope": " ".join(sentences(newest.note or "")[:SCOPE]),
        "errata": {
            version.name: [erratum for erratum in errata if version.name in erratum.versions]
            for version in versions
        },
        "others_gone": names_versions_gone(out),
    }
    page = render_template(
        "versions.html",
        **facts,
        matrix=newest.matrix,
        docs=newest.docs or docs_beside(out),
        finding=sentences(newest.answer),
        plural=plural,
    )
    styles = [(TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")]
    return {
        "README.md": versions_readme(newest.matrix, **facts).encode(),
        "index.html": page.encode(),
        "style.css": b"".join(styles),
    }
