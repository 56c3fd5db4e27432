"""The sentence that a reader came for: which row is best, by how much, how surely, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.board.board import BoardTable
from bench.compare.formatting import SEVERAL, duration, is_top, score, signed_number, variant_words, with_interval
from bench.compare.statistics.table import AVERAGE, Cell, Row, Table

NAMED = 4  # rows that the sentence names
VERDICTS = ("better", "worse", "equivalent", "unknown")  # in the order in which the sentence counts them
NAMES = {"sts": "STS", "cxc": "CxC", "mteb": "MTEB"}
Ranked = tuple[Row, Cell]
"""A row, and its cell in the column that ranks."""


def answer(tables: Sequence[BoardTable]) -> str:
    """Of the first table that ranks several rows, else of the first that ranks one. What nobody here has checked is not told of."""
    checked = [board_table.table for board_table in tables if board_table.checked]
    if tables and not checked:
        return "Every row was sent in, and none was checked here yet: none is ranked."
    ranking = [(table, rows) for table in checked if table.head is not None and (rows := _best_first(table))]
    if not ranking:
        return "No method has a score on every task yet."
    table, rows = next((ranked for ranked in ranking if len(ranked[1]) > 1), ranking[0])
    (row, cell), *below = rows
    where, what, best = place_words(table), head_words(table), row_name(row, table)
    value, cost = score(cell.mean, cell.decimals), cost_words(row, best)
    if not below:
        return f"{where}: {best} reaches {value} on {what}{cost}."
    second, decimals = below[0][1], below[0][1].decimals
    ahead = (
        signed_number(round(cell.mean, decimals) - round(second.mean, decimals), decimals).lstrip("+")
        + f" above {row_name(below[0][0], table)}"
    )
    if any(row.rank is None for row, _ in rows):
        return f"{where}: {best} has the highest value on {what}, {value}, {ahead}; differences were not tested{cost}."
    level = [other for other, _ in below if is_top(other, table)]
    if not level:
        return f"{where}: {best} is the best on {what}, {value}, {ahead}{_against_baseline(rows[0], table)}{cost}."
    if len(level) == 1 and level[0].is_baseline and (against := cell.against) is not None:
        by = with_interval(against.difference, against.low, against.high)
        others, base = f"{row_name(level[0], table)}, the baseline ({by})", _verdicts(table)
    else:
        others = "any other row" if len(level) == len(below) > 1 else _listed([row_name(other, table) for other in level])
        base = _against_baseline(rows[0], table)
    return f"{where}: {best} is highest on {what}, {value}, but cannot be told from {others}{base}{cost}."


def place_words(table: Table) -> str:
    """ "On the built-in backbone, unsupervised, 3 seeds" """
    backbone = "the built-in backbone" if table.backbone == "builtin" else table.backbone or SEVERAL
    where = f"On {backbone}, {setting_words(table.setting)}"
    counts = [len(row.runs) for row in table.rows if row.setting != "none"]
    if not counts:
        return where
    few, many = min(counts), max(counts)
    return f"{where}, {many} seed{'s' * (many != 1)}" if few == many else f"{where}, {few} to {many} seeds"


def setting_words(setting: str | None) -> str:
    return {"none": "nothing trained", None: "several settings"}.get(setting) or setting or ""


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
    return sorted(having, key=lambda row_and_cell: -row_and_cell[1].mean)


def cost_words(row: Row, name: str) -> str:
    """What the best row cost; "" where that was not recorded, or is no time of training."""
    seconds = row.cost.train_seconds if row.cost is not None else None
    return f"; training {name} takes {duration(seconds)}" if seconds else ""


def _against_baseline(best: Ranked, table: Table) -> str:
    """What can be said of the best row and the baseline; empty where it was not tested against it."""
    base = next((row for row in table.rows if row.is_baseline), None)
    if base is None or table.baseline is None:
        return ""
    name = row_name(base, table)
    against = best[1].against
    if best[0].is_baseline:
        return f", and it is the baseline{_verdicts(table)}"
    if against is None or against.verdict is None:
        return ""
    if against.verdict in ("better", "worse"):
        said = f"it is {against.verdict} than the baseline {name}:"
    elif against.verdict == "equivalent":
        said = f"it is equivalent to the baseline {name}:"
    elif is_top(base, table):
        said = f"the difference to the baseline {name} is"
    else:
        said = f"it cannot be told from the baseline {name}:"
    return f"; {said} {with_interval(against.difference, against.low, against.high)}{_verdicts(table)}"


def _verdicts(table: Table) -> str:
    """How many of the rows that were tested against the baseline, which was just named, are better, worse, equivalent, unknown: the best
    may be none of what the others are. Empty where nothing is known of any, or of one alone."""
    compared = [cell.against for row in table.rows if (cell := row.cells[-1]) is not None and cell.against is not None]
    counts = Counter(against.verdict for against in compared if against.verdict is not None)
    first, *others = [verdict for verdict in VERDICTS if counts[verdict]] or ["unknown"]
    if counts.total() < 2 or first == "unknown":
        return ""
    be = "is" if counts[first] == 1 else "are"
    return f"; {', '.join([f'{counts[first]} of {counts.total()} rows {be} {first}', *(f'{counts[other]} {other}' for other in others)])}"


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c", "a, b, c, d and 3 more" """
    names = list(dict.fromkeys(names))
    if len(names) > NAMED:
        return ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
