"""The tables of a version, judged against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.base.text import list_names
from bench.compare import statements
from bench.compare.costs import with_costs
from bench.compare.judge import judge
from bench.compare.printed import with_paper
from bench.compare.statistics.summary import summarise, with_baseline
from bench.compare.statistics.table import SENDER, Table
from bench.compare.tables import AUTO, MANY_RUNS, NO, with_footnotes
from bench.runs.packed import has_predictions
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
    """The tables of these runs, with intervals, verdicts, printed values and costs; each with the set on which its checkpoints were
    chosen if that is no development set, else "".

    ``statistics``: "yes" reads predictions however many there are, "no" none, "auto" those of up to ``MANY_RUNS`` runs.
    ``extras``: with printed values. Raises UnknownName for a baseline that no table has, BenchError for one that is several rows.
    """
    by_id = {run.record.run_id: run for run in runs}
    records = {run: record for run, (record, _) in by_id.items()}
    summarised = _summarised(list(records.values()))
    tables = with_baseline([table for table, _ in summarised], baseline)
    tables = [with_footnotes(table, tables, records) for table in tables]
    note = _unread(tables, by_id, statistics)
    return tuple(
        (_judged(table, by_id, note, report, extras), chosen)
        for table, (_, chosen) in zip(tables, summarised, strict=True)
    )


def _judged(
    table: Table, runs: Mapping[str, Run], note: str, report: Report | None, extras: bool
) -> Table:
    """Each table is a family of tests by itself: its verdicts do not change when another suite or backbone is added."""
    table = judge(table, runs, report, predictions=not note)
    records = {run: runs[run].record for row in table.rows for run in row.runs}
    table = replace(table, notes=(*table.notes, *filter(None, [note])))
    if extras:
        table = with_paper(table, records)
    table = with_costs(table, records)
    rows = [replace(row, cost=None) if SENDER in dict(row.differs) else row for row in table.rows]
    return replace(table, rows=tuple(rows))


def _unread(tables: Sequence[Table], runs: Mapping[str, Run], statistics: str) -> str:
    """Why no predictions are read; "" where they are."""
    shown = {run for table in tables for row in table.rows for run in row.runs}
    if statistics == NO:
        return "not tested"
    if not any(has_predictions(runs[run].folder) for run in shown):
        return "not tested: none of these runs has predictions"
    if statistics == AUTO and len(shown) > MANY_RUNS:
        return f"not tested: reading the predictions of {len(shown):,} runs takes minutes; --statistics yes does it"
    return ""


def _summarised(records: Sequence[RunRecord]) -> list[tuple[Table, str]]:
    """Tables, and of each the set that its checkpoints were chosen on if that is no development set: such runs have tables of
    their own. A table of ``SAMPLE`` is among them where one of its runs has no other table."""
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(chosen_on(record), []).append(record)
    made = [(table, name) for name in sorted(groups) for table in summarise(groups[name])]
    elsewhere = {
        run for table, _ in made if table.suite != SAMPLE for row in table.rows for run in row.runs
    }
    return [
        (table, name)
        for table, name in made
        if table.suite != SAMPLE or any(not elsewhere.issuperset(row.runs) for row in table.rows)
    ]


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
