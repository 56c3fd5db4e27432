"""Print a table on a terminal: wrapped, and without the columns that have no room."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from bench.base.foreign_text import encodable, make_visible
from bench.base.text import list_names
from bench.show.grid import INDENT, SIGNS, Grid, GridCell, GridColumn, GridRow

RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
CONSOLE = Console()
"""Wraps text; nothing is printed on it."""
LONGEST_WORD = 24
"""A column is at least as wide as its longest word, up to so many characters; a longer word, such
as a path, is broken."""
BREAK_AFTER = "/\\-_=@:,+"
"""Signs that a word that is longer than its column is broken after."""
STYLES = {"best": "bold", "strong": "bold", "second": "underline", "dim": "dim"}
"""Emphasis of a cell -> its style on a terminal."""


def terminal_lines(
    table: Grid, width: int, encoding: str = "utf-8", *, indent: int = 0, styled: bool = True
) -> list[Text]:
    """Draw a table in lines of at most ``width`` characters, except for a longer word.

    If the columns do not fit, texts are wrapped, then columns are left out and named below the
    table. A text in the last column with a word that is wider than the column, such as an address,
    follows below its row.
    """
    room = width - indent
    texts = [_row_parts(row, table.columns, encoding) for row in table.rows]
    names = [make_visible(column.name, encoding, limit=None) for column in table.columns]
    tails, natural = _widths(texts, names)
    shown, wide = _fitted(table.columns, natural, _longest_words(texts, len(names)), room)
    lines = []
    if table.title:
        title = wrap_text(make_visible(table.title, encoding, limit=None), room)
        lines += [Text(line, "bold") for line in title if line]
    if any(names):
        heads = []
        for name, of_tail, of_column in zip(names, tails, natural, strict=True):
            heads.append((name, " " * min(of_tail, of_column - cell_len(name)), "dim"))
        lines += _row(heads, shown, wide, table.columns, room)
    for row, cells in zip(texts, table.rows, strict=True):
        drawn = []
        for i, (main, tail) in enumerate(row):
            padded = tail + " " * (tails[i] - cell_len(tail))
            drawn.append((main, padded, STYLES.get(cells[i].emphasis, "")))
        lines += _row(drawn, shown, wide, table.columns, room)
    if table.below:
        lines += [Text(""), *terminal_lines(table.below, room, encoding), Text("")]
    notes = [f"{_raised((i,))} {note}" for i, note in enumerate(table.footnotes, 1)]
    notes += table.notes
    if styled and table.key:
        notes.append(table.key)
    left_out = [name for i, name in enumerate(names) if i not in shown]
    if left_out:
        notes.append(f"not shown at {width} columns: {list_names(left_out, 20)} ({table.whole})")
    for note in notes:
        for line in wrap_text(make_visible(note, encoding, limit=None), room):
            lines.append(Text(line, "dim"))
    return [Text(" " * indent).append_text(line) for line in lines]


def natural_width(table: Grid, encoding: str = "utf-8") -> int:
    """Return the characters that the table's columns take if nothing is wrapped or left out."""
    texts = [_row_parts(row, table.columns, encoding) for row in table.rows]
    names = [make_visible(column.name, encoding, limit=None) for column in table.columns]
    _, natural = _widths(texts, names)
    return sum(natural) + sum(_gaps(range(len(names)), table.columns))


def _widths(
    texts: Sequence[Sequence[tuple[str, str]]], names: Sequence[str]
) -> tuple[list[int], list[int]]:
    """Return the widths of each column's tails, and of the column if nothing is wrapped."""
    tails = [max([cell_len(row[i][1]) for row in texts], default=0) for i in range(len(names))]
    natural = []
    for i, name in enumerate(names):
        widths = [cell_len(row[i][0]) + tails[i] for row in texts]
        natural.append(max([cell_len(name), *widths]))
    return tails, natural


def _longest_words(texts: Sequence[Sequence[tuple[str, str]]], columns: int) -> list[int]:
    """Return the width of the longest word of each of so many columns."""
    longest = [0] * columns
    for row in texts:
        for number, (main, _) in enumerate(row):
            words = [cell_len(word) for word in main.split()]
            longest[number] = max([longest[number], *words])
    return longest


def _row_parts(row: GridRow, columns: Sequence[GridColumn], encoding: str) -> list[tuple[str, str]]:
    """Return the text and the tail of every cell of a row."""
    parts = []
    for number, (cell, column) in enumerate(zip(row, columns, strict=True)):
        indent = row.indent if number == 0 else 0
        parts.append(_parts(cell, column, encoding, indent))
    return parts


