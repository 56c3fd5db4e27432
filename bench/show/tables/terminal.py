"""Score tables in a terminal of any width: spreads beside the means where they fit, then of the average alone or under the means,
and columns that do not fit at all in blocks below one another."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.text import Text

from bench.compare.formatting import (
    cells_of,
    has_spread,
    headline,
    score,
    seeds_differ,
    variant_words,
    visible,
)
from bench.compare.statistics.table import Cell, Row, Table
from bench.show.tables.lines import (
    PLAIN_SIGNS,
    SIGNS,
    Line,
    cost_columns,
    costs,
    difference_heading,
    difference_text,
    has_differences,
    legend,
    sign_at,
    spread_text,
    top_sign,
    under,
)

STYLES = {"best": "bold", "second": "underline", "": ""}
GAP = 1
NARROWEST_LABEL = 16
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Look:
    """Width in characters, and what the terminal can show."""

    width: int
    encoding: str
    styled: bool

    def shows(self, sign: str) -> bool:
        try:
            sign.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def sign(self, sign: str, instead: str) -> str:
        return sign if self.shows(sign) else instead

    def spread(self, cell: Cell | None) -> str:
        """With its sign; "" for none."""
        half = "" if cell is None else spread_text(cell)
        return half and self.sign("±", "~") + half

    @property
    def signs(self) -> dict[str, str]:
        return SIGNS if self.shows("".join(SIGNS.values())) else PLAIN_SIGNS

    def mark(self, number: int) -> str:
        """Of a footnote: ¹, or [1] where there are no raised digits."""
        return self.sign(str(number).translate(RAISED), f"[{number}]")


@dataclass(frozen=True)
class Layout:
    """Where things go: tried from the widest to the narrowest."""

    spread: str  # "beside" each mean, "head": of the ranking column, in a column of its own; "under" each mean


@dataclass(frozen=True)
class Column:
    """One column: its text in a row's first line, and in lines under it, whose entries it shows where ``index`` is one of theirs."""

    heading: str
    width: int
    show: Callable[[Row], Text]
    index: int = -1
    slot: int = 0  # characters kept free after a number, for a sign
    after: int = 0  # and after that, for a spread
    binds: bool = False  # belongs to the column before it
    last: bool = False  # may stand in a block of its own: difference, cost
    first: bool = False  # stands before the method


def draw(
    tables: Sequence[Table],
    width: int,
    encoding: str = "utf-8",
    *,
    styled: bool = True,
) -> Group:
    """All tables, one below the other. ``styled``: bold and underline can be seen, so a line says what they mean."""
    look = Look(max(width, 40), encoding, styled)
    parts: list[RenderableType] = []
    for i, table in enumerate(tables):
        parts += [Text("")] * bool(i) + _table(table, look)
    return Group(*parts)


def _table(table: Table, look: Look) -> list[RenderableType]:
    labels = [_label(row, table, look) for row in table.rows]
    extra = [under(row) for row in table.rows]
    longest = max(
        len("method"),
        *(len(label) for label in labels),
        *(len(line.label) + 2 for lines in extra for line in lines),
    )
    narrowest = min(longest, NARROWEST_LABEL)  # a longer label is folded before a number moves
    layout, columns = _planned(table, extra, look.width - narrowest, look)
    blocks = _blocks(columns, look.width - narrowest)
    parts: list[RenderableType] = [_headline(table, look)]
    for block in blocks:
        before = [column for column in block if column.first]
        after = block[len(before) :]
        width = min(longest, look.width - _needed(block))
        headings = [Text(column.heading, "dim") for column in before]
        parts.append(
            _line(
                before,
                headings,
                Text("method", "dim"),
                width,
                after,
                [_heading(column) for column in after],
            )
        )
        for row, label, lines in zip(table.rows, labels, extra, strict=True):
            parts += _lines(before, label, width, after, row)
            for line in lines if any(column.index >= 0 for column in block) else ():
                name = Text("  " + visible(line.label, look.encoding), "dim")
                entries = [_entry(line, column, look) for column in after]
                parts.append(_line(before, [Text("")] * len(before), name, width, after, entries))
    return parts + _legend(table, layout, look)


