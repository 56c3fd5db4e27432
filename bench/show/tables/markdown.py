"""Score tables as Markdown that ordinary forges render."""

from __future__ import annotations

from collections.abc import Sequence

from bench.compare.formatting import headline, markdown, score, variant_words
from bench.compare.statistics.table import Cell, Row, Table
from bench.show.tables.lines import (
    SIGNS,
    Line,
    cost_columns,
    cost_texts,
    difference_heading,
    difference_text,
    in_order,
    legend,
    sign_at,
    spread_text,
    top_sign,
    under,
)


def draw(tables: Sequence[Table]) -> str:
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    heading = in_order(
        table, "", "method", "n", table.columns, difference_heading(table), cost_columns(table)
    )
    lines = [f"**{markdown(headline(table))}**", "", _line([markdown(text) for text in heading])]
    lines.append(_line([":--" if name == "method" else "--:" for name in heading]))
    for row in table.rows:
        lines.append(_line(_cells(row, table)))
        lines += [_line(_under(line, table)) for line in under(row)]
    notes = [markdown(note) for note in table.notes]
    notes += [markdown(words) for words in legend(table, SIGNS)]
    if len(table.rows) > 1:
        notes.append("**highest**, *second*" if len(table.rows) > 2 else "**highest**")
    return "\n".join([*lines, "", *footnote_table(table), *(f"- {note}" for note in notes), ""])


def footnote_table(table: Table) -> list[str]:
    """The settings in which rows differ, as lines of a table; none where there are none."""
    if not table.footnotes:
        return []
    lines = [_line(["", "setting", "value", "rows", "most rows"]), _line([":--"] * 5)]
    for i, note in enumerate(table.footnotes, 1):
        cells = [
            markdown(text, limit=None) for text in (note.setting, note.value, note.rows, note.most)
        ]
        lines.append(_line([f"<sup>{i}</sup>", *cells]))
    return [*lines, ""]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(row: Row, table: Table) -> list[str]:
    words = variant_words(row, table)
    marks = "".join(f"<sup>{number + 1}</sup>" for number in row.footnotes)
    name = markdown(row.label) + (f" ({markdown(words)})" if words else "") + marks
    return in_order(
        table,
        SIGNS.get(top_sign(row), ""),
        name,
        str(table.n(row)),
        [number(cell, SIGNS.get(sign_at(row, table, i), "")) for i, cell in enumerate(row.cells)],
        difference_text(row),
        cost_texts(row, table),
    )


def _under(line: Line, table: Table) -> list[str]:
    entries = [
        entry.text + (" " + markdown(SIGNS[entry.sign]) if entry.sign else "")
        for entry in line.entries
    ]
    return in_order(
        table, "", f"*{markdown(line.label)}*", "", entries, "", [""] * len(cost_columns(table))
    )


def number(cell: Cell | None, sign: str = "") -> str:
    """ "**76.25** ± 0.31 ▲" """
    if cell is None:
        return ""
    mean = {"best": "**{}**", "second": "*{}*", "": "{}"}[cell.mark].format(
        score(cell.mean, cell.decimals)
    )
    half = spread_text(cell)
    return mean + (f" ± {half}" if half else "") + (f" {markdown(sign)}" if sign else "")