def _fitted(
    columns: Sequence[GridColumn], natural: Sequence[int], words: Sequence[int], room: int
) -> tuple[list[int], dict[int, int]]:
    """Return the columns that are shown, in order, and how wide each is.

    ``words``: the longest word of each column. A column is wrapped to less than that, or than
    LONGEST_WORD, only if no other column can be left out.
    """
    shown = list(range(len(columns)))
    wide = dict(enumerate(natural))
    least = []
    for column, word in zip(columns, words, strict=True):
        least.append(max(column.wrap, min(word, LONGEST_WORD)))

    def excess() -> int:
        return sum(wide[i] for i in shown) + sum(_gaps(shown, columns)) - room

    while excess() > 0:
        wrapped = [i for i in shown if columns[i].wrap and wide[i] > least[i]]
        dropped = [i for i in shown if columns[i].drop and len(shown) > 1]
        broken = [i for i in shown if columns[i].wrap and wide[i] > columns[i].wrap]
        if wrapped:
            wide[max(wrapped, key=lambda i: wide[i])] -= 1
        elif dropped:
            shown.remove(max(dropped, key=lambda i: (columns[i].drop, i)))
        elif broken:
            wide[max(broken, key=lambda i: wide[i])] -= 1
        else:
            break
    if len(shown) < len(columns):
        for i in shown:  # the columns left out gave room back
            if columns[i].wrap:
                wide[i] = min(natural[i], wide[i] + max(0, -excess()))
        shown.sort(key=lambda i: (i > 0, not columns[i].lead, i))
    return shown, wide


def _row(
    cells: Sequence[tuple[str, str, str]],
    shown: Sequence[int],
    wide: dict[int, int],
    columns: Sequence[GridColumn],
    room: int,
) -> list[Text]:
    """Draw one row: its cells side by side, wrapped ones over several lines."""
    *ahead, last = shown
    has_wide_word = any(cell_len(word) > wide[last] for word in cells[last][0].split())
    if ahead and columns[last].wrap and has_wide_word:
        lines = _row(cells, ahead, wide, columns, room)
        for text in wrap_text(cells[last][0], room - 4):
            lines.append(Text("    " + text))
        return lines
    texts = {}
    for i in shown:
        texts[i] = [cells[i][0]]
        if columns[i].wrap:
            texts[i] = wrap_text(cells[i][0], wide[i], fold=i != last)
    lines = []
    for number in range(max(map(len, texts.values()))):
        line = Text()
        for i, gap in zip(shown, [0, *_gaps(shown, columns)], strict=True):
            main, tail, style = cells[i]
            part = texts[i][number] if number < len(texts[i]) else ""
            if number:  # the tail is printed once
                tail = " " * cell_len(tail)
            free = " " * max(0, wide[i] - cell_len(part) - cell_len(tail))
            line.append(" " * gap)
            if columns[i].right:
                line.append(free).append(part, style).append(tail)
            else:
                line.append(part, style).append(tail).append(free)
        line.rstrip()
        lines.append(line)
    return lines


def _gaps(shown: Sequence[int], columns: Sequence[GridColumn]) -> list[int]:
    """Return the blanks before each column but the first."""
    gaps = []
    for i, j in zip(shown, shown[1:], strict=False):
        usual = 1 if columns[i].right and columns[j].right else 2
        own = columns[i].gap
        gaps.append(usual if own is None else own)
    return gaps


def wrap_text(text: str, room: int, *, fold: bool = False) -> list[str]:
    """Break a text between words into lines of ``room`` columns, at least one.

    A longer word has its own line. With ``fold`` it is broken after a sign such as "/", and within
    its letters only if it has none.
    """
    if fold:
        text = " ".join(_break_word(word, max(room, 1)) for word in text.split(" "))
    lines = Text(text, overflow="ignore").wrap(CONSOLE, max(room, 1))
    texts = [line.plain.rstrip() for line in lines]
    return [line for line in texts if line] or [""]


def _break_word(word: str, room: int) -> str:
    """Return a word in parts of at most ``room`` columns, with blanks between them."""
    parts = []
    while cell_len(word) > room:
        end = 1
        while end < len(word) and cell_len(word[: end + 1]) <= room:
            end += 1
        signs = [i for i in range(1, end + 1) if word[i - 1] in BREAK_AFTER]
        if signs:
            end = signs[-1]
        parts.append(word[:end])
        word = word[end:]
    return " ".join([*parts, word])


def _parts(cell: GridCell, column: GridColumn, encoding: str, indent: int) -> tuple[str, str]:
    """Return a cell's text and its tail: spread, sign and marks.

    The tail of a right-aligned column has a width of its own, so that digits stay aligned.
    """
    blanks = INDENT * indent
    main = blanks + make_visible(cell.main, encoding, limit=None)
    tail = f" ± {cell.half}" if cell.half else ""
    if cell.sign:
        tail += f" {SIGNS[cell.sign]}"
    tail = encodable(tail + _raised(cell.marks), encoding)
    return (main, tail) if column.right else (main + tail, "")


def _raised(marks: Sequence[int]) -> str:
    """Write footnote numbers as raised digits: "¹·²"."""
    return "·".join(str(mark).translate(RAISED) for mark in marks)
