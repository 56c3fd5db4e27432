"""The claims of the papers' texts, each held against the pair of rows that tests it.

A claim that a table compares with its baseline has that table's verdict. Any other pair, such as a
method with and without its hinge, is one comparison that its paper planned: it is tested by itself,
at 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from bench.base.text import list_names
from bench.compare.columns import Columns, read_columns
from bench.compare.statistics.table import (
    ALPHA,
    BETTER,
    FEW_SEEDS,
    FEWEST_SEEDS,
    INCONCLUSIVE,
    WORSE,
    Against,
    Row,
    Table,
)
from bench.compare.words.names import budget_words, suite_name
from bench.papers.claims import Claim, claims
from bench.records.names import protocol_text
from bench.records.run import Run


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A claim, and the difference between the two rows that test it.

    If they are not both in a table, or have too few seeds, only ``why_not`` is there.
    """

    claim: Claim
    table: Table | None = None
    row: Row | None = None
    baseline: Row | None = None
    difference: float | None = None
    # its interval, at the level of the verdict
    low: float | None = None
    high: float | None = None
    # BETTER, WORSE or INCONCLUSIVE
    verdict: str = ""
    why_not: str = ""


def judge_claims(
    tables: Sequence[Table], runs: Mapping[str, Run], length: str = ""
) -> list[JudgedClaim]:
    """Hold every claim against the first table that has both of its rows.

    ``runs``: by run id. ``length``: that of the finding, such as "1000steps"; a table of another
    length tests nothing. Claims on several backbones are tested by the same rows.
    """
    columns: dict[int, Columns] = {}
    of_length = [table for table in tables if table.length in ("", length)]
    return [_test(claim, of_length, runs, columns, length) for claim in claims()]


def _test(
    claim: Claim,
    tables: Sequence[Table],
    runs: Mapping[str, Run],
    columns: dict[int, Columns],
    length: str,
) -> JudgedClaim:
    if not claim.needs:
        return JudgedClaim(claim=claim, why_not=claim.open)
    missing = dict.fromkeys(claim.needs)
    for place in _usual_protocol_first(claim, tables):
        table = tables[place]
        if (table.suite, table.setting) != (claim.suite, claim.setting):
            continue
        if protocol_text(table.protocol) or claim.task not in table.columns:
            continue
        found = {name: _find_row(table, runs, name) for name in claim.needs}
        row, baseline = found.values()
        if row is not None and baseline is not None:
            if place not in columns:
                columns[place] = read_columns(table, runs)
            return _compare(claim, table, row, baseline, columns[place])
        for name, at in found.items():
            if at is not None:
                missing.pop(name, None)
    why_not = f"no table has both {claim.row} and {claim.baseline}"
    if missing:
        noun = "row" if len(missing) == 1 else "rows"
        on = f"{suite_name(claim.suite)} ({claim.task}), {claim.setting}"
        if length:
            on += f", {budget_words(length)}"
        why_not = f"no {noun} {list_names(missing)} on {on}"
    return JudgedClaim(claim=claim, why_not=why_not)


def _usual_protocol_first(claim: Claim, tables: Sequence[Table]) -> list[int]:
    """Return the places of the tables, those in the protocol of the claim's cells first."""
    protocol = claim.printed.cell.protocol if claim.printed else ""
    return sorted(range(len(tables)), key=lambda place: tables[place].protocol != protocol)


def _find_row(table: Table, runs: Mapping[str, Run], name: str) -> int | None:
    """Return the place of the row of most seeds that a claim names: "promcse prompt_length=1"."""
    method, *wanted = name.split()
    special = _special_values(method)
    found = []
    for place, row in enumerate(table.rows):
        recipe = runs[row.runs[0]].record.recipe
        held = {f"{key}={value.value}" for key, value in recipe.items()}
        if row.name == method and not row.is_start and special & held == set(wanted):
            found.append(place)
    return max(found, key=lambda place: len(table.rows[place].runs), default=None)


@cache
def _special_values(method: str) -> frozenset[str]:
    """Return the recipe values, "prompt_length=1", that claims name of a method."""
    values: set[str] = set()
    for claim in claims():
        for name in claim.needs:
            first, *named = name.split()
            if first == method:
                values.update(named)
    return frozenset(values)


def _compare(claim: Claim, table: Table, row: int, baseline: int, columns: Columns) -> JudgedClaim:
    """Return the difference of two rows on the claim's task, with its interval and the verdict."""
    found = JudgedClaim(
        claim=claim, table=table, row=table.rows[row], baseline=table.rows[baseline]
    )
    task = table.columns.index(claim.task)
    if task not in columns.of_place:
        return replace(found, why_not=f"no score on {claim.task}")
    column, places = columns.of_place[task]
    if row not in places or baseline not in places:
        return replace(found, why_not=f"no score on {claim.task}")
    rows = table.rows[row], table.rows[baseline]
    against = _verdict_of_table(*rows, task)
    if against is not None:
        return replace(
            found,
            difference=against.difference,
            low=against.ci_low,
            high=against.ci_high,
            verdict=against.verdict or "",
        )
    pairs = column.minus(places.index(baseline))
    at = places.index(row)
    difference = float(pairs.value_P[at])
    if any(one.is_at_start for one in rows):
        why_not = "a row is not above its untrained start"
        return replace(found, difference=difference, why_not=why_not)
    if any(one.seeds != (None,) and len(one.seeds) < FEWEST_SEEDS for one in rows):
        return replace(found, why_not=FEW_SEEDS)
    half = float(pairs.half_P(ALPHA)[at])
    if math.isnan(half):
        return replace(found, difference=difference, why_not="its error is unknown")
    verdict = INCONCLUSIVE
    if abs(difference) > half:
        is_lower_better = claim.task in table.falling
        verdict = BETTER if (difference > 0) is not is_lower_better else WORSE
    return replace(
        found,
        difference=difference,
        low=difference - half,
        high=difference + half,
        verdict=verdict,
    )


def _verdict_of_table(row: Row, baseline: Row, task: int) -> Against | None:
    """Return what the table says of a row against its own baseline; None for any other pair."""
    cell = row.cells[task]
    if not baseline.is_baseline or cell is None or cell.against is None:
        return None
    return cell.against if cell.against.verdict else None
