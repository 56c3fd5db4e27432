"""The page of all versions, in HTML and in Markdown. It is made again with every version, out of the versions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.base.text import plural
from bench.board.names import method_page
from bench.compare.formatting import markdown
from bench.publish.versions import Version
from bench.show.grid import Cell, Column, Grid, as_markdown, grid
from bench.show.pages.engine import TEMPLATES, render

ERRATA = "ERRATA.md"
"""What turned out to be wrong with published versions, written by hand beside them."""
HOW_TO_CHECK = """A published version never changes: each has a `MANIFEST.json` with the sha256 of every file, and
`bench publish --check` compares them. `bench verify` with the folder of a version computes every
score again."""
LEGEND = (
    "◆: it may be the best.",
    "±: half of the 95 % interval, where there is one.",
)


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """File name -> content, for what is written beside the versions."""
    newest = versions[-1]
    errata = (newest.folder.parent / ERRATA).is_file()
    table = main_grid(newest)
    page = render(
        "versions.html", versions=versions[::-1], table=table, errata=errata, plural=plural
    )
    style = [(TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")]
    return {
        "README.md": _markdown(versions[::-1], table, errata).encode(),
        "index.html": page.encode(),
        "style.css": b"".join(style),
    }


def main_grid(version: Version) -> Grid:
    """The version's first table, its average first."""
    table = version.content.tables[0]["table"]
    names = [table["columns"][-1], *table["columns"][:-1]]
    title = (table["suite"], table["setting"], table["backbone"])
    return grid(
        ["method", *(Column(str(name), right=True) for name in names)],
        [
            [_name(row, version), *(_cell(row["cells"][name]) for name in names)]
            for row in table["rows"]
        ],
        title=", ".join(str(part) for part in title if part and part != "none"),
        notes=LEGEND,
    )


def _name(row: Mapping[str, Any], version: Version) -> Cell:
    """ "promcse eh temperature=0.1" """
    differs = (f"{key}={value}" for key, value in row["differs"].items())
    text = " ".join(str(part) for part in (row["method"], row["variant"], *differs) if part)
    link = f"{version.name}/{method_page(row['method'])}"
    return Cell(text=text, link=link, tint=bool(row.get("may_be_best")))


def _cell(cell: Mapping[str, Any] | None) -> Cell:
    if cell is None:
        return Cell()
    spread = cell["spread"] and (cell["spread"]["high"] - cell["spread"]["low"]) / 2
    return Cell(number=cell["mean"], decimals=cell["decimals"], spread=spread)


def _markdown(versions: Sequence[Version], table: Grid, errata: bool) -> str:
    newest = versions[0].content
    parts = [f"# {markdown(newest.title)}"]
    for version in versions:
        counted = (
            f"{plural(len(version.senders), 'run')} of {plural(len(version.methods), 'method')}"
        )
        parts.append(
            f"## [{version.name}]({version.name}/README.md), {version.content.date}: {counted}"
        )
        parts.append(markdown(version.content.answer, limit=None))
        if version.content.note:
            parts.append(f"> {markdown(version.content.note, limit=None)}")
        if version is versions[0]:
            parts.append(as_markdown(table).rstrip("\n"))
    if errata:
        parts.append(f"Errata, and versions that left the tree: [{ERRATA}]({ERRATA}).")
    return "\n\n".join([*parts, HOW_TO_CHECK]) + "\n"
