"""The tables of a version, judged against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.compare import statements
from bench.compare.statistics.table import SENDER, Table
from bench.compare.tables import UNNAMED, TableOptions, compare_runs
from bench.runs.record import RunRecord
from bench.runs.store import Run

SAMPLE = "check"
"""The built-in suite, a small sample: no result, so that a run with scores of other suites, too, needs no table of it."""


def judged_tables(
    runs: Sequence[Run],
    *,
    baseline: str | None = None,
    extras: bool = True,
) -> tuple[Table, ...]:
    """The tables of these runs as ``bench compare`` makes them.

    ``extras``: with printed values. A table of ``SAMPLE`` is among them where one of its runs has no other table. The rest is as
    :func:`bench.compare.tables.compare_runs` has it.
    """
    options = TableOptions(baseline=baseline, with_paper=extras, cost=True)
    tables = compare_runs(runs, options)
    others = [table for table in tables if table.suite != SAMPLE]
    elsewhere = {run for table in others for row in table.rows for run in row.runs}
    return tuple(
        _without_senders_cost(table)
        for table in tables
        if table.suite != SAMPLE or any(not elsewhere.issuperset(row.runs) for row in table.rows)
    )


def _without_senders_cost(table: Table) -> Table:
    """What a submitted run took is not shown: nobody saw it."""
    rows = [replace(row, cost=None) if SENDER in dict(row.differs) else row for row in table.rows]
    return replace(table, rows=tuple(rows))


# --- by what score the checkpoints of a column were chosen ---


LAST = "the last step, nothing selected"


def checkpoint_rule(record: RunRecord) -> str | None:
    """How the checkpoint of a run was chosen; None where nothing was trained.

    "best on STS-B dev, scored every 125 steps", "the last step, nothing selected"
    """
    done = record.training
    if done is None:
        return None
    if done.dev_score is None:
        return LAST
    every = record.recipe.get("eval_steps")
    often = (
        f", scored every {every.value:,} steps"
        if every is not None and isinstance(every.value, int) and every.value
        else ""
    )
    return f"best on {(done.dev_task or '').strip() or UNNAMED}{often}"


# --- the sentence that a reader came for ---


def answer(tables: Sequence[Table]) -> str:
    """Of the first table that ranks several rows, else of the first that ranks one."""
    ranked = [(len(table.rows) > 1, text) for table in tables if (text := statements.answer(table))]
    answers = dict(reversed(ranked))
    return answers.get(True) or answers.get(False) or "No method has a score on every task yet."
