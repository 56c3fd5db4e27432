"""What pages and printed tables both write of a table's rows: intervals, the difference from the baseline, what papers printed,
what a row trains."""

from __future__ import annotations

from typing import NamedTuple

from bench.base.text import list_names
from bench.compare import statements
from bench.compare.formatting import score, signed_number, spread, with_interval
from bench.compare.statistics.table import BETTER, WORSE, Cell, Row, Table
from bench.show.grid import Cell as GridCell


def spread_text(cell: Cell) -> str:
    """The number after a mean's ± sign; "" for none."""
    half = spread(cell)
    return "" if half is None else score(half, cell.decimals)


# --- the difference from the baseline ---


def sign_name(row: Row, table: Table) -> str:
    """The key of SIGNS that stands at a row's number in the column that ranks; "" for none."""
    if table.tested is not None and row.untested and row.cells[-1] is not None:
        return "not tested"
    verdict = statements.verdict(row)
    return verdict if verdict in (BETTER, WORSE) else ""


def has_differences(table: Table) -> bool:
    return table.head is not None and any(map(statements.verdict, table.rows))


def difference_heading(table: Table) -> str:
    level = f" [{100 * table.tested.ci_level:.3g} % CI]" if table.tested else ""
    return f"less {table.baseline}{level}"


def difference_text(row: Row) -> str:
    """ "-1.84 [-2.73, -0.95]"; "" of a row that was not compared."""
    against, cell = statements.compared(row), row.cells[-1]
    if against is None or cell is None:
        return "baseline" if row.is_baseline else ""
    return with_interval(against.difference, against.ci_low, against.ci_high, cell.decimals)


# --- what papers printed ---


class Line(NamedTuple):
    """One line under a row: its entries belong to the table's columns."""

    label: str
    entries: tuple[GridCell, ...]


def under(row: Row) -> list[Line]:
    """For each paper table that prints a number of this row: what it prints, ours less that, and half of the prediction
    interval."""
    every = [cell.printed for cell in row.cells if cell and cell.printed]
    made = []
    for source in dict.fromkeys(printed.source for printed in every):
        copied = any(one.source == source and not one.own for one in every)
        labels = f"{source}, copied" if copied else source, "ours less that", "95 % prediction ±"
        columns = zip(*(_paper_cells(cell, source) for cell in row.cells), strict=True)
        made += [Line(*line) for line in zip(labels, columns, strict=True)]
    return [line for line in made if any(cell.text for cell in line.entries)]


def _paper_cells(cell: Cell | None, source: str) -> tuple[GridCell, GridCell, GridCell]:
    """One column of these lines; empty where this paper table prints nothing of it."""
    if cell is None or cell.printed is None or cell.printed.source != source:
        return GridCell(), GridCell(), GridCell()
    printed, places = cell.printed, cell.decimals
    half = "" if printed.half is None else score(printed.half, places)
    less, sign = signed_number(printed.difference, places), "outside" * (printed.inside is False)
    return (
        GridCell(text=score(printed.value, places), emphasis="dim"),
        GridCell(text=less, sign=sign, emphasis="dim"),
        GridCell(text=half, emphasis="dim"),
    )


# --- cost ---


def encode_condition(table: Table) -> str:
    """Under which the encoding of its rows was measured; "" where it was not."""
    known = (row.cost.encode_condition for row in table.rows if row.cost)
    return next(filter(None, known), "")


def parts_trained(table: Table) -> list[str]:
    """ "trained of promcse, dcpcse: 295k prompt, 591k head", a line for all rows that train the same numbers of the same
    parts."""
    rows: dict[str, dict[str, None]] = {}
    for row in table.rows:
        if row.cost is not None and row.cost.trainable_parts:
            parts = row.cost.trainable_parts.items()
            text = ", ".join(f"{short(count)} {part_name(part)}" for part, count in parts)
            rows.setdefault(text, {})[row.name] = None
    return [f"trained of {list_names(names)}: {parts}" for parts, names in rows.items()]


def part_name(part: str) -> str:
    """What a reader calls a part of a method."""
    return "LM head" if part == "lm_head" else part.replace("_", " ")


def short(count: float | None) -> str:
    """ "0", "12", "1.2k", "340M"; "" for None."""
    if count is None:
        return ""
    for unit in ("", "k", "M", "G"):
        if count < 999.5:
            return f"{count:.0f}{unit}" if not unit or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1000
    return f"{count:.1f}T"
