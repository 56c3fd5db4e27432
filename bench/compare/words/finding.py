"""The finding of a judged table: does a row beat the baseline, which rows may be the best, and what
was not tested and why. A sentence is said only if its condition holds; docs/statistics.md has the
rule behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.base.text import list_names, plural
from bench.compare.formatting import score, signed_number
from bench.compare.statistics.table import (
    BETTER,
    FEW_SEEDS,
    FOR_SCALE,
    INCONCLUSIVE,
    NOT_TRAINED,
    WORSE,
    Against,
    Cell,
    Row,
    Table,
)
from bench.compare.words.names import baseline_name, column_name, row_name, row_names

MOST_NAMED = 6
"""Rows that a sentence names; of more it says how many there are."""
MOST_CANDIDATES = 4
"""Rows that may be the best and are named; of more the table says which they are."""

SEEDS = {1: "one seed", 2: "two seeds"}


@dataclass(frozen=True)
class TableFinding:
    """What a table finds, in sentences."""

    # "No method beats SimCSE on the STS average."; "" if nothing ranks
    claim: str = ""
    # the counts behind it, which rows may be the best, what was not tested
    details: str = ""

    @property
    def text(self) -> str:
        return f"{self.claim} {self.details}".strip()


def find(tables: Sequence[Table]) -> TableFinding:
    """State the finding of the table that comes first."""
    table = main_table(tables)
    if table is not None:
        return table_finding(table)
    if tables and all(table.sender for table in tables):
        return TableFinding("All of these runs were submitted; the publisher has none here.")
    if tables and not any(table.head for table in tables):
        return TableFinding(
            "No method is ranked here: no table has an average that ranks its rows."
        )
    return TableFinding("No method has a score on every task yet.")


def main_table(tables: Sequence[Table]) -> Table | None:
    """Return the publisher's first table that ranks several rows, else the first that ranks one;
    None if there is none."""
    ranked = [table for table in tables if not table.sender and ranked_rows(table)]
    for table in ranked:
        if len(table.rows) > 1:
            return table
    return ranked[0] if ranked else None


def table_finding(table: Table) -> TableFinding:
    """State the finding of one table; an empty one if its rows are not ranked."""
    rows = ranked_rows(table)
    if not rows:
        return TableFinding()
    column = column_name(table)
    if len(rows) == 1:
        row, cell = rows[0]
        return TableFinding(f"{row_name(row, table)} reaches {_value(cell)} on {column}.")
    if table.tested is None:
        not_trained = _not_trained_sentence(table)
        found = _untested_finding(table)
        return TableFinding(not_trained, found.text) if not_trained else found
    compared = [row for row, _ in rows if verdict_of(row)]
    if not compared:
        details = [_untested_sentence(table), _not_trained_sentence(table)]
        return TableFinding(_best_sentence(table), " ".join(filter(None, details)))
    details = [_untested_sentence(table), _not_trained_sentence(table)]
    if len(compared) == 1:
        claim = _sentence_of_one(compared[0], table)
    else:
        claim = _comparison_sentence(compared, table)
        kind = "planned comparisons" if table.question else "comparisons"
        details = [_counts_sentence(compared, kind), _candidates_sentence(table), *details]
    return TableFinding(claim, " ".join(sentence for sentence in details if sentence))


def _comparison_sentence(compared: Sequence[Row], table: Table) -> str:
    """Write "No method beats SimCSE on the STS average."."""
    end = f"{baseline_name(table)} on {column_name(table)}."
    better = [row for row in compared if verdict_of(row) == BETTER]
    if not better:
        return f"No method beats {end}"
    if len(better) > MOST_NAMED:
        return f"{len(better)} rows beat {end}"
    verb = "beats" if len(better) == 1 else "beat"
    return f"{list_names(row_names(better, table), MOST_NAMED)} {verb} {end}"


def _counts_sentence(compared: Sequence[Row], kind: str) -> str:
    """Write "Of 12 comparisons, 0 are better, 9 worse and 3 inconclusive."."""
    counts = Counter(verdict_of(row) for row in compared)
    verb = "is" if counts[BETTER] == 1 else "are"
    return (
        f"Of {len(compared)} {kind}, {counts[BETTER]} {verb} better, {counts[WORSE]} worse "
        f"and {counts[INCONCLUSIVE]} inconclusive."
    )


def _sentence_of_one(row: Row, table: Table) -> str:
    """Write the verdict on the only row that was compared, with its difference."""
    name, base, column = row_name(row, table), baseline_name(table), column_name(table)
    against, cell = comparison_of(row), row.cells[-1]
    assert against is not None and cell is not None
    by = score(abs(against.difference), cell.decimals)
    if against.verdict == BETTER:
        return f"{name} beats {base} on {column}, by {by} points."
    if against.verdict == WORSE:
        return f"{name} is worse than {base} on {column}, by {by} points."
    return (
        f"{name} against {base} on {column} is inconclusive: they differ by {by} points, which "
        "may be chance."
    )


def _candidates_sentence(table: Table) -> str:
    """Write "3 rows may be the best: A, B and C.", "11 rows may be the best." or "A is the best of
    7 tested rows."."""
    best = best_rows(table)
    tested = table.tested.rows if table.tested else 0
    if len(best) == 1:
        return f"{row_name(best[0], table)} is the best of {plural(tested, 'tested row')}."
    if len(best) > MOST_CANDIDATES:
        return f"{len(best)} rows may be the best."
    if not best:
        return ""
    return f"{len(best)} rows may be the best: {list_names(row_names(best, table))}."


