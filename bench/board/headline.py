"""The sentence that a reader came for: which row is best, by how much, how surely, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.board.board import BoardTable
from bench.compare.formatting import SEVERAL, duration, is_top, score, signed, variant_words, with_interval
from bench.compare.statistics.table import AVERAGE, Cell, Row, Table

NAMED = 4  # rows that the sentence names
VERDICTS = ("better", "worse", "equivalent", "unknown")  # in the order in which the sentence counts them
NAMES = {"sts": "STS", "cxc": "CxC", "mteb": "MTEB"}
Ranked = tuple[Row, Cell]
"""A row, and its cell in the column that ranks."""


def answer(tables: Sequence[BoardTable]) -> str:
    """Of the first table that ranks several rows, else of the first that ranks one. What nobody here has checked is not told of."""
    ranking = [
        board_table.table
        for board_table in tables
        if board_table.checked and board_table.table.head is not None and _best_first(board_table.table)
    ]
    if tables and not any(board_table.checked for board_table in tables):
        return "Every row was sent in, and none was checked here yet: none is ranked."
    if not ranking:
        return "No method has a score on every task yet."
    table = next((compared_table for compared_table in ranking if len(_best_first(compared_table)) > 1), ranking[0])
    rows = _best_first(table)
    where, what = place_words(table), head_words(table)
    best = f"{row_name(rows[0][0], table)}"
    value = score(rows[0][1].mean, rows[0][1].decimals)
    if len(rows) == 1:
        return f"{where}: {best} reaches {value} on {what}{cost_words(rows[0][0], best)}."
    second, below = row_name(rows[1][0], table), rows[1][1]
    ahead = signed(round(rows[0][1].mean, below.decimals) - round(below.mean, below.decimals), below.decimals).lstrip("+")
    if any(row.rank is None for row, _ in rows):
        said = f"{best} has the highest value on {what}, {value}, {ahead} above {second}; differences were not tested"
        return f"{where}: {said}{cost_words(rows[0][0], best)}."
    others = [ranked for ranked in rows[1:] if is_top(ranked[0], table)]
    base = _against_baseline(rows[0], table)
    if len(others) == 1 and others[0][0].is_baseline and (against := rows[0][1].against) is not None:
        name = row_name(others[0][0], table)
        said = f"{best} is highest on {what}, {value}, but cannot be told from {name}, the baseline ({with_interval(against.difference, against.low, against.high)})"
        base = _verdicts(table)
    elif not others:
        said = f"{best} is the best on {what}, {value}, {ahead} above {second}"
    else:
        level = "any other row" if len(others) == len(rows) - 1 > 1 else _listed([row_name(row, table) for row, _ in others])
        said = f"{best} is highest on {what}, {value}, but cannot be told from {level}"
    return f"{where}: {said}{base}{cost_words(rows[0][0], best)}."


def place_words(table: Table) -> str:
    """ "On the built-in backbone, unsupervised, 3 seeds" """
    backbone = "the built-in backbone" if table.backbone == "builtin" else table.backbone or SEVERAL
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
    by, counts = with_interval(against.difference, against.low, against.high), _verdicts(table)
    if against.verdict in ("better", "worse"):
        return f"; it is {against.verdict} than the baseline {name}: {by}{counts}"
    if against.verdict == "equivalent":
        return f"; it is equivalent to the baseline {name}: {by}{counts}"
    among = "the difference to the baseline {} is" if is_top(base, table) else "it cannot be told from the baseline {}:"
    return f"; {among.format(name)} {by}{counts}"


def _verdicts(table: Table) -> str:
    """How many of the rows that were tested against the baseline, which was just named, are better, worse, equivalent, unknown: the best
    may be none of what the others are. Empty where nothing is known of any, or of one alone."""
    found = [cell.against.verdict for row in table.rows if (cell := row.cells[-1]) is not None and cell.against is not None]
    counts = Counter(verdict for verdict in found if verdict is not None)
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
