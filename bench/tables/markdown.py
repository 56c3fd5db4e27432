"""Score tables as Markdown that ordinary forges render."""

from __future__ import annotations

from collections.abc import Sequence

from bench.statistics.summary import Cell, Row, Table
from bench.tables.words import has_spread, headline, markdown, score, seeds_differ, signed, variant_words


def draw(tables: Sequence[Table]) -> str:
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    heading = ["method", *(["seeds"] if seeds_differ(table) else []), *table.columns]
    if table.baseline:
        heading.append(f"{table.head} - {table.baseline}")
    lines = [f"**{markdown(headline(table))}**", "", _line([markdown(text) for text in heading])]
    lines.append(_line([":--"] + ["--:"] * (len(heading) - 1)))
    lines += [_line(_cells(row, table)) for row in table.rows]
    notes = [markdown(note) for note in table.notes]
    legend = "**best**, <u>second</u>" if len(table.rows) > 2 else "**best**" if len(table.rows) > 1 else ""
    words = [part for part in ("±: standard deviation over seeds" if has_spread(table) else "", legend) if part]
    notes += ["; ".join(words)] if words else []
    return "\n".join([*lines, "", *(f"- {note}" for note in notes), ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(row: Row, table: Table) -> list[str]:
    words = variant_words(row, table)
    cells = [markdown(row.method) + (f" ({markdown(words)})" if words else "")]
    if seeds_differ(table):
        cells.append(str(len(row.runs)))
    cells += [_number(cell) for cell in row.cells]
    if table.baseline:
        cells.append("" if row.difference is None or row.is_baseline else signed(row.difference))
    return cells


def _number(cell: Cell | None) -> str:
    if cell is None:
        return ""
    mean = {"best": "**{}**", "second": "<u>{}</u>", "": "{}"}[cell.mark].format(score(cell.mean, cell.decimals))
    return mean if cell.sd is None else f"{mean} ± {score(cell.sd, cell.decimals)}"