def _best_sentence(table: Table) -> str:
    """Say which row may be the best in a table without a baseline."""
    tested = [row for row, _ in ranked_rows(table) if not row.untested and not row.stands]
    best = best_rows(table)
    where = f"{len(tested)} tested rows on {column_name(table)}"
    if len(best) == 1:
        return f"{row_name(best[0], table)} is the best of {where}."
    if len(best) < len(tested):
        return f"The best of {where} is one of {list_names(row_names(best, table), MOST_NAMED)}."
    return f"Any of {where} may be the best."


def _untested_finding(table: Table) -> TableFinding:
    """Name the highest rows of a table in which nothing was tested, and the reason."""
    rows = sorted(ranked_rows(table), key=lambda ranked: -ranked[1].mean)
    best = [(row, cell) for row, cell in rows if cell.rounded == rows[0][1].rounded]
    verb = "is" if len(best) == 1 else "are"
    names = list_names([row_name(row, table) for row, _ in best], MOST_NAMED)
    return TableFinding(
        f"Highest on {column_name(table)} {verb} {names}, {_value(best[0][1])}.",
        f"Differences were not tested: {why_no_verdicts(table)}.",
    )


def _untested_sentence(table: Table) -> str:
    """Write "Not tested: PCL, two seeds."; "" if every row was tested."""
    reasons: dict[str, list[str]] = {}
    for row in table.rows:
        if row.untested:
            reasons.setdefault(why_untested(row, table), []).append(row_name(row, table))
    told = [f"{list_names(names, MOST_NAMED)}, {reason}" for reason, names in reasons.items()]
    return f"Not tested: {'; '.join(told)}." if told else ""


def _not_trained_sentence(table: Table) -> str:
    """Name the rows that are not above their untrained start, the baseline apart; "" if all are."""
    rows = [row for row in table.rows if row.stands == NOT_TRAINED]
    said = []
    if rows:
        verb = "is" if len(rows) == 1 else "are"
        names = list_names(row_names(rows, table), MOST_NAMED)
        said.append(f"{names} {verb} not trained: not above the untrained start.")
    for row in table.rows:
        if row.is_baseline and row.is_at_start:
            said.append(f"{row_name(row, table)} itself is not above its untrained start.")
    return " ".join(said)


def as_good_untrained(table: Table) -> str:
    """Return "not trained, and not below SimCSE on the transfer average: CLS (+0.53)": the
    baseline's backbone as it comes; "" if it is below, or was not scored."""
    baseline = next((row for row in table.rows if row.is_baseline), None)
    if baseline is None or not baseline.is_fitted:
        return ""
    found = []
    for row, cell in ranked_rows(table):
        is_backbone = row.stands == FOR_SCALE and row.backbone == baseline.backbone
        if not is_backbone or row.is_start or cell.against is None:
            continue
        if cell.against.difference >= 0:
            difference = signed_number(cell.against.difference, cell.decimals)
            found.append(f"{row_name(row, table)} ({difference})")
    if not found:
        return ""
    place = f"{baseline_name(table)} on {column_name(table)}"
    return f"not trained, and not below {place}: {list_names(found, MOST_NAMED)}"


def why_untested(row: Row, table: Table) -> str:
    """Return "two seeds", or another reason why a row was not tested."""
    if row.untested == FEW_SEEDS:
        return SEEDS.get(table.n(row), FEW_SEEDS)
    return row.untested


def best_words(table: Table) -> str:
    """Return "CoSENT 68.67" for the rows that may be the best; "" if nothing was tested."""
    best = []
    for row, cell in ranked_rows(table):
        if row.may_be_best:
            best.append(f"{row_name(row, table)} {_value(cell)}")
    return list_names(best, 3)


def why_no_verdicts(table: Table) -> str:
    """Say why nothing was tested in a table: "fewer than three seeds", "no column that ranks"."""
    if table.head is None:
        return "no column that ranks"
    rows = [row for row, _ in ranked_rows(table)]
    if not rows:
        return f"no value of {table.head}"
    reasons = dict.fromkeys(row.untested for row in rows if row.untested)
    if sum(not row.stands for row in rows) < 2:
        reasons["no other row is judged"] = None
    return "; ".join(reasons) or "their predictions were not read"


def best_rows(table: Table) -> list[Row]:
    """Return the rows that may be the best."""
    return [row for row, _ in ranked_rows(table) if row.may_be_best]


def ranked_rows(table: Table) -> list[tuple[Row, Cell]]:
    """Return the rows with a value in the column that ranks, in the table's order: those that are
    judged, the best first, then the others."""
    if not table.head:
        return []
    ranked = []
    for row in table.rows:
        cell = row.cells[-1]
        if cell is not None:
            ranked.append((row, cell))
    return ranked


def comparison_of(row: Row) -> Against | None:
    """Return the difference from the baseline with its interval, on the column that ranks; None if
    there is none.
    """
    cell = row.cells[-1]
    if cell is None or cell.against is None or cell.against.se is None:
        return None
    return cell.against


def verdict_of(row: Row) -> str | None:
    against = comparison_of(row)
    return against.verdict if against is not None else None


NOT_TESTED = "not tested"
BASELINE = "baseline"


def verdict_word(row: Row, table: Table) -> str:
    """Return better, worse, inconclusive, baseline or not tested, or why a row is not judged; "" in
    a table without comparisons."""
    if row.stands and row.cells[-1] is not None:
        return row.stands
    if not table.comparisons:
        return ""
    if row.is_baseline:
        return BASELINE
    if row.untested and row.cells[-1] is not None:
        return NOT_TESTED
    return verdict_of(row) or ""


def _value(cell: Cell) -> str:
    return score(cell.mean, cell.decimals)
