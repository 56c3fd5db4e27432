"""What is said of a judged table: one sentence, and a legend of four static lines with their numbers.

Each sentence has a condition under which it is true; docs/statistics.md has the rule behind it. All functions are pure.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from bench.base.text import list_names
from bench.compare.formatting import SEVERAL, row_name, score, setting_words
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
NOT_ASKED = "their predictions were not read"
Ranked = tuple[Row, Cell]
"""A row, and its cell in the column that ranks."""


# --- the sentence ---


def answer(table: Table) -> str:
    """Which row is best, as far as the data tell, and what the comparison with the baseline found; "" for a table that is not ranked.

    A: one row, or nothing was tested. B: one row may be the best. C: some may be. D: all may be.
    """
    rows = _best_first(table)
    if not rows:
        return ""
    where, column_name = place(table), head(table)
    tested = [(row, cell) for row, cell in rows if not row.untested]
    top = [(row, cell) for row, cell in tested if row.may_be_best]
    if len(rows) == 1:
        return (
            f"{where}: {row_name(rows[0][0], table)} reaches {_value(rows[0][1])} on {column_name}."
        )
    if table.tested is None:
        best = [(row, cell) for row, cell in rows if cell.rounded == rows[0][1].rounded]
        names = list_names((row_name(row, table) for row, _ in best), NAMED)
        are = "is" if len(best) == 1 else "are"
        return (
            f"{where}: highest on {column_name} {are} {names}, {_value(best[0][1])}; "
            f"differences were not tested: {_reasons(row for row, _ in rows)}."
        )
    if len(top) == 1:
        said = f"{row_name(top[0][0], table)} is the best of {len(tested)} rows on {column_name}, {_value(top[0][1])}."
    elif len(top) < len(tested):
        some = list_names((f"{row_name(row, table)} ({_value(cell)})" for row, cell in top), NAMED)
        said = f"the best of {len(tested)} rows on {column_name} is one of {some}; which, the data do not tell."
    else:
        said = f"the data do not tell which of {len(tested)} rows is best on {column_name}."
    return " ".join(filter(None, (f"{where}: {said}", _compared(table), not_tested(table))))


def place(table: Table) -> str:
    """ "On the built-in backbone, unsupervised" """
    backbone = "the built-in backbone" if table.backbone == "builtin" else table.backbone or SEVERAL
    return f"On {backbone}, {setting_words(table.setting)}"


def head(table: Table) -> str:
    """ "the STS average", "CxC-STS" """
    form = "" if table.text in (None, "tokenised") else f" ({table.text})"
    if table.head == AVERAGE:
        return f"the {NAMES.get(table.suite, table.suite)} average{form}"
    return f"{table.head}{form}"


def not_tested(table: Table) -> str:
    """ "Not tested: a and b (no predictions of every task)." "" where all rows were."""
    reasons: dict[str, list[str]] = {}
    for row in table.rows if table.tested else ():
        if row.untested:
            reasons.setdefault(row.untested, []).append(row_name(row, table))
    told = "; ".join(f"{list_names(names, NAMED)} ({reason})" for reason, names in reasons.items())
    return f"Not tested: {told}." if told else ""


def _compared(table: Table) -> str:
    """ "Against simcse: of 13 trained rows 0 are better, 10 worse, 3 inconclusive; of all 19: 0 better, 16 worse, 3 inconclusive." """
    compared = [row for row in table.rows if verdict(row)]
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
    counts = Counter(verdict(row) for row in rows)
    return ", ".join(f"{counts[name]} {name}" for name in (BETTER, WORSE, INCONCLUSIVE))


def _reasons(rows: Iterable[Row]) -> str:
    return "; ".join(dict.fromkeys(row.untested for row in rows if row.untested)) or NOT_ASKED


def _best_first(table: Table) -> list[Ranked]:
    """The rows with a value in the column that ranks; a table has them in this order."""
    rows = table.rows if table.head else ()
    return [(row, cell) for row in rows if (cell := row.cells[-1]) is not None]


def _value(cell: Cell) -> str:
    return score(cell.mean, cell.decimals)


# --- a row's comparison with the baseline ---


def compared(row: Row) -> Against | None:
    """How the row was compared with the baseline on the column that ranks; None where it was not."""
    cell = row.cells[-1]
    against = cell.against if cell is not None else None
    return against if against is not None and against.verdict is not None else None


def verdict(row: Row) -> str | None:
    against = compared(row)
    return against.verdict if against is not None else None


# --- the legend ---


INTERVAL = "95 % CI of a row's own mean, over other items and seeds (one seed: items alone; no predictions: seeds alone)"


def legend(table: Table, better: str, worse: str, tint: str) -> list[str]:
    """At most four lines, and one of untested rows; only those whose numbers the table has. ``better``, ``worse``, ``tint``: how a form
    marks them."""
    lines = []
    base = table.baseline if any(map(verdict, table.rows)) else None
    if table.tested is not None:
        right, over = "right in 95 of 100 such tables", table.tested.comparisons
        if base is None:
            lines.append(f"{tint}: may be the best; {right} (Hsu over {over})")
        else:
            lines += [
                f'{better} better, {worse} worse than {base}; no sign: inconclusive, which is not "equal"; -: not tested',
                f"{tint}: may be the best; signs and {tint} together are {right} (Bonferroni-Holm over {over})",
            ]
    if any(cell.spread for row in table.rows for cell in row.cells if cell):
        by = "; compare rows by the difference, not by ±" if base is not None else ""
        lines.append(f"±: {INTERVAL}{by}")
    if table.tested is not None and base is not None:
        level = f"{100 * table.tested.ci_level:.3g} %"
        lines.append(
            f"difference from {base} with its {level} CI, the level at which it leaves zero out where there is a sign"
        )
    return [*lines, *filter(None, (_spread(table, base), not_tested(table).rstrip(".")))]


def _spread(table: Table, base: str | None) -> str:
    """ "SD over seeds: median 0.67, 0.07 (flow) to 3.21 (promcse); n = 6 to 10; MDE against simcse (80 % power): median 1.6, 1.1 to 5.0 points" """
    ranked = _best_first(table)
    known = sorted((cell.sd, row_name(row, table)) for row, cell in ranked if cell.sd is not None)
    effects = sorted(against.mde for row, _ in ranked if (against := compared(row)) and against.mde)
    parts = []
    if known:
        (low, first), (high, last) = known[0], known[-1]
        counts = [len(cell.values) for _, cell in ranked if cell.sd is not None]
        n = " to ".join(map(str, sorted({min(counts), max(counts)})))
        middle = statistics.median(sd for sd, _ in known)
        between = f", {low:.2f} ({first}) to {high:.2f} ({last})" if len(known) > 1 else ""
        parts.append(f"SD over seeds: median {middle:.2f}{between}; n = {n}")
    if base is not None and effects:
        between = f", {effects[0]:.1f} to {effects[-1]:.1f}" if len(effects) > 1 else ""
        middle = statistics.median(effects)
        parts.append(f"MDE against {base} (about 80 % power): median {middle:.1f}{between} points")
    return "; ".join(parts)
