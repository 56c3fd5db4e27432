"""The sentence that a reader came for: which rows are best, how surely, and whether they beat the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from bench.board.board import BoardTable
from bench.compare.formatting import is_top, score, signed, variant_words
from bench.compare.statistics.grouping import AVERAGE
from bench.compare.statistics.table import Cell, Row, Table

NAMED = 4  # rows that the sentence names
COUNTS = ("none", "it", "both", "all three", "all four", "all five", "all six", "all seven", "all eight", "all nine")
NAMES = {"sts": "STS", "cxc": "CxC", "mteb": "MTEB"}
Ranked = tuple[Row, Cell]
"""A row, and its cell in the column that ranks."""


def answer(tables: Sequence[BoardTable]) -> str:
    """Of the first table that ranks several rows, else of the first that ranks one. What nobody here has checked is not told of."""
    ranking = [one.table for one in tables if one.checked and one.table.head is not None and _best_first(one.table)]
    if tables and not any(one.checked for one in tables):
        return "Every row was sent in, and none was checked here yet: none is ranked."
    if not ranking:
        return "No method has a score on every task yet."
    table = next((one for one in ranking if len(_best_first(one)) > 1), ranking[0])
    rows = _best_first(table)
    where, what = place_words(table), head_words(table)
    best = f"{row_name(rows[0][0], table)}"
    value = score(rows[0][1].mean, rows[0][1].decimals)
    if len(rows) == 1:
        return f"{where}: {best} reaches {value} on {what}."
    second, below = row_name(rows[1][0], table), rows[1][1]
    ahead = signed(round(rows[0][1].mean, below.decimals) - round(below.mean, below.decimals), below.decimals).lstrip("+")
    if any(row.rank is None for row, _ in rows):
        return f"{where}: {best} has the highest value on {what}, {value}, {ahead} above {second}; differences were not tested."
    top = [one for one in rows if is_top(one[0])]
    if len(top) == 1:
        said = f"{best} is the best on {what}, {value}, {ahead} above {second}"
    elif len(top) == len(rows):
        said = f"none of the {len(rows)} rows can be told from {best}, the highest on {what} with {value}"
    else:
        said = f"{_listed([row_name(row, table) for row, _ in top])} cannot be told apart on {what}"
    return f"{where}: {said}{_against_baseline(top, table)}."


def place_words(table: Table) -> str:
    """ "On the built-in backbone, unsupervised, 3 seeds" """
    backbone = "the built-in backbone" if table.backbone == "builtin" else table.backbone or "several backbones"
    setting = {"none": "nothing trained", None: "several settings"}.get(table.setting, table.setting)
    counts = [len(row.runs) for row in table.rows if row.setting != "none"]
    seeds = ""
    if counts:
        few, many = min(counts), max(counts)
        seeds = f", {many} seed{'s' * (many != 1)}" if few == many else f", {few} to {many} seeds"
    return f"On {backbone}, {setting}{seeds}"


def head_words(table: Table) -> str:
    """ "the STS average", "CxC-STS" """
    form = "" if table.text in (None, "tokenised") else f" ({table.text})"
    return f"the {NAMES.get(table.suite, table.suite)} average{form}" if table.head == AVERAGE else f"{table.head}{form}"


def row_name(row: Row, table: Table) -> str:
    """ "promcse (eh)" """
    beside = variant_words(row, table)
    return f"{row.method} ({beside})" if beside else row.method


def _best_first(table: Table) -> list[Ranked]:
    having = [(row, cell) for row in table.rows if (cell := row.cells[-1]) is not None]
    return sorted(having, key=lambda one: -one[1].mean)


def _against_baseline(top: Sequence[Ranked], table: Table) -> str:
    """What can be said of the best rows and the baseline; empty where they were not tested against it."""
    base = next((row for row in table.rows if row.is_baseline), None)
    if base is None or table.baseline is None:
        return ""
    name = row_name(base, table)
    if any(row.is_baseline for row, _ in top):
        worse = sum(
            cell is not None and cell.against is not None and cell.against.verdict == "worse"
            for cell in (row.cells[-1] for row in table.rows)
        )
        told = f"; {worse} of {len(table.rows) - 1} other rows {'is' if worse == 1 else 'are'} worse than it" if worse else ""
        return (f"; the baseline, {name}, is among them" if len(top) > 1 else ", and it is the baseline") + told
    verdicts = [(row, cell.against) for row, cell in top if cell.against is not None and cell.against.verdict is not None]
    better = [(row, one) for row, one in verdicts if one.verdict == "better"]
    if len(verdicts) < len(top):
        return ""
    if not better:
        if all(one.verdict == "equivalent" for _, one in verdicts):
            return f"; {'it is' if len(top) == 1 else 'all are'} equivalent to the baseline {name}"
        told = "it cannot" if len(top) == 1 else "none of them can"
        return f"; {told} be told from the baseline {name}"
    least = min((one for _, one in better), key=lambda one: one.difference)
    between = "" if least.low is None or least.high is None else f" [{signed(least.low)}, {signed(least.high)}]"
    if len(better) < len(top):
        which = _listed([row_name(row, table) for row, _ in better])
        return f"; better than {name}: {which} (smallest difference {signed(least.difference)}{between})"
    if len(top) == 1:
        return f"; it is better than {name} by {score(least.difference)}{between}"
    count = COUNTS[len(top)] if len(top) < len(COUNTS) else f"all {len(top)}"
    return f"; {count} are better than {name} (smallest difference {signed(least.difference)}{between})"


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c", "a, b, c, d and 3 more" """
    names = list(dict.fromkeys(names))
    if len(names) > NAMED:
        return ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
