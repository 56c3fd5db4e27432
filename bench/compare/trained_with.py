"""The training values of a table's rows: the values that every paper states, and all others in
which the rows differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bench.compare.statistics.rows import SENDER
from bench.compare.statistics.table import Table
from bench.compare.statistics.terms import CORPUS, PRECISION, PROCESSES, determined_terms, terms_of
from bench.records.record import SMALLER, RunRecord
from bench.records.value_sources import kind_of_values

STEPS = "steps"
STATED = (STEPS, "batch_size", "max_seq_length", "learning_rate", "temperature")
"""Values that every paper of this field states."""
FIRST = (*STATED, CORPUS)
LENGTHS = ("budget", "epochs", "max_steps")
"""Values that the number of steps says."""
NULL = "null"


def with_values(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """Return the table with the sources of each row's values, and with the values that every paper
    states, or in which two of its rows differ.

    A value that only the recipe of one row has sets no two rows apart. An untrained start has no
    values: it took no step.
    """
    values: list[dict[str, str]] = []
    sources = []
    for row in table.rows:
        runs = [] if row.is_start else [records[run] for run in row.runs]
        values.append(_values(runs) if runs else {})
        kinds = dict.fromkeys(map(kind_of_values, runs))
        sources.append(", ".join(kind for kind in kinds if kind))
    shown = _shown(values)
    rows = []
    for row, of_row, source in zip(table.rows, values, sources, strict=True):
        told = {key: of_row[key] for key in shown if of_row.get(key, NULL) != NULL}
        rows.append(replace(row, trained_with=told, values=source))
    return replace(table, rows=tuple(rows))


def value_names(table: Table) -> list[str]:
    """Return the names of the values that some row has, in the order of a block."""
    names = dict.fromkeys(key for row in table.rows for key in row.trained_with)
    return [*(key for key in FIRST if key in names), *sorted(names.keys() - set(FIRST))]


def _shown(values: Sequence[Mapping[str, str]]) -> list[str]:
    keys = dict.fromkeys(key for of_row in values for key in of_row)
    if STEPS in keys:
        keys = dict.fromkeys(key for key in keys if key not in LENGTHS)
    shown = []
    for key in keys:
        having = [of_row[key] for of_row in values if key in of_row]
        if key in STATED or len(set(having)) > 1:
            shown.append(key)
    return shown


def _values(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Return a row's training values; its runs differ only in the seed."""
    first = runs[0]
    decides = terms_of(first)
    others = determined_terms(first)
    recipe = [key for key in first.recipe if key not in {SENDER, *SMALLER}]
    names = [*recipe, *(key for key in (CORPUS, PRECISION) if key in decides)]
    values = {key: decides[key].shown for key in names}
    if PRECISION in others:
        values[PROCESSES] = others[PROCESSES].shown if PROCESSES in others else "1"
    steps = {run.training.steps for run in runs if run.training is not None}
    if steps and "learning_rate" in first.recipe:
        values[STEPS] = _between(steps)
    return values


def _between(steps: Iterable[int]) -> str:
    ends = sorted({min(steps), max(steps)})
    return " to ".join(f"{count:,}" for count in ends)
