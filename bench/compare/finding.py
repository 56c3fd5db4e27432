"""The finding of one judged table: does a row beat the baseline, and which rows may be the best?

Each sentence is said only if its condition holds. ``bench.compare.answer`` has the longer text of
pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.base.text import list_names, plural
from bench.compare.answer import comparison_of, name_column, ranked_rows, table_answer, verdict_of
from bench.compare.formatting import command_name, score
from bench.compare.statistics.table import BETTER, INCONCLUSIVE, WORSE, Row, Table

MOST_NAMED = 4
"""Rows that beat the baseline and are named; of more their number is said."""


def describe_finding(table: Table) -> str:
    """Say first if a row beats the baseline, then which rows may be the best.

    "" for a table that is not ranked; the sentence of :func:`table_answer` if nothing in it was
    compared with a baseline.
    """
    compared = [row for row, _ in ranked_rows(table) if verdict_of(row)]
    if not compared:
        return table_answer(table)
    sentences = [_comparison_sentence(compared, table), _candidates_sentence(table)]
    sentences += _untested_sentences(table)
    return " ".join(sentence for sentence in sentences if sentence)


def _comparison_sentence(compared: Sequence[Row], table: Table) -> str:
    """Write "No method beats simcse on the STS average: of 25 tested rows 0 are better, ..."."""
    column = name_column(table)
    if len(compared) == 1:
        return _sentence_of_one(compared[0], table)
    better = [row for row in compared if verdict_of(row) == BETTER]
    if not better:
        begin = f"No method beats {table.baseline} on {column}"
    elif len(better) == 1:
        begin = f"{command_name(better[0], table)} beats {table.baseline} on {column}"
    elif len(better) <= MOST_NAMED:
        names = list_names((command_name(row, table) for row in better), MOST_NAMED)
        begin = f"{names} beat {table.baseline} on {column}"
    else:
        begin = f"{len(better)} methods beat {table.baseline} on {column}"
    counts = Counter(verdict_of(row) for row in compared)
    verb = "is" if counts[BETTER] == 1 else "are"
    return (
        f"{begin}: of {len(compared)} tested rows {counts[BETTER]} {verb} better, "
        f"{counts[WORSE]} worse, {counts[INCONCLUSIVE]} inconclusive."
    )


def _sentence_of_one(row: Row, table: Table) -> str:
    """Write the verdict on the only row that was compared, with its difference."""
    name, column = command_name(row, table), name_column(table)
    against, cell = comparison_of(row), row.cells[-1]
    assert against is not None and cell is not None
    by = score(abs(against.difference), cell.decimals)
    if against.verdict == BETTER:
        return f"{name} beats {table.baseline} on {column}, by {by} points."
    if against.verdict == WORSE:
        return f"{name} is worse than {table.baseline} on {column}, by {by} points."
    return (
        f"The data do not tell {name} from {table.baseline} on {column}: they differ by {by} "
        "points, which may be chance."
    )


def _candidates_sentence(table: Table) -> str:
    """Write "9 rows may be the best." or "tsdae is the best of 7 tested rows."."""
    if table.tested is None:
        return ""
    best = [row for row, _ in ranked_rows(table) if row.may_be_best]
    if len(best) == 1:
        name = command_name(best[0], table)
        return f"{name} is the best of {plural(table.tested.rows, 'tested row')}."
    if best and table.tested.rows > 2:
        return f"{len(best)} rows may be the best."
    return ""


def _untested_sentences(table: Table) -> list[str]:
    """Write for each reason "pcl is not tested (fewer than three seeds)."."""
    reasons: dict[str, list[str]] = {}
    for row in table.rows:
        if row.untested:
            reasons.setdefault(row.untested, []).append(command_name(row, table))
    sentences = []
    for reason, names in reasons.items():
        verb = "is" if len(names) == 1 else "are"
        sentences.append(f"{list_names(names, MOST_NAMED)} {verb} not tested ({reason}).")
    return sentences
