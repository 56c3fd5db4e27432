"""The tables of a version, judged against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.compare import statements
from bench.compare.formatting import list_names
from bench.compare.statistics.table import SENDER, Table
from bench.compare.tables import AUTO, TableOptions, compare_runs
from bench.runs.record import RunRecord
from bench.runs.run import Run
from bench.runs.searches import search_of

if TYPE_CHECKING:
    from bench.compare.judge import Report


SAMPLE = "check"
"""The built-in suite, a small sample: no result, so that a run with scores of other suites, too, needs no table of it."""


def judged_tables(
    runs: Sequence[Run],
    *,
    baseline: str | None = None,
    statistics: str = AUTO,
    report: Report | None = None,
    extras: bool = True,
) -> tuple[tuple[Table, str], ...]:
    """The tables of these runs as ``bench compare`` makes them, each with the set on which its checkpoints were chosen if that is no
    development set, else "": such runs have tables of their own. A table of ``SAMPLE`` is among them where one of its runs has no other.

    ``statistics``: as ``TableOptions`` has it. ``extras``: with printed values. Raises UnknownName for a baseline that no table has,
    BenchError for one that is several rows.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.scores:
            groups.setdefault(chosen_on(run.record), []).append(run)
    options = TableOptions(statistics=statistics, with_paper=extras, cost=True)
    made = [
        (_without_costs_of_senders(table), name)
        for i, name in enumerate(sorted(groups))
        for table in compare_runs(
            groups[name], replace(options, baseline=None if i else baseline), report
        )
    ]
    elsewhere = {
        run for table, _ in made if table.suite != SAMPLE for row in table.rows for run in row.runs
    }
    return tuple(
        (table, name)
        for table, name in made
        if table.suite != SAMPLE or any(not elsewhere.issuperset(row.runs) for row in table.rows)
    )


def _without_costs_of_senders(table: Table) -> Table:
    """What a submitted run took is its sender's word."""
    rows = [replace(row, cost=None) if SENDER in dict(row.differs) else row for row in table.rows]
    return replace(table, rows=tuple(rows))


# --- by what score the checkpoints of a column were chosen ---


DEV = ("dev", "validation", "valid", "val", "train")
"""Last words in the names of sets that no score is taken of."""
UNNAMED = "a set that was not recorded"
LAST = "the last step, nothing selected"


def chosen_on(record: RunRecord) -> str:
    """The set on which a checkpoint, or the values of a recipe, were chosen, where that is no development set: "" for all honest ways, else its name.

    Runs of different answers never share a table. A set whose name was not recorded may be any, and counts as no development set.
    """
    done, search = record.training, search_of(record)
    seeds = search.get("seeds")
    if isinstance(seeds, list) and record.seed in seeds:
        return f"a seed of {search.get('name', 'its own search')}"
    searched = _no_dev_set(str(search["select_on"])) if search.get("select_on") else ""
    if searched or done is None or done.dev_score is None:  # the last step was kept
        return searched
    return _no_dev_set(done.dev_task or "")


def _no_dev_set(name: str) -> str:
    """The name of a set, where it does not say that it is a development set; else ""."""
    name = name.strip()
    return "" if name.lower().split(" ")[-1] in DEV or name == "sts-dev-clean" else name or UNNAMED


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


def how_chosen(table: Table, records: Mapping[str, RunRecord]) -> str:
    """ "Checkpoint: best on STS-B dev. Values: recipe; tuned: 12 trials (simcse)." The most common first; the rows of others are named."""
    checkpoints = [
        (rule, row.name)
        for row in table.rows
        for rule in dict.fromkeys(checkpoint_rule(records[run]) for run in row.runs)
        if rule is not None
    ]
    values = [(row.values, row.name) for row in table.rows if row.values]
    topics = {"Checkpoint": _grouped(checkpoints), "Values": _grouped(values)}
    return " ".join(f"{topic}: {text}." for topic, text in topics.items() if text)


def _grouped(pairs: Sequence[tuple[str, str]]) -> str:
    """(text, row): the most common text first, then each other with the names of its rows."""
    rows: dict[str, dict[str, None]] = {}
    for text, row in pairs:
        rows.setdefault(text, {})[row] = None
    first, *others = sorted(rows, key=lambda text: (-len(rows[text]), text)) or [""]
    return "; ".join([first, *(f"{text} ({list_names(rows[text])})" for text in others)])


# --- the sentence that a reader came for ---


def answer(tables: Sequence[Table]) -> str:
    """Of the first table that ranks several rows, else of the first that ranks one."""
    ranked = [(len(table.rows) > 1, text) for table in tables if (text := statements.answer(table))]
    answers = dict(reversed(ranked))
    return answers.get(True) or answers.get(False) or "No method has a score on every task yet."
