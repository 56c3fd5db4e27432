"""The page of all versions, and the other files next to their folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.base.grid import MAY_BE_BEST, Grid, GridCell, GridColumn, grid
from bench.base.text import plural
from bench.board.addresses import method_page
from bench.board.pages.engine import TEMPLATES, render_template
from bench.board.pages.intervals import Interval, Scale, draw_intervals
from bench.board.pages.run_page import sentences
from bench.board.publish.readme import versions_readme
from bench.board.publish.versions import ERRATA, Version
from bench.compare.formatting import with_interval
from bench.compare.words.finding import BASELINE


def index_files(versions: Sequence[Version]) -> dict[str, bytes]:
    """Return file name -> content of the files next to the versions."""
    newest = versions[-1]
    facts = {"versions": versions[::-1], "errata": (newest.folder.parent / ERRATA).is_file()}
    table = main_grid(newest)
    scale, drawn = main_drawings(newest)
    page = render_template(
        "versions.html",
        **facts,
        table=table,
        scale=scale,
        drawn=drawn,
        finding=sentences(newest.answer),
        plural=plural,
    )
    styles = [(TEMPLATES / name).read_bytes() for name in ("board.css", "versions.css")]
    return {
        "README.md": versions_readme(**facts, main=table).encode(),
        "index.html": page.encode(),
        "style.css": b"".join(styles),
    }


def main_grid(version: Version) -> Grid:
    """Lay out the version's first table: its average, the difference from the baseline with its
    verdict, its tasks."""
    table = version.tables[0]["table"]
    head, tasks = table["columns"][-1], table["columns"][:-1]
    versus = versus_column(table)
    rows = []
    for row in table["rows"]:
        cells = [_name(row, version), _cell(row["cells"][head])]
        if versus:
            cells += [_difference(row), GridCell(text=row["verdict"])]
        rows.append([*cells, *(_cell(row["cells"][name]) for name in tasks)])
    verdict = [GridColumn(versus, right=True), GridColumn("verdict")] if versus else []
    columns = [GridColumn("method"), GridColumn(str(head), right=True), *verdict]
    columns += [GridColumn(str(name), right=True) for name in tasks]
    notes = [f"◆: {MAY_BE_BEST}.", "±: half-width of the 95 % interval, if there is one."]
    return grid(columns, rows, title=table["name"], notes=notes)


def versus_column(table: Mapping[str, Any]) -> str:
    """Name the column of differences, "vs SimCSE [99.4 % CI]"; "" if no row was compared."""
    if not any(_tested(row) for row in table["rows"]):
        return ""
    level = table["tested"]["ci_level"]
    return f"vs {table['baseline_name']} [{100 * level:.3g} % CI]"


def _tested(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return how a row was compared with the baseline; None if it was not."""
    against = row.get("against")
    if against is None or against.get("verdict") is None or against.get("ci_low") is None:
        return None
    found: Mapping[str, Any] = against
    return found


def _difference(row: Mapping[str, Any]) -> GridCell:
    """Write the difference from the baseline with its interval; nothing if there is none."""
    against = _tested(row)
    if against is None:
        return GridCell()
    return GridCell(
        text=with_interval(against["difference"], against["ci_low"], against["ci_high"])
    )


def main_drawings(version: Version) -> tuple[Scale | None, list[dict[str, Any]]]:
    """Return the scale and the drawn interval of each row of :func:`main_grid`."""
    table = version.tables[0]["table"]
    rows: list[tuple[Interval | None, str]] = []
    for row in table["rows"]:
        against = _tested(row)
        if against is None:
            rows.append((None, row["verdict"] if row["verdict"] == BASELINE else ""))
            continue
        ends = (against["difference"], against["ci_low"], against["ci_high"])
        rows.append((ends, against["verdict"]))
    return draw_intervals(rows)


def _name(row: Mapping[str, Any], version: Version) -> GridCell:
    """Return the row's name as a link."""
    return GridCell(
        text=row["name"],
        link=f"{version.name}/{method_page(row['method'])}",
        sign=MAY_BE_BEST if row.get("may_be_best") else "",
    )


def _cell(cell: Mapping[str, Any] | None) -> GridCell:
    if cell is None:
        return GridCell()
    spread = cell["spread"]
    half = None if spread is None else (spread["high"] - spread["low"]) / 2
    return GridCell(number=cell["mean"], decimals=cell["decimals"], spread=half)
