"""A table as data, and the forms in which it is printed: terminal, Markdown, LaTeX, HTML and CSV. Nothing else draws one.

Texts come from plugins, folders and other people's records: no form lets them move a cursor, open a tag, run a formula or a command.
"""

from __future__ import annotations

import csv
import html as html_escape
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from urllib.parse import quote

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from bench.base.foreign_text import (
    encodable,
    escape_latex,
    escape_markdown,
    format_csv_value,
    make_visible,
)
from bench.base.text import list_names

TINT = "may be the best"
SIGNS = {"better": "▲", "worse": "▼", "outside": "*", "not tested": "-", TINT: "◆"}
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
CONSOLE = Console()  # that wraps; nothing is printed on it
STYLES = {"best": "bold", "strong": "bold", "second": "underline", "dim": "dim"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """``text``, or ``number`` with ``decimals``. ``sign`` is a key of SIGNS, ``emphasis`` one of STYLES, ``marks`` number footnotes from 1."""

    text: str = ""
    number: float | None = None
    decimals: int = 2
    spread: float | None = None  # what stands after ±
    sign: str = ""
    emphasis: str = ""
    link: str = ""  # a relative address, for Markdown and HTML
    marks: tuple[int, ...] = ()

    @property
    def main(self) -> str:
        return self.text if self.number is None else f"{self.number:.{self.decimals}f}"

    @property
    def half(self) -> str:
        """The spread as printed; "" for none."""
        return "" if self.spread is None else f"{self.spread:.{self.decimals}f}"


@dataclass(frozen=True)
class Column:
    """How a column is aligned, and what a terminal does with it if there is too little room."""

    name: str
    right: bool = False
    wrap: int = 0  # the narrowest that its text may be wrapped to; 0: never
    drop: int = 0  # columns with the highest number are left out first; 0: never
    lead: bool = False  # follows the first column where others are left out


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Rows of as many cells as there are columns. ``whole`` says how to see columns that a terminal has no room for."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    footnotes: tuple[str, ...] = ()  # numbered from 1
    notes: tuple[str, ...] = ()
    below: Grid | None = None  # a small table that explains marks
    whole: str = "a wider terminal"
    key: str = ""  # what bold and the like mean, for forms that have them


def grid(
    columns: Iterable[Column | str],
    rows: Iterable[Iterable[Cell | str]],
    *,
    title: str = "",
    footnotes: Sequence[str] = (),
    notes: Sequence[str] = (),
    below: Grid | None = None,
    whole: str = "a wider terminal",
    key: str = "",
) -> Grid:
    """A grid of cells and plain strings. Columns without any text are left out."""
    made = [
        tuple(cell if isinstance(cell, Cell) else Cell(text=cell) for cell in row) for row in rows
    ]
    shape = [column if isinstance(column, Column) else Column(column) for column in columns]
    used = [
        i
        for i, column in enumerate(zip(*made, strict=True))
        if any(cell.main or cell.marks for cell in column)
    ] or ([0] if made else range(len(shape)))
    return Grid(
        columns=tuple(shape[i] for i in used),
        rows=tuple(tuple(row[i] for i in used) for row in made),
        title=title,
        footnotes=tuple(footnotes),
        notes=tuple(notes),
        below=below,
        whole=whole,
        key=key,
    )


# --- terminal ---


def terminal(
    table: Grid, width: int, encoding: str = "utf-8", *, indent: int = 0, styled: bool = True
) -> list[Text]:
    """Lines of at most ``width`` characters, except for a longer word.

    Where the columns do not fit, texts are wrapped, then columns are left out and named below the table. A text in the last column with a
    word that is wider than the column, such as an address, stands below its row.
    """
    room = width - indent
    texts = [
        [_parts(cell, column, encoding) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    names = [make_visible(column.name, encoding, limit=None) for column in table.columns]
    tails = [max([cell_len(row[i][1]) for row in texts], default=0) for i in range(len(names))]
    natural = [
        max([cell_len(name), *(cell_len(row[i][0]) + tails[i] for row in texts)])
        for i, name in enumerate(names)
    ]
    shown, wide = _fitted(table.columns, natural, room)
    lines = [
        Text(line, "bold")
        for line in wrap(make_visible(table.title, encoding, limit=None), room)
        if line
    ]
    heads = [
        (name, " " * min(tail, most - cell_len(name)), "dim")
        for name, tail, most in zip(names, tails, natural, strict=True)
    ]
    lines += _row(heads, shown, wide, table.columns, room) if any(names) else []
    for row, cells in zip(texts, table.rows, strict=True):
        drawn = [
            (main, tail + " " * (tails[i] - cell_len(tail)), STYLES.get(cells[i].emphasis, ""))
            for i, (main, tail) in enumerate(row)
        ]
        lines += _row(drawn, shown, wide, table.columns, room)
    if table.below:
        lines += [Text(""), *terminal(table.below, room, encoding), Text("")]
    notes = [
        *(f"{_raised((i,))} {note}" for i, note in enumerate(table.footnotes, 1)),
        *table.notes,
        *([table.key] if styled and table.key else []),
    ]
    if left_out := [name for i, name in enumerate(names) if i not in shown]:
        notes.append(f"not shown at {width} columns: {list_names(left_out, 20)} ({table.whole})")
    lines += [
        Text(line, "dim")
        for note in notes
        for line in wrap(make_visible(note, encoding, limit=None), room)
    ]
    return [Text(" " * indent).append_text(line) for line in lines]


def _fitted(
    columns: Sequence[Column], natural: Sequence[int], room: int
) -> tuple[list[int], dict[int, int]]:
    """The columns that are shown, in order, and how wide each is."""
    shown, wide = list(range(len(columns))), dict(enumerate(natural))

    def excess() -> int:
        return sum(wide[i] for i in shown) + sum(_gaps(shown, columns)) - room

    while excess() > 0:
        wrapped = [i for i in shown if columns[i].wrap and wide[i] > columns[i].wrap]
        dropped = [i for i in shown if columns[i].drop and len(shown) > 1]
        if wrapped:
            wide[max(wrapped, key=lambda i: wide[i])] -= 1
        elif dropped:
            shown.remove(max(dropped, key=lambda i: (columns[i].drop, i)))
        else:
            break
    if len(shown) < len(columns):
        for i in shown:  # what the columns left out gave back
            if columns[i].wrap:
                wide[i] = min(natural[i], wide[i] + max(0, -excess()))
        shown.sort(key=lambda i: (i > 0, not columns[i].lead, i))
    return shown, wide


def _row(
    cells: Sequence[tuple[str, str, str]],
    shown: Sequence[int],
    wide: dict[int, int],
    columns: Sequence[Column],
    room: int,
) -> list[Text]:
    """One row as lines: its cells side by side, wrapped ones over several lines."""
    *ahead, last = shown
    if (
        ahead
        and columns[last].wrap
        and any(cell_len(word) > wide[last] for word in cells[last][0].split())
    ):
        return _row(cells, ahead, wide, columns, room) + [
            Text("    " + line) for line in wrap(cells[last][0], room - 4)
        ]
    texts = {
        i: wrap(cells[i][0], wide[i], fold=i != last) if columns[i].wrap else [cells[i][0]]
        for i in shown
    }
    lines = []
    for number in range(max(map(len, texts.values()))):
        line = Text()
        for i, gap in zip(shown, [0, *_gaps(shown, columns)], strict=True):
            main, tail, style = cells[i]
            part = texts[i][number] if number < len(texts[i]) else ""
            tail = tail if not number else " " * cell_len(tail)
            free = " " * max(0, wide[i] - cell_len(part) - cell_len(tail))
            line.append(" " * gap + (free if columns[i].right else "")).append(part, style)
            line.append(tail + ("" if columns[i].right else free))
        line.rstrip()
        lines.append(line)
    return lines


def _gaps(shown: Sequence[int], columns: Sequence[Column]) -> list[int]:
    """Blanks before each column except the first: one between two columns of numbers, else two."""
    return [
        1 if columns[i].right and columns[j].right else 2
        for i, j in zip(shown, shown[1:], strict=False)
    ]


def wrap(text: str, room: int, *, fold: bool = False) -> list[str]:
    """In lines of ``room`` columns, between words; a longer word has its own line, or is cut with ``fold``. At least one line."""
    lines = Text(text, overflow="fold" if fold else "ignore").wrap(CONSOLE, max(room, 1))
    return [plain for line in lines if (plain := line.plain.rstrip())] or [""]


def _parts(cell: Cell, column: Column, encoding: str) -> tuple[str, str]:
    """A cell's text, and what stands after a number without moving its digits: spread, sign, marks."""
    inside = cell.main.lstrip(" ")  # leading blanks show that a row belongs to the one above
    main = " " * (len(cell.main) - len(inside)) + make_visible(inside, encoding, limit=None)
    tail = f" ± {cell.half}" if cell.half else ""
    tail += (f" {SIGNS[cell.sign]}" if cell.sign else "") + _raised(cell.marks)
    tail = encodable(tail, encoding)
    return (main, tail) if column.right else (main + tail, "")


def _raised(marks: Sequence[int]) -> str:
    """ "¹·²" """
    return "·".join(str(mark).translate(RAISED) for mark in marks)


# --- Markdown, LaTeX, HTML ---


def _notes(table: Grid, mark: str, written: Callable[[str], str]) -> list[str]:
    """Footnotes with their numbers as ``mark`` has them, then the notes and the key."""
    return [
        *[mark.format(i) + written(note) for i, note in enumerate(table.footnotes, 1)],
        *(written(note) for note in (*table.notes, table.key) if note),
    ]


def as_markdown(table: Grid) -> str:
    """For code hosts; ends with a newline."""
    lines = [
        *([f"**{escape_markdown(table.title)}**", ""] if table.title else []),
        _pipes(escape_markdown(column.name) for column in table.columns),
        _pipes("--:" if column.right else ":--" for column in table.columns),
        *(_pipes(map(_markdown_cell, row)) for row in table.rows),
    ]
    notes = _notes(table, "<sup>{}</sup> ", lambda note: escape_markdown(note, None))
    if table.below:
        lines += ["", as_markdown(table.below).rstrip("\n")]
    return "\n".join([*lines, *([""] if notes else []), *(f"- {note}" for note in notes)]) + "\n"


def _pipes(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_cell(cell: Cell) -> str:
    text = escape_markdown(cell.main)
    if cell.link and text:
        text = f"[{text}]({quote(cell.link, safe='/:?#=&%+@')})"
    form = {"best": "**{}**", "strong": "**{}**", "second": "*{}*"}.get(cell.emphasis, "{}")
    text = form.format(text) if text else ""
    marks = f"<sup>{', '.join(map(str, cell.marks))}</sup>" if cell.marks else ""
    parts = [text, f"± {cell.half}" if cell.half else "", escape_markdown(SIGNS.get(cell.sign, ""))]
    return " ".join(part for part in parts if part) + marks


BEFORE_LATEX = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{amssymb,booktabs,colortbl,graphicx}  % what the tables need
\usepackage[margin=2cm]{geometry}
\begin{document}
"""
FIT = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"  # only a table wider than the page is shrunk


def latex_document(tables: Sequence[Grid]) -> str:
    """A document that compiles as it is, and from which each table can be copied."""
    return BEFORE_LATEX + "\n".join(map(as_latex, tables)) + "\\end{document}\n"


def as_latex(table: Grid) -> str:
    """A float with booktabs' rules; the title, footnotes and notes are its caption."""
    caption = [
        *([_sentence(table.title)] if table.title else []),
        *_notes(table, r"\textsuperscript{{{}}} ", _sentence),
    ]
    return "\n".join(
        [
            r"\begin{table}[ht]",
            r"\centering\small\setlength{\tabcolsep}{3pt}",
            "\n\n\\medskip\n".join(map(_tabular, [table, table.below] if table.below else [table])),
            *([r"\caption{" + " ".join(caption) + "}"] if caption else []),
            r"\end{table}",
            "",
        ]
    )


def _tabular(table: Grid) -> str:
    return "\n".join(
        [
            FIT
            + r"\begin{tabular}{"
            + "".join("r" if column.right else "l" for column in table.columns)
            + "}",
            r"\toprule",
            " & ".join(escape_latex(column.name) for column in table.columns) + r" \\",
            r"\midrule",
            *(" & ".join(map(_latex_cell, row)) + r" \\" for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}}",
        ]
    )


def _sentence(text: str) -> str:
    return escape_latex(text[:1].upper() + text[1:]).rstrip(".") + "."


def _latex_cell(cell: Cell) -> str:
    form = {
        "best": r"\textbf{%s}",
        "strong": r"\textbf{%s}",
        "second": r"\underline{%s}",
        "dim": r"{\scriptsize %s}",
    }
    main = re.sub(r"(?<![\w.])-(?=\d)", "$-$", escape_latex(cell.main))
    return "".join(
        [
            r"\cellcolor[gray]{0.9}" if cell.sign == TINT else "",
            form.get(cell.emphasis, "%s") % main if main else "",
            rf"\,{{\tiny$\pm${cell.half}}}" if cell.half else "",
            escape_latex(SIGNS.get(cell.sign, "")),
            rf"\textsuperscript{{{','.join(map(str, cell.marks))}}}" if cell.marks else "",
        ]
    )


def as_html(table: Grid) -> str:
    """A ``<table>`` and what is noted below it: columns of numbers have the class "number", shaded cells "tint", rows that belong to the
    one above "part"."""
    sides = ["number" * column.right for column in table.columns]
    head = "".join(
        f'<th{_class(side)} scope="col">{html_text(column.name)}</th>'
        for side, column in zip(sides, table.columns, strict=True)
    )
    body = "\n".join(
        f"<tr{_class('part' * row[0].main.startswith(' '))}>{''.join(map(_html_cell, row, sides))}</tr>"
        for row in table.rows
    )
    caption = f"<caption>{html_text(table.title)}</caption>" if table.title else ""
    below = "".join(
        f"<div><small>{note}</small></div>" for note in _notes(table, "<sup>{}</sup> ", html_text)
    )
    small = as_html(table.below) if table.below else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>{small}{below}\n"


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _html_cell(cell: Cell, side: str) -> str:
    text = html_text(cell.main)
    if cell.link and text:
        text = f'<a href="{html_escape.escape(quote(cell.link, safe="/:?#=&%+@"))}">{text}</a>'
    tag = {"best": "b", "strong": "b", "second": "u", "dim": "small"}.get(cell.emphasis)
    parts = [
        f"<{tag}>{text}</{tag}>" if tag and text else text,
        f" <small>± {cell.half}</small>" if cell.half else "",
        f' <abbr title="{cell.sign}">{SIGNS[cell.sign]}</abbr>' if cell.sign else "",
        f"<sup>{', '.join(map(str, cell.marks))}</sup>" if cell.marks else "",
    ]
    names = " ".join(filter(None, ("tint" * (cell.sign == TINT), side)))
    return f"<td{_class(names)}>{''.join(parts)}</td>"


@lru_cache(maxsize=1 << 16)  # a thousand pages say much the same
def html_text(text: str) -> str:
    """Escaped, on one line, with control characters as visible escapes."""
    return html_escape.escape(make_visible(text, limit=None))


# --- CSV ---


def as_csv(names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A line of names, then a line for each row: numbers with all digits, "yes" and "no", nothing for None; no text is a formula."""
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [format_csv_value(value, None) for value in row] for row in (names, *rows)
    )
    return out.getvalue()
