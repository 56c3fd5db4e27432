"""Which trained rows have learned: each is held against its untrained start.

A start is a run of the same method, setting and backbone that ended before its first step
(``--budget 0steps``); the backbone's own [CLS] is one of every row, because a method that is not
above it has gained nothing. Only correlations are compared with a start: a classifier or k-means
finds much in an encoder before any training, and training may reduce it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.compare.statistics.column import LEVEL, Column
from bench.compare.statistics.differences import satterthwaite, student_quantile
from bench.compare.statistics.table import NOT_TRAINED, Row, Start, Table
from bench.compare.words.names import row_name
from bench.records.names import OWN_DATA
from bench.records.record import RunRecord
from bench.records.run import Run
from bench.score.suites import suite, suite_names

FIRST_TOKEN = "cls"
"""The method that takes the backbone's [CLS] as it is."""
CORRELATIONS = ("spearman", "spearman-bootstrap")
"""Metrics of which a row has to be above its start."""


def asks_for_starts(table: Table) -> bool:
    """Say if the rows of a table are held against their starts."""
    return table.head is not None and table.metric in CORRELATIONS


def starts_of(row: Row, rows: Sequence[Row]) -> list[Row]:
    """Return the starts of a row among ``rows``, of whatever recipe values."""
    place = (row.method, row.setting, row.backbone)
    return [
        one for one in rows if one.is_start and (one.method, one.setting, one.backbone) == place
    ]


def rows_with_starts(judged: Sequence[Row], table: Table) -> list[Row]:
    """Return these rows of a table and all that they are held against, in the table's order."""
    kept = list(judged)
    if asks_for_starts(table):
        for row in judged:
            kept += starts_of(row, table.rows)
            kept += [one for one in table.rows if _is_first_token(one, row)]
    return [row for row in table.rows if row in kept]


def _own_start(row: Row, rows: Sequence[Row], runs: Mapping[str, Run]) -> Row | None:
    """Return the start with the most recipe values in common; None if it was not scored."""
    recipe = runs[row.runs[0]].record.recipe

    def in_common(start: Row) -> int:
        of_start = runs[start.runs[0]].record.recipe
        return sum(
            key in of_start and of_start[key].value == entry.value for key, entry in recipe.items()
        )

    return max(starts_of(row, rows), key=in_common, default=None)


def with_starts(
    table: Table,
    head: Column,
    places: Sequence[int],
    known: Sequence[bool],
    runs: Mapping[str, Run],
) -> Table:
    """Return the table with the start of each trained row that has one; a judged row that is not
    above it is *not trained*.

    ``head``: the column that ranks, with its rows' places in the table; ``known``: if their values
    may be compared.
    """
    if not asks_for_starts(table):
        return table
    place_of = {i: place for place, i in enumerate(places) if known[place]}
    rows = []
    for i, row in enumerate(table.rows):
        if i in place_of and row.setting != "none" and not row.is_start:
            own = _own_start(row, table.rows, runs)
            starts = [
                k
                for k, one in enumerate(table.rows)
                if k in place_of and (one is own or _is_first_token(one, row))
            ]
            found = [_start(table, head, place_of[i], place_of[k], k) for k in starts]
            if found:
                # the one that it is hardest to be above
                start = min(found, key=lambda one: one.ci_low)
                row = replace(row, start=start)
                if row.is_at_start and not row.stands and not row.is_baseline:
                    row = replace(row, stands=NOT_TRAINED)
        rows.append(row)
    return replace(table, rows=tuple(rows))


def _is_first_token(one: Row, row: Row) -> bool:
    return one.method == FIRST_TOKEN and one.setting == "none" and one.backbone == row.backbone


def _start(table: Table, head: Column, row: int, start: int, place: int) -> Start:
    """Return how far the row at ``row`` of the column is above the one at ``start``."""
    items_M, repeated_M = head.over_items(start)
    seeds = head.seed_M / head.runs_M
    of_start = head.spread_M[start] / head.runs_M[start]
    parts = [
        (items_M[[row]], head.freedom),
        (repeated_M[[row]], head.repeated_freedom),
        (seeds[[row]], float(head.seed_freedom_M[row])),
        (of_start.reshape(1), max(1.0, head.runs_M[start] - 1.0)),
    ]
    error = math.sqrt(sum(float(variance[0]) for variance, _ in parts))
    half = float(student_quantile((1 + LEVEL) / 2, satterthwaite(parts))[0]) * error
    difference = float(head.mean_M[row] - head.mean_M[start])
    return Start(
        row=row_name(table.rows[place], table),
        difference=difference,
        ci_low=difference - half,
        ci_high=difference + half,
        ci_level=LEVEL,
    )


def _suite_words(table: Table) -> str:
    """Return what ``--suite`` takes to score a table's tasks; a protocol that is scored only if it
    is named is named."""
    if table.suite == OWN_DATA:
        return "FILE"  # a record does not say where it is
    if table.suite in suite_names():
        for task in suite(table.suite).on_request:
            if task.protocol == table.protocol:
                return f"{table.suite}:{table.protocol}"
    return table.suite


def start_command(rows: Sequence[Row], table: Table, records: Mapping[str, RunRecord]) -> str:
    """Return the command that scores the starts of these rows.

    No step reads the training text, so that any will do.
    """
    first = rows[0]
    methods = ",".join(dict.fromkeys(row.name for row in rows))
    words = ["bench", "run", methods, "--budget", "0steps", "--seeds", "1"]
    words += ["--backbone", first.backbone, "--setting", first.setting]
    words += ["--suite", _suite_words(table)]
    if first.setting == "unsupervised":
        words += ["--corpus", "builtin"]
    codes = []
    for row in rows:
        made = records[row.runs[0]].provenance
        codes += [made.plugin, made.execution.suites.get(table.suite)]
    for file in dict.fromkeys(code.package for code in codes if code is not None):
        if file and file.endswith(".py"):
            words += ["--plugin", file]
    return shlex.join(words)
