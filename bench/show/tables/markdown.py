"""Score tables as Markdown that ordinary forges render."""

from __future__ import annotations

from collections.abc import Sequence

from bench.compare.formatting import headline, markdown, rank_words, score, variant_words
from bench.compare.statistics.table import Cell, Row, Table
from bench.show.tables.lines import (
    SIGNS,
    Line,
    cost_columns,
    cost_texts,
    in_order,
    legend,
    spread_text,
    under,
)


def draw(tables: Sequence[Table]) -> str:
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    heading = in_order(table, "rank", "method", "seeds", table.columns, cost_columns(table))
    lines = [f"**{markdown(headline(table))}**", "", _line([markdown(text) for text in heading])]
    lines.append(_line([":--" if name == "method" else "--:" for name in heading]))
    for row in table.rows:
        lines.append(_line(_cells(row, table)))
        lines += [_line(_under(line, table)) for line in under(row, table)]
    notes = [f"<sup>{i}</sup> {markdown(note)}" for i, note in enumerate(table.footnotes, 1)]
    notes += [markdown(note) for note in table.notes]
    notes += [markdown(words) for words in legend(table, SIGNS)]
    if len(table.rows) > 1:
        notes.append("**best**, *second*" if len(table.rows) > 2 else "**best**")
    return "\n".join([*lines, "", *(f"- {note}" for note in notes), ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(row: Row, table: Table) -> list[str]:
    words = variant_words(row, table)
    marks = "".join(f"<sup>{number + 1}</sup>" for number in row.footnotes)
    name = markdown(row.label) + (f" ({markdown(words)})" if words else "") + marks
    return in_order(
        table,
        rank_words(row),
        name,
        str(len(row.runs)),
        map(number, row.cells),
        cost_texts(row, table),
    )


def _under(line: Line, table: Table) -> list[str]:
    entries = [
        entry.text + (" " + markdown(SIGNS[entry.sign]) if entry.sign else "")
        for entry in line.entries
    ]
    return in_order(
        table, "", f"*{markdown(line.label)}*", "", entries, [""] * len(cost_columns(table))
    )


def number(cell: Cell | None) -> str:
    """ "**76.25** ± 0.31" """
    if cell is None:
        return ""
    mean = {"best": "**{}**", "second": "*{}*", "": "{}"}[cell.mark].format(
        score(cell.mean, cell.decimals)
    )
    return mean + (f" ± {half}" if (half := spread_text(cell)) else "")
