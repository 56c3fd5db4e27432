"""The sentence with the finding of a judged table. Each part is said only if its condition holds;
docs/statistics.md has the rule behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bench.base.text import list_names
from bench.compare.formatting import (
    SEVERAL,
    budget_words,
    row_name,
    score,
    setting_words,
    text_words,
)
from bench.compare.statistics.table import (
    AVERAGE,
    BETTER,
    INCONCLUSIVE,
    WORSE,
    Against,
    Cell,
    Row,
    Table,
)

NAMED = 6  # rows that a sentence names

NAMES = {"sts": "STS", "cxc": "CxC", "mteb": "MTEB"}


def table_answer(table: Table) -> str:
    """Say which row is best, as far as the data tell, and how rows compare with the baseline.

    "" for a table that is not ranked.

    A: one row, or nothing was tested. B: one row may be the best. C: some may be. D: all may be.
    """
    rows = ranked_rows(table)
    if not rows:
        return ""
    where, column_name = name_table(table), name_column(table)
    tested = [(row, cell) for row, cell in rows if not row.untested]
    top = [(row, cell) for row, cell in tested if row.may_be_best]
    if len(rows) == 1:
        return (
            f"{where}: {row_name(rows[0][0], table)} reaches {_value(rows[0][1])} on {column_name}."
        )
    if table.tested is None:
        best = [(row, cell) for row, cell in rows if cell.rounded == rows[0][1].rounded]
        names = list_names((row_name(row, table) for row, _ in best), NAMED)
        verb = "is" if len(best) == 1 else "are"
        return (
            f"{where}: highest on {column_name} {verb} {names}, {_value(best[0][1])}; "
            f"differences were not tested: {_reasons(row for row, _ in rows)}."
        )
    if len(top) == 1:
        said = (
            f"{row_name(top[0][0], table)} is the best of {len(tested)} rows on "
            f"{column_name}, {_value(top[0][1])}."
        )
    elif len(top) < len(tested):
        some = list_names((f"{row_name(row, table)} ({_value(cell)})" for row, cell in top), NAMED)
        said = (
            f"the best of {len(tested)} rows on {column_name} is one of {some}; which, "
            "the data do not tell."
        )
    else:
        said = f"the data do not tell which of {len(tested)} rows is best on {column_name}."
    return " ".join(filter(None, (f"{where}: {said}", _compared(table), describe_untested(table))))


def name_table(table: Table) -> str:
    """Return "On the built-in backbone, unsupervised", "Submitted by Ada, on the built-in backbone,
    unsupervised"
    """
    backbone = "the built-in backbone" if table.backbone == "builtin" else table.backbone or SEVERAL
    words = [f"On {backbone}", setting_words(table.setting), budget_words(table.length)]
    if table.sender:
        words[:1] = [f"Submitted by {table.sender}", f"on {backbone}"]
    return ", ".join(filter(None, words))


def name_column(table: Table) -> str:
    """Return "the STS average", "CxC-STS"."""
    form = text_words(table.protocol)
    if table.head == AVERAGE:
        return f"the {NAMES.get(table.suite, table.suite)} average{form}"
    return f"{table.head}{form}"


def describe_untested(table: Table) -> str:
    """Return "Not tested: a and b (no predictions of every task)." "" if all rows were."""
    reasons: dict[str, list[str]] = {}
    if table.tested is None:
        return ""
    for row in table.rows:
        if row.untested:
            reasons.setdefault(row.untested, []).append(row_name(row, table))
    told = "; ".join(f"{list_names(names, NAMED)} ({reason})" for reason, names in reasons.items())
    return f"Not tested: {told}." if told else ""


def _compared(table: Table) -> str:
    """Return "Against simcse: of 13 trained rows 0 are better, 10 worse, 3 inconclusive; of all 19:
    0 better, 16 worse, 3 inconclusive."
    """
    compared = [row for row in table.rows if verdict_of(row)]
    if not compared:
        return ""
    trained = [row for row in compared if row.setting != "none"]
    every = _counted(compared)
    if trained and len(trained) < len(compared):
        every = (
            f"of {len(trained)} trained rows {_counted(trained)}; of all {len(compared)}, {every}"
        )
    return f"Against {table.baseline}: {every}."


def _counted(rows: Sequence[Row]) -> str:
    counts = Counter(verdict_of(row) for row in rows)
    return ", ".join(f"{counts[name]} {name}" for name in (BETTER, WORSE, INCONCLUSIVE))


def _reasons(rows: Iterable[Row]) -> str:
    return (
        "; ".join(dict.fromkeys(row.untested for row in rows if row.untested))
        or "their predictions were not read"
    )


def ranked_rows(table: Table) -> list[tuple[Row, Cell]]:
    """Return the rows with a value in the column that ranks; a table has them in this order."""
    if not table.head:
        return []
    ranked = []
    for row in table.rows:
        cell = row.cells[-1]
        if cell is not None:
            ranked.append((row, cell))
    return ranked


def _value(cell: Cell) -> str:
    return score(cell.mean, cell.decimals)


def comparison_of(row: Row) -> Against | None:
    """Return how the row was compared with the baseline on the column that ranks; None if it was
    not.
    """
    cell = row.cells[-1]
    if cell is None or cell.against is None or cell.against.verdict is None:
        return None
    return cell.against


def verdict_of(row: Row) -> str | None:
    against = comparison_of(row)
    return against.verdict if against is not None else None
