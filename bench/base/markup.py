"""Prints a table as Markdown, LaTeX or HTML."""

from __future__ import annotations

import html as html_escape
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from urllib.parse import quote

from bench.base.foreign_text import escape_latex, escape_markdown, make_visible
from bench.base.grid import BEST_SIGN, MAY_BE_BEST, Grid, GridCell, GridRow

BEFORE_LATEX = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{amssymb,booktabs,colortbl,graphicx}  % what the tables need
\usepackage[margin=2cm]{geometry}
\begin{document}
"""
FIT = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
"""Shrinks a table that is wider than the page, and no other."""
MARKDOWN_EMPHASIS = {"best": "**{}**", "strong": "**{}**", "second": "*{}*"}
LATEX_EMPHASIS = {
    "best": r"\textbf{%s}",
    "strong": r"\textbf{%s}",
    "second": r"\underline{%s}",
    "dim": r"{\scriptsize %s}",
}
HTML_EMPHASIS = {"best": "b", "strong": "b", "second": "u", "dim": "small"}


def _notes(table: Grid, written: Callable[[str], str]) -> list[str]:
    """Write the notes and the key."""
    return [written(note) for note in (*table.notes, table.key) if note]


def as_markdown(table: Grid) -> str:
    """Write a table for code hosts; ends with a newline."""
    lines = []
    if table.lead:
        lines += [escape_markdown(table.lead, None), ""]
    if table.title:
        lines += [f"**{escape_markdown(table.title)}**", ""]
    lines.append(_pipes(escape_markdown(column.name) for column in table.columns))
    lines.append(_pipes("--:" if column.right else ":--" for column in table.columns))
    for row in table.rows:
        lines.append(_pipes(map(_markdown_cell, row.printed)))
    notes = _notes(table, lambda note: escape_markdown(note, None))
    if notes:
        lines.append("")
    lines += [f"- {note}" for note in notes]
    if table.below:
        lines += ["", as_markdown(table.below).rstrip("\n")]
    return "\n".join(lines) + "\n"


def _pipes(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_cell(cell: GridCell) -> str:
    text = escape_markdown(cell.main)
    if cell.link and text:
        text = f"[{text}]({quote(cell.link, safe='/:?#=&%+@')})"
    if text:
        text = MARKDOWN_EMPHASIS.get(cell.emphasis, "{}").format(text)
    parts = [
        text,
        f"± {cell.half}" if cell.half else "",
        BEST_SIGN if cell.may_be_best else "",
    ]
    return " ".join(part for part in parts if part)


def latex_document(tables: Sequence[Grid]) -> str:
    """Write a document that compiles as it is; each table can be copied out of it."""
    return BEFORE_LATEX + "\n".join(map(as_latex, tables)) + "\\end{document}\n"


def as_latex(table: Grid) -> str:
    """Write a float with booktabs' rules; lead, title and notes are its caption."""
    caption = _notes(table, _sentence)
    begin = [_sentence(text) for text in (table.lead, table.title) if text]
    caption = [*begin, *caption]
    tables = [_tabular(table)]
    if table.below:
        tables.append(_tabular(table.below))
    lines = [
        r"\begin{table}[ht]",
        r"\centering\small\setlength{\tabcolsep}{3pt}",
        "\n\n\\medskip\n".join(tables),
    ]
    if caption:
        lines.append(r"\caption{" + " ".join(caption) + "}")
    return "\n".join([*lines, r"\end{table}", ""])


def _tabular(table: Grid) -> str:
    sides = "".join("r" if column.right else "l" for column in table.columns)
    rows = [" & ".join(map(_latex_cell, row.printed)) + r" \\" for row in table.rows]
    return "\n".join(
        [
            FIT + r"\begin{tabular}{" + sides + "}",
            r"\toprule",
            " & ".join(escape_latex(column.name) for column in table.columns) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}}",
        ]
    )


def _sentence(text: str) -> str:
    return escape_latex(text, None).rstrip(".") + "."


def _latex_cell(cell: GridCell) -> str:
    main = re.sub(r"(?<![\w.])-(?=\d)", "$-$", escape_latex(cell.main))
    if main:
        main = LATEX_EMPHASIS.get(cell.emphasis, "%s") % main
    return "".join(
        [
            r"\cellcolor[gray]{0.9}" if cell.may_be_best else "",
            main,
            rf"\,{{\tiny$\pm${cell.half}}}" if cell.half else "",
            escape_latex(BEST_SIGN) if cell.may_be_best else "",
        ]
    )


def as_html(table: Grid) -> str:
    """Write a ``<table>`` and the notes below it.

    Columns of numbers have the class "number", shaded cells "tint", rows that belong to the one
    above "part".
    """
    sides = ["number" if column.right else "" for column in table.columns]
    head = ""
    for side, column in zip(sides, table.columns, strict=True):
        head += f'<th{_class(side)} scope="col">{html_text(column.name)}</th>'
    body = "\n".join(_html_row(row, sides) for row in table.rows)
    lead = f"<p>{html_text(table.lead)}</p>" if table.lead else ""
    caption = f"<caption>{html_text(table.title)}</caption>" if table.title else ""
    small = as_html(table.below) if table.below else ""
    below = ""
    for note in _notes(table, html_text):
        below += f"<div><small>{note}</small></div>"
    return (
        f"{lead}<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
        f"{below}{small}\n"
    )


def _html_row(row: GridRow, sides: Sequence[str]) -> str:
    cells = "".join(map(_html_cell, row.printed, sides))
    return f"<tr{_class('part' if row.indent else '')}>{cells}</tr>"


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _html_cell(cell: GridCell, side: str) -> str:
    text = html_text(cell.main)
    if cell.link and text:
        text = f'<a href="{html_escape.escape(quote(cell.link, safe="/:?#=&%+@"))}">{text}</a>'
    tag = HTML_EMPHASIS.get(cell.emphasis)
    parts = [
        f"<{tag}>{text}</{tag}>" if tag and text else text,
        f" <small>± {cell.half}</small>" if cell.half else "",
        f' <abbr title="{MAY_BE_BEST}">{BEST_SIGN}</abbr>' if cell.may_be_best else "",
    ]
    tint = "tint" if cell.may_be_best else ""
    names = " ".join(name for name in (tint, side) if name)
    return f"<td{_class(names)}>{''.join(parts)}</td>"


@lru_cache(maxsize=1 << 16)  # a thousand pages say much the same
def html_text(text: str) -> str:
    """Escape a text, on one line, with control characters as visible escapes."""
    return html_escape.escape(make_visible(text, limit=None))