def _lines(
    before: Sequence[Column], label: Text, width: int, after: Sequence[Column], row: Row
) -> list[Text]:
    """A row: one line, or more where the label is folded or a spread stands under its mean."""
    folded = _fold(label, width)
    shown = [
        list(text.split("\n")) if "\n" in text.plain else [text]
        for text in (column.show(row) for column in after)
    ]
    height = max(len(folded), *(len(parts) for parts in shown)) if shown else len(folded)
    nothing = Text("")
    return [
        _line(
            before,
            [column.show(row) if not i else nothing for column in before],
            folded[i] if i < len(folded) else nothing,
            width,
            after,
            [parts[i] if i < len(parts) else nothing for parts in shown],
        )
        for i in range(height)
    ]


def _line(
    before: Sequence[Column],
    ahead: Sequence[Text],
    label: Text,
    width: int,
    after: Sequence[Column],
    cells: Sequence[Text],
) -> Text:
    """Columns of known width side by side: what stands before the label on the left of its room, all after it on the right."""
    line = Text(no_wrap=True, overflow="ignore")
    for column, text in zip(before, ahead, strict=True):
        line.append_text(text).append(" " * (column.width + GAP - text.cell_len))
    line.append_text(label)
    room = width - label.cell_len
    for column, text in zip(after, cells, strict=True):
        line.append(" " * (room + GAP + column.width - text.cell_len)).append_text(text)
        room = 0
    line.rstrip()
    return line


def _fold(label: Text, width: int) -> list[Text]:
    """In lines of at most ``width`` characters: between words, else after a hyphen, else within a word."""
    if label.cell_len <= width:
        return [label]
    if (
        label.cell_len != len(label.plain) or width < 1
    ):  # one character is not one column, or there is no room at all
        folded = list(label.wrap(Console(width=width), width, overflow="fold"))
        for part in folded:
            part.rstrip()
        return folded
    parts, at = [], 0
    whole = textwrap.wrap(label.plain, width, break_on_hyphens=False, break_long_words=False)
    for words in (part for line in whole for part in textwrap.wrap(line, width)):
        at = label.plain.index(words, at)
        parts.append(label[at : at + len(words)])
        at += len(words)
    return parts


def _headline(table: Table, look: Look) -> Text:
    left = visible(headline(table), look.encoding)
    if table.baseline is None or table.tested is None:
        return Text(left, "bold")
    right = f"baseline: {visible(table.baseline, look.encoding)}"
    space = look.width - len(left) - len(right)
    return Text.assemble((left, "bold"), " " * space if space > 1 else "\n", right)


def _label(row: Row, table: Table, look: Look) -> Text:
    words = variant_words(row, table)
    marks = look.sign("·", ",").join(look.mark(number + 1) for number in row.footnotes)
    name = visible(row.label, look.encoding) + ("" if words else marks)
    return Text.assemble(
        name, (" " + visible(words, look.encoding) + marks if words else "", "dim")
    )


def _planned(
    table: Table, extra: Sequence[Sequence[Line]], room: int, look: Look
) -> tuple[Layout, list[Column]]:
    """The first layout whose columns fit in one block, else whose scores do, else the last one."""
    narrow = [Layout("head" if has_spread(table) and table.head else "under")]
    made = [
        (layout, _columns(table, extra, layout, look)) for layout in (Layout("beside"), *narrow)
    ]
    for wanted in (lambda column: True, lambda column: not column.last):
        for layout, columns in made:
            if _needed([column for column in columns if wanted(column)]) <= room:
                return layout, columns
    return made[-1]


def _columns(
    table: Table, extra: Sequence[Sequence[Line]], layout: Layout, look: Look
) -> list[Column]:
    columns = []
    if table.tested is not None:
        columns.append(
            Column("", 1, lambda row: Text(look.signs.get(top_sign(row), "")), first=True)
        )
    if seeds_differ(table):
        columns.append(Column("n", 3, lambda row: Text(str(table.n(row)), "dim")))
    for i, heading in enumerate(table.columns):
        columns.append(_task(table, i, visible(heading, "ascii"), extra, layout, look))
        if layout.spread == "head" and heading == table.head and i == len(table.columns) - 1:
            columns.append(_head_spread(table, look))
    if has_differences(table):
        heading = visible(difference_heading(table), look.encoding)
        width = max(len(heading), *(len(difference_text(row)) for row in table.rows))
        columns.append(Column(heading, width, lambda row: Text(difference_text(row)), last=True))
    for name in cost_columns(table):
        width = max(len(name), *(len(costs(row.cost)[name]) for row in table.rows))
        columns.append(
            Column(name, width, lambda row, name=name: Text(costs(row.cost)[name]), last=True)  # type: ignore[misc]
        )
    return columns


