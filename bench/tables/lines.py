"""What stands under and beside a row's means in every form of a table: differences, printed values, cost."""

from __future__ import annotations

from dataclasses import dataclass

from bench.statistics.table import Cell, Cost, Row, Table
from bench.tables.words import baseline_words, family_words, has_ranks, has_ties, signed, spread_words
from bench.tables.words import score as number

BETTER, WORSE, TIED, OUTSIDE = "better", "worse", "tied", "outside"
SIGNS = {BETTER: "▲", WORSE: "▼", TIED: "≈", OUTSIDE: "*"}
PLAIN_SIGNS = {BETTER: "^", WORSE: "v", TIED: "=", OUTSIDE: "*"}  # where nothing but ASCII can be shown


@dataclass(frozen=True)
class Entry:
    """A number as printed, and the name of the sign after it ("" for none)."""

    text: str = ""
    sign: str = ""


@dataclass(frozen=True)
class Line:
    """One line under a row: its entries belong to the table's columns."""

    label: str
    entries: tuple[Entry, ...]


def under(row: Row, table: Table) -> list[Line]:
    """Differences from the baseline; then what a paper printed, and ours less that."""
    lines = []
    if table.baseline and not row.is_baseline:
        lines.append(Line(f"less {table.baseline}", tuple(_against(cell) for cell in row.cells)))
    sources = list(dict.fromkeys(cell.printed.source for cell in row.cells if cell is not None and cell.printed))
    for source in sources:
        printed = [
            cell.printed if cell is not None and cell.printed and cell.printed.source == source else None for cell in row.cells
        ]
        copied = any(one is not None and not one.own for one in printed)
        decimals = [cell.decimals if cell is not None else 2 for cell in row.cells]
        lines.append(Line(f"{source}{', copied' if copied else ''}",
                          tuple(Entry(number(one.value, d)) if one else Entry() for one, d in zip(printed, decimals, strict=True))))  # fmt: skip
        lines.append(Line("ours less that", tuple(
            Entry(signed(one.difference, d), OUTSIDE if one.inside is False else "") if one else Entry()
            for one, d in zip(printed, decimals, strict=True))))  # fmt: skip
    return lines


def _against(cell: Cell | None) -> Entry:
    if cell is None or cell.against is None:
        return Entry()
    verdict = cell.against.verdict
    return Entry(signed(cell.against.difference, cell.decimals), verdict if verdict in (BETTER, WORSE) else "")


COSTS = ("params", "train", "memory")


def has_costs(table: Table) -> bool:
    return any(row.cost is not None for row in table.rows)


def costs(cost: Cost | None) -> tuple[str, str, str]:
    """Trained parameters, training time, peak memory, short: "5.3M", "13m32s", "1.4G"; "" where it was not recorded."""
    if cost is None:
        return "", "", ""
    return _short(cost.trainable_parameters), _time(cost.train_seconds), _short(cost.peak_memory_bytes)


def _short(count: float | None) -> str:
    if count is None:
        return ""
    for unit in ("", "k", "M", "G"):
        if count < 999.5:
            return f"{count:.0f}{unit}" if not unit or count >= 99.95 else f"{count:.1f}{unit}"
        count /= 1000
    return f"{count:.1f}T"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 59.5:
        return f"{seconds:.0f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def legend(table: Table, signs: dict[str, str], *, plus_minus: str = "±", ties: bool = True) -> list[str]:
    """What the signs and lines mean, one sentence each; only what the table has. ``signs`` as the form prints them."""
    words = []
    if spread := spread_words(table):
        words.append(f"{plus_minus}: {spread}")
    tested = family_words(table, "differences from the best")
    if ties and has_ties(table):
        words.append(f"{signs[TIED]}: cannot be told from the best of its column ({tested})")
    if has_ranks(table):
        told = "" if ties and has_ties(table) else f" ({tested})"
        words.append(f"rank: rows that cannot be told from the best of their group share it{told}")
    if table.baseline:
        words.append(_baseline_legend(table, signs))
    if any(cell is not None and cell.printed for row in table.rows for cell in row.cells):
        words.append(_paper_legend(table, signs))
    if has_costs(table):
        words.append("params: trained; train: time of training; memory: peak, bytes; means over seeds")
    return words


def _baseline_legend(table: Table, signs: dict[str, str]) -> str:
    how = family_words(table, baseline_words(table))
    if not how or not any(cell is not None and cell.against and cell.against.verdict for row in table.rows for cell in row.cells):
        return f"less {table.baseline}: not tested" + ("" if table.tested else ", no predictions")
    return f"{signs[BETTER]} better, {signs[WORSE]} worse than {table.baseline}; no sign: cannot tell ({how})"


def _paper_legend(table: Table, signs: dict[str, str]) -> str:
    printed = [cell.printed for row in table.rows for cell in row.cells if cell is not None and cell.printed]
    words = "paper:table: what it printed"
    if any(one.inside is not None for one in printed):
        words += f"; {signs[OUTSIDE]} the printed value lies outside our interval"
    return words
