"""The tables of docs/claims.md, copied from the README of the newest published version::

    python tools/make_claims.py

A comment names the heading below which the version has the table::

    <!-- table: How many seeds does a gain need? -->
    <!-- end of table -->
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.board.publish.versions import version_folders

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "claims.md"
BLOCK = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", flags=re.S)


def table_below(heading: str, version: Path) -> str:
    """Return the first table below a heading of the version's README, with links to its page.

    Raises ValueError if the README has no such heading, or no table below it.
    """
    lines = (version / "README.md").read_text("utf-8").splitlines()
    titles = [line.lstrip("# ") if line.startswith("#") else "" for line in lines]
    table: list[str] = []
    for line in lines[titles.index(heading) + 1 :]:
        if line.startswith("|"):
            table.append(line)
        elif table or line.startswith("#"):
            break
    if not table:
        raise ValueError(f"{version}/README.md has no table below '{heading}'")
    return "\n".join(table).replace("](index.html", f"](../leaderboards/{version.name}/index.html")


def with_tables(text: str, version: Path) -> str:
    """Return the page with the version's tables below their comments."""

    def fill(found: re.Match[str]) -> str:
        return f"{found[1]}{table_below(found[2], version)}\n{found[3]}"

    return BLOCK.sub(fill, text)


if __name__ == "__main__":
    newest = version_folders(ROOT / "leaderboards")[-1]
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), newest), "utf-8")
