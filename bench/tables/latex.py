"""Score tables as one LaTeX document with booktabs: it compiles as it is, and each table can be copied out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.statistics.summary import Cell, Row, Table
from bench.tables.words import has_spread, headline, latex, score, seeds_differ, signed, variant_words

BEFORE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{booktabs}  % what the tables need
\usepackage[margin=2cm]{geometry}
\begin{document}
"""
AFTER = "\\end{document}\n"


def draw(tables: Sequence[Table]) -> str:
    return BEFORE + "\n".join(_table(table) for table in tables) + AFTER


def _table(table: Table) -> str:
    heading = ["Method", *(["Seeds"] if seeds_differ(table) else []), *table.columns, *([r"diff."] if table.baseline else [])]
    caption = [f"{table.suite}: {headline(table)}."]
    if has_spread(table):
        caption.append("Mean over seeds with standard deviation.")
    if table.baseline:
        caption.append(f"diff.: {table.head} less that of {table.baseline}.")
    caption += [note + "." for note in table.notes]
    lines = [
        r"\begin{table}[ht]", rf"\centering\{'footnotesize' if has_spread(table) else 'small'}\setlength{{\tabcolsep}}{{3pt}}",
        r"\begin{tabular}{l" + "r" * (len(heading) - 1) + "}", r"\toprule",
        _line(latex(text) for text in heading), r"\midrule", *(_line(_cells(row, table)) for row in table.rows),
        r"\bottomrule", r"\end{tabular}", r"\caption{" + " ".join(map(latex, caption)) + "}", r"\end{table}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cells(row: Row, table: Table) -> list[str]:
    words = variant_words(row, table)
    cells = [latex(row.method) + (f" ({latex(words)})" if words else "")]
    if seeds_differ(table):
        cells.append(str(len(row.runs)))
    cells += [_number(cell) for cell in row.cells]
    if table.baseline:
        cells.append("" if row.difference is None or row.is_baseline else f"${signed(row.difference)}$")
    return cells


def _number(cell: Cell | None) -> str:
    if cell is None:
        return ""
    mean = {"best": r"\textbf{%s}", "second": r"\underline{%s}", "": "%s"}[cell.mark] % score(cell.mean, cell.decimals)
    return mean if cell.sd is None else rf"{mean}\,{{\tiny$\pm${score(cell.sd, cell.decimals)}}}"
