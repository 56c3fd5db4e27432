"""Score tables as one LaTeX document with booktabs: it compiles as it is, and each table can be copied out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.compare.formatting import (
    has_spread,
    headline,
    latex,
    score,
    variant_words,
)
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

BEFORE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{amssymb,booktabs,graphicx}  % what the tables need
\usepackage[margin=2cm]{geometry}
\begin{document}
"""
AFTER = "\\end{document}\n"
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # a table wider than the page is shrunk, no other
WIDEST = 10  # columns that fit on a page with a spread beside each number


def draw(tables: Sequence[Table]) -> str:
    return BEFORE + "\n".join(_table(table) for table in tables) + AFTER


def _table(table: Table) -> str:
    heading = in_order(
        table, "", "Method", "n", table.columns, difference_heading(table), cost_columns(table)
    )
    caption = [f"{latex(f'{table.suite}: {headline(table)}')}."]
    caption += [_sentence(words) for words in legend(table, SIGNS)]
    caption += [
        rf"\textsuperscript{{{i}}} {_sentence(str(note))}"
        for i, note in enumerate(table.footnotes, 1)
    ]
    caption += [_sentence(note) for note in table.notes]
    size = "small"
    if has_spread(table):
        size = "footnotesize" if len(heading) <= WIDEST else "scriptsize"
    lines = [
        r"\begin{table}[ht]",
        rf"\centering\{size}\setlength{{\tabcolsep}}{{3pt}}",
        FIT,
        r"\begin{tabular}{" + "".join("l" if name == "Method" else "r" for name in heading) + "}",
        r"\toprule",
        _line(latex(text) for text in heading),
        r"\midrule",
    ]
    for row in table.rows:
        lines.append(_line(_cells(row, table)))
        lines += [_line(_under(line, table)) for line in under(row)]
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        r"\caption{" + " ".join(caption) + "}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _sentence(words: str) -> str:
    return latex(words[:1].upper() + words[1:]) + "."


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cells(row: Row, table: Table) -> list[str]:
    words = variant_words(row, table)
    marks = ",".join(str(number + 1) for number in row.footnotes)
    name = (
        latex(row.label)
        + (f" ({latex(words)})" if words else "")
        + (rf"\textsuperscript{{{marks}}}" if marks else "")
    )
    top = latex(SIGNS[sign]) if (sign := top_sign(row)) else ""
    numbers = [
        _number(cell, SIGNS.get(sign_at(row, table, i), "")) for i, cell in enumerate(row.cells)
    ]
    difference = f"${difference_text(row)}$" if difference_text(row) else ""
    costs = map(latex, cost_texts(row, table))
    return in_order(table, top, name, str(table.n(row)), numbers, difference, costs)


def _under(line: Line, table: Table) -> list[str]:
    entries = []
    for entry in line.entries:
        sign = latex(SIGNS[entry.sign]) if entry.sign else ""
        entries.append(rf"{{\scriptsize ${entry.text}${sign}}}" if entry.text else "")
    return in_order(
        table,
        "",
        rf"\quad {{\scriptsize {latex(line.label)}}}",
        "",
        entries,
        "",
        [""] * len(cost_columns(table)),
    )


def _number(cell: Cell | None, sign: str) -> str:
    if cell is None:
        return ""
    mean = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}[cell.mark] % score(
        cell.mean, cell.decimals
    )
    half = spread_text(cell)
    return mean + latex(sign) + (rf"\,{{\tiny$\pm${half}}}" if half else "")