def _task(
    table: Table, i: int, heading: str, extra: Sequence[Sequence[Line]], layout: Layout, look: Look
) -> Column:
    cells = [cell for row in table.rows if (cell := row.cells[i]) is not None]
    entries = [line.entries[i] for lines in extra for line in lines]
    slot = int(
        any(entry.sign for entry in entries) or any(sign_at(row, table, i) for row in table.rows)
    )
    number = max(
        [
            5,
            *(len(score(cell.mean, cell.decimals)) for cell in cells),
            *(len(entry.text) for entry in entries),
        ]
    )
    widest = max(len(look.spread(cell)) for cell in cells) if cells else 0
    beside = widest if layout.spread == "beside" else 0
    inside = max(number, widest) if layout.spread == "under" else number
    width = max(inside + slot + beside, len(heading))

    def show(row: Row) -> Text:
        sign = look.signs.get(sign_at(row, table, i), "").ljust(slot)
        return _number(row.cells[i], layout, look, sign, beside)

    return Column(heading, width, show, index=i, slot=slot, after=beside)


def _heading(column: Column) -> Text:
    """Over the numbers; what comes after these has none."""
    return Text(
        column.heading + " " * min(column.slot + column.after, column.width - len(column.heading)),
        "dim",
    )


def _entry(line: Line, column: Column, look: Look) -> Text:
    if column.index < 0:
        return Text("")
    entry = line.entries[column.index]
    return Text(entry.text + look.signs.get(entry.sign, "").ljust(column.slot) + " " * column.after)


def _number(cell: Cell | None, layout: Layout, look: Look, sign: str, beside: int) -> Text:
    if cell is None:
        return Text("")
    text = Text.assemble((score(cell.mean, cell.decimals), STYLES[cell.mark]), sign)
    shown = look.spread(cell)
    if beside:
        return Text.assemble(text, (shown.ljust(beside), "dim"))
    return (
        Text.assemble(text, "\n", (shown + " " * len(sign), "dim"))
        if layout.spread == "under" and shown
        else text
    )


def _head_spread(table: Table, look: Look) -> Column:
    def show(row: Row) -> Text:
        return Text(look.spread(row.cells[-1]), "dim")

    width = max(7, *(len(show(row)) for row in table.rows))
    return Column("95 % CI", width, show, binds=True)


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _blocks(columns: Sequence[Column], room: int) -> list[list[Column]]:
    """Columns in as many groups as the room asks for; what belongs to a column stays with it, cost together."""
    blocks: list[list[Column]] = [[]]
    last = [column for column in columns if column.last]
    for column in columns:
        if column in last[:1] and room >= _needed(last) > room - _needed(blocks[-1]):
            blocks.append([])
        if blocks[-1] and _needed([*blocks[-1], column]) > room:
            blocks.append([blocks[-1].pop()] if column.binds and len(blocks[-1]) > 1 else [])
        blocks[-1].append(column)
    return blocks


def _legend(table: Table, layout: Layout, look: Look) -> list[RenderableType]:
    lines = _footnotes(table, look) + [visible(note, look.encoding) for note in table.notes]
    words = legend(table, look.signs, plus_minus=look.sign("±", "~"))
    marks = {cell.mark for cell in cells_of(table)} - {""}
    if look.styled and marks:
        more = ", second underlined" if "second" in marks else ""
        words.append(f"highest in bold{more}")
    lines += [visible(line, look.encoding) for line in words]
    return [Text(line, "dim") for line in lines]


def _footnotes(table: Table, look: Look) -> list[str]:
    """The settings in which rows differ, in columns; the last one, which may hold long commands, is not shortened."""
    if not table.footnotes:
        return []
    cells: list[tuple[str, ...]] = [("", "setting", "value", "rows", "most rows")]
    for i, note in enumerate(table.footnotes, 1):
        texts = (note.setting, note.value, note.rows, note.most)
        cells.append((look.mark(i), *(visible(text, look.encoding, limit=None) for text in texts)))
    widths = [min(40, max(len(line[j]) for line in cells)) for j in range(5)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
