"""The finding of a board, as the headline of its pages: a claim, the counts behind it, and what
"here" means.

Every sentence is computed from the verdicts of one table of the publisher's own rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.base.text import list_names, plural
from bench.compare.answer import (
    NAMED,
    name_column,
    ranked_rows,
    table_answer,
    verdict_of,
)
from bench.compare.formatting import SEVERAL, budget_words, row_name, score, setting_words
from bench.compare.judge import FEW_SEEDS
from bench.compare.statistics.table import BETTER, INCONCLUSIVE, WORSE, Row, Table

BASELINE_NAMES = {
    "angle": "AnglE",
    "conpvp": "ConPVP",
    "dcpcse": "DCPCSE",
    "promcse": "PromCSE",
    "sbert": "SBERT",
    "simcse": "SimCSE",
}
"""Baselines as their papers write them; another one is written as in commands."""
BEST_NAMED = 3
"""Candidates for the best that the headline names."""


@dataclass(frozen=True)
class Headline:
    """A board's finding, in sentences."""

    # "No method beats SimCSE here."
    claim: str
    # "Of 25 tested rows, 17 are worse and 8 cannot be told from it; ..."; "" if nothing is counted
    counts: str = ""
    # "Here: the STS average, unsupervised, built-in backbone. ..."; "" if no table was found
    place: str = ""

    @property
    def text(self) -> str:
        """The claim and its counts."""
        return f"{self.claim} {self.counts}".rstrip()


def board_finding(tables: Sequence[Table]) -> Headline:
    """State the finding of the publisher's first table that ranks several rows, else of the first
    that ranks one."""
    table = main_table_of(tables)
    if table is not None:
        return table_finding(table)
    if tables and all(table.sender for table in tables):
        return Headline("All of these runs were submitted; the publisher has none here.")
    return Headline("No method has a score on every task yet.")


def main_table_of(tables: Sequence[Table]) -> Table | None:
    """Return the publisher's first table that ranks several rows, else the first that ranks one;
    None if there is none."""
    ranked = [table for table in tables if not table.sender and ranked_rows(table)]
    for table in ranked:
        if len(table.rows) > 1:
            return table
    return ranked[0] if ranked else None


def table_finding(table: Table) -> Headline:
    """State the finding of one table that ranks its rows."""
    place = _place(table)
    rows = [row for row, _ in ranked_rows(table)]
    if len(rows) == 1:
        value = score(ranked_rows(table)[0][1].mean, ranked_rows(table)[0][1].decimals)
        return Headline(f"{row_name(rows[0], table)} reaches {value} here.", "", place)
    if table.tested is None:
        return Headline("No difference was tested here.", table_answer(table), place)
    compared = [row for row in rows if verdict_of(row)]
    if not compared:
        return Headline(_best_claim(table, rows), _not_tested(table), place)
    base = baseline_name(table)
    better = [row for row in compared if verdict_of(row) == BETTER]
    claim = f"No method beats {base} here."
    if better:
        names = list_names(_short_names(better, table), NAMED)
        verb = "beats" if len(better) == 1 else "beat"
        claim = f"{names} {verb} {base} here."
    parts = [_counted(compared, table)]
    untested = _not_tested(table)
    if untested:
        parts.append(untested.rstrip("."))
    return Headline(claim, "; ".join(parts) + ".", f"{place} {_candidates(rows, table)}".rstrip())


def baseline_name(table: Table) -> str:
    """Return the baseline's name as papers write it: "SimCSE"; "" for a table without one."""
    return BASELINE_NAMES.get(table.baseline or "", table.baseline or "")


def _counted(compared: Sequence[Row], table: Table) -> str:
    """Count verdicts: "of 25 tested rows, 17 are worse and 8 cannot be told from it"."""
    counts = Counter(verdict_of(row) for row in compared)
    if len(compared) == 1:
        said = f"is {verdict_of(compared[0])}"
        if counts[INCONCLUSIVE]:
            said = "cannot be told from it"
        (name,) = _short_names(compared, table)
        return f"The one tested row, {name}, {said}"
    if len(counts) == 1:
        if counts[INCONCLUSIVE]:
            return f"None of {len(compared)} tested rows can be told from it"
        return f"All {len(compared)} tested rows are {next(iter(counts))}"
    parts = []
    for verdict in (BETTER, WORSE):
        if counts[verdict]:
            verb = "is" if counts[verdict] == 1 else "are"
            parts.append(f"{counts[verdict]} {verb} {verdict}")
    if counts[INCONCLUSIVE]:
        parts.append(f"{counts[INCONCLUSIVE]} cannot be told from it")
    return f"Of {len(compared)} tested rows, {list_names(parts)}"


def _not_tested(table: Table) -> str:
    """Name the rows that took no part: "pcl has two seeds and is not tested." "" if all did."""
    few: list[Row] = []
    others: dict[str, list[Row]] = {}
    for row in table.rows:
        if row.untested == FEW_SEEDS:
            few.append(row)
        elif row.untested:
            others.setdefault(row.untested, []).append(row)
    parts = []
    if few:
        names = list_names(_short_names(few, table), NAMED)
        counts = {table.n(row) for row in few}
        seeds = FEW_SEEDS
        if counts == {1}:
            seeds = "one seed"
        elif counts == {2}:
            seeds = "two seeds"
        if len(few) == 1:
            parts.append(f"{names} has {seeds} and is not tested")
        else:
            parts.append(f"{names} have {seeds} and are not tested")
    for reason, rows in others.items():
        names = list_names(_short_names(rows, table), NAMED)
        verb = "is" if len(rows) == 1 else "are"
        parts.append(f"{names} {verb} not tested ({reason})")
    return "; ".join(parts) + "." if parts else ""


def _short_names(rows: Sequence[Row], table: Table) -> list[str]:
    """Name rows by method and variant, or in full if several rows of the table have that name."""
    counts = Counter(row.name for row in table.rows)
    return [row.name if counts[row.name] == 1 else row_name(row, table) for row in rows]


def _best_claim(table: Table, rows: Sequence[Row]) -> str:
    """Say which row may be the best in a table without a baseline."""
    tested = [row for row in rows if not row.untested]
    best = [row for row in tested if row.may_be_best]
    names = _short_names(best, table)
    if len(best) == 1:
        return f"{names[0]} is the best of {len(tested)} tested rows here."
    if len(best) < len(tested):
        return f"The best of {len(tested)} tested rows here is one of {list_names(names, NAMED)}."
    return f"The data do not tell which of {len(tested)} tested rows is best here."


def _candidates(rows: Sequence[Row], table: Table) -> str:
    """Count the rows that may be the best; "" if none is marked."""
    best = [row for row in rows if row.may_be_best]
    if not best:
        return ""
    names = list_names(_short_names(best, table), BEST_NAMED)
    if len(best) == 1:
        return f"{names} is the best of {plural(len(rows), 'row')}."
    return f"{len(best)} of {plural(len(rows), 'row')} may be the best: {names}."


def _place(table: Table) -> str:
    """Return the place of a table's finding: "Here: the STS average, unsupervised, built-in
    backbone."."""
    backbone = table.backbone or SEVERAL
    if backbone == "builtin":
        backbone = "built-in backbone"
    words = [name_column(table), setting_words(table.setting), backbone]
    words.append(budget_words(table.length))
    fewest, most = table.seeds
    words.append(plural(most, "seed") if fewest == most else f"{fewest} to {most} seeds a row")
    return f"Here: {', '.join(word for word in words if word)}."
