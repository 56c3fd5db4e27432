"""The page of all versions, and the other files next to their folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.base.text import plural
from bench.board.addresses import method_page
from bench.publish.readme import versions_readme
from bench.publish.versions import Version
from bench.show.grid import MAY_BE_BEST, Grid, GridCell, GridColumn, grid
from bench.show.pages.engine import TEMPLATES, render_template

ERRATA = "ERRATA.md"
"""Mistakes found in published versions, written by hand next to them."""


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """Return file name -> content of the files next to the versions."""
    newest = versions[-1]
    facts = {"versions": versions[::-1], "errata": (newest.folder.parent / ERRATA).is_file()}
    table = main_grid(newest)
    page = render_template("versions.html", **facts, table=table, plural=plural)
    styles = [(TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")]
    return {
        "README.md": versions_readme(**facts, main=table).encode(),
        "index.html": page.encode(),
        "style.css": b"".join(styles),
    }


def main_grid(version: Version) -> Grid:
    """Lay out the version's first table, its average first."""
    table = version.tables[0]["table"]
    names = [table["columns"][-1], *table["columns"][:-1]]
    rows = []
    for row in table["rows"]:
        rows.append([_name(row, version), *(_cell(row["cells"][name]) for name in names)])
    parts = [table["suite"], table["setting"], table["backbone"]]
    return grid(
        ["method", *(GridColumn(str(name), right=True) for name in names)],
        rows,
        title=", ".join(str(part) for part in parts if part and part != "none"),
        notes=["◆: may be the best.", "±: half-width of the 95 % interval, if there is one."],
    )


def _name(row: Mapping[str, Any], version: Version) -> GridCell:
    """Return "promcse eh temperature=0.1" as a link."""
    differs = [f"{key}={value}" for key, value in row["differs"].items()]
    parts = [row["method"], row["variant"], *differs]
    return GridCell(
        text=" ".join(str(part) for part in parts if part),
        link=f"{version.name}/{method_page(row['method'])}",
        sign=MAY_BE_BEST if row.get("may_be_best") else "",
    )


def _cell(cell: Mapping[str, Any] | None) -> GridCell:
    if cell is None:
        return GridCell()
    spread = cell["spread"]
    half = None if spread is None else (spread["high"] - spread["low"]) / 2
    return GridCell(number=cell["mean"], decimals=cell["decimals"], spread=half)
