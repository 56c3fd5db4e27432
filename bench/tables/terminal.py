"""Score tables in a terminal of any width: the spread beside the mean where it fits, under it where not, and columns that do
not fit at all in blocks below one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from bench.statistics.summary import Row, Table
from bench.tables.words import has_spread, headline, score, seeds_differ, signed, variant_words, visible

STYLES = {"best": "bold", "second": "underline", "": ""}
GAP = 1
NARROWEST_LABEL = 16


@dataclass(frozen=True)
class Look:
    """Width in characters, and what the terminal can show."""

    width: int
    encoding: str
    styled: bool

    def sign(self, sign: str, instead: str) -> str:
        try:
            sign.encode(self.encoding)
        except UnicodeEncodeError:
            return instead
        return sign


@dataclass(frozen=True)
class Column:
    """One column of numbers: where it stands in the rows, or -1 for seeds and -2 for differences."""

    heading: str
    index: int
    width: int
    spread: int = 0  # characters kept free beside a mean without one


def draw(tables: Sequence[Table], width: int, encoding: str = "utf-8", *, styled: bool = True) -> Group:
    """All tables, one below the other. ``styled``: bold and underline can be seen, so a line says what they mean."""
    look = Look(max(width, 40), encoding, styled)
    parts: list[RenderableType] = []
    for i, table in enumerate(tables):
        parts += [Text("")] * bool(i) + _table(table, look)
    return Group(*parts)


def _table(table: Table, look: Look) -> list[RenderableType]:
    labels = [_label(row, table, look) for row in table.rows]
    longest = max(len("method"), *(len(label) for label in labels))
    narrowest = min(longest, NARROWEST_LABEL)  # a longer label is folded before a number moves
    columns = _columns(table, beside=True)
    beside = _needed(columns) + narrowest <= look.width
    if not beside:
        columns = _columns(table, beside=False)
    blocks = _blocks(columns, look.width - narrowest)
    parts: list[RenderableType] = [_headline(table, look)]
    for block in blocks:
        room = look.width - _needed(block)
        grid = Grid(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_edge=False, header_style="dim")
        grid.add_column("method", width=min(longest, room), overflow="fold")
        for column in block:
            grid.add_column(Text(column.heading), justify="right", width=column.width, no_wrap=True)
        for row, label in zip(table.rows, labels, strict=True):
            grid.add_row(label, *(_number(row, column, beside, look) for column in block))
        parts.append(grid)
    return parts + _legend(table, look)


def _headline(table: Table, look: Look) -> Text:
    left = visible(headline(table), look.encoding)
    right = f"baseline: {visible(table.baseline, look.encoding)}" if table.baseline else ""
    space = look.width - len(left) - len(right)
    if not right:
        return Text(left, "bold")
    return Text.assemble((left, "bold"), " " * space if space > 1 else "\n", right)


def _label(row: Row, table: Table, look: Look) -> Text:
    words = variant_words(row, table)
    return Text.assemble(visible(row.method, look.encoding), (" " + visible(words, look.encoding) if words else "", "dim"))


def _columns(table: Table, beside: bool) -> list[Column]:
    columns = []
    if seeds_differ(table):
        columns.append(Column("seeds", -1, 5))
    for i, heading in enumerate(table.columns):
        cells = [cell for row in table.rows if (cell := row.cells[i]) is not None]
        mean = max((len(score(cell.mean, cell.decimals)) for cell in cells), default=5)
        spread = max((len(score(cell.sd, cell.decimals)) + 1 for cell in cells if cell.sd is not None), default=0)
        width = mean + spread if beside else max(mean, spread)
        columns.append(Column(visible(heading, "ascii"), i, max(width, len(visible(heading, "ascii"))), spread if beside else 0))
    if table.baseline:
        columns.append(Column("diff.", -2, max(5, *(len(signed(row.difference or 0)) for row in table.rows))))
    return columns


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _blocks(columns: Sequence[Column], room: int) -> list[list[Column]]:
    """Columns in as many groups as the room asks for; the average stays with its difference."""
    blocks: list[list[Column]] = [[]]
    for column in columns:
        if blocks[-1] and _needed([*blocks[-1], column]) > room:
            blocks.append([blocks[-1].pop()] if column.index == -2 and len(blocks[-1]) > 1 else [])
        blocks[-1].append(column)
    return blocks


def _number(row: Row, column: Column, beside: bool, look: Look) -> Text:
    if column.index == -1:
        return Text(str(len(row.runs)), "dim")
    if column.index == -2:
        return Text("" if row.difference is None or row.is_baseline else signed(row.difference))
    cell = row.cells[column.index]
    if cell is None:
        return Text("")
    mean = Text(score(cell.mean, cell.decimals), STYLES[cell.mark])
    if cell.sd is None:
        return Text.assemble(mean, " " * column.spread)
    return Text.assemble(mean, "" if beside else "\n", (look.sign("±", "~") + score(cell.sd, cell.decimals), "dim"))


def _legend(table: Table, look: Look) -> list[RenderableType]:
    lines = [visible(note, look.encoding) for note in table.notes]
    words = []
    if has_spread(table):
        words.append(f"{look.sign('±', '~')}: standard deviation over seeds")
    if look.styled and any(cell is not None and cell.mark for row in table.rows for cell in row.cells):
        words.append("best in bold, second underlined" if _has_second(table) else "best in bold")
    if table.baseline:
        words.append(f"diff.: {table.head} less the baseline's, not tested")
    if words:
        lines.append("; ".join(words))
    return [Text(line, "dim") for line in lines]


def _has_second(table: Table) -> bool:
    return any(cell is not None and cell.mark == "second" for row in table.rows for cell in row.cells)
