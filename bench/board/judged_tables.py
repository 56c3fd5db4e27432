"""The tables of a version, judged against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import UnknownName
from bench.board.board import BoardTable
from bench.compare import costs, statements
from bench.compare.formatting import list_names
from bench.compare.judge import judge
from bench.compare.statistics.summary import against, summarise, without_baseline
from bench.compare.statistics.table import LOWER_IS_BETTER, SENDER, Table
from bench.compare.tables import AUTO, MANY_RUNS, NO, with_footnotes, with_papers
from bench.references import UNKNOWN, results
from bench.references.ours import SUITES
from bench.runs.packed import has_predictions
from bench.runs.record import RunRecord
from bench.runs.run import Run
from bench.runs.searches import search_of

if TYPE_CHECKING:
    from bench.compare.judge import Report


MOST_LEAPS = 3  # tasks of a row that are named
SAMPLE = "check"
"""The built-in suite, a small sample: no result, so that a run with scores of other suites, too, needs no table of it."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A table, and the set on which its checkpoints were chosen if that is no development set."""

    table: Table
    chosen_on: str
    checked: bool = (
        True  # False: its runs were sent in, and nobody here made their predictions again
    )


def judged_tables(
    runs: Sequence[Run],
    unchecked: Sequence[Run] = (),
    *,
    baseline: str | None = None,
    statistics: str = AUTO,
    report: Report | None = None,
    extras: bool = True,
) -> tuple[Judged, ...]:
    """The tables of these runs, with intervals, verdicts, printed values and costs.

    ``unchecked``: runs that were sent in and that nobody here made again. They have tables of their own, with means alone, and change
    nothing in the others. ``statistics``: "yes" reads predictions however many there are, "no" none, "auto" those of up to ``MANY_RUNS``
    runs. ``extras``: with printed values. Raises UnknownName for a baseline that no table has, BenchError for one that is several rows.
    """
    by_id = {run.record.run_id: run for run in runs}
    records = {run: record for run, (record, _) in by_id.items()}
    summarised = _summarised(list(records.values()))
    tables = with_footnotes([table for table, _ in summarised], records)
    tables = tuple(against(table, baseline) for table in tables)
    if baseline is not None and not any(table.baseline for table in tables):
        names = {row.name for table in tables for row in table.rows}
        raise UnknownName("baseline", baseline, names, "among these runs")
    note = _unread(tables, by_id, statistics)
    made = [
        _judged(table, on, by_id, note, report, extras)
        for table, (_, on) in zip(tables, summarised, strict=True)
    ]
    known = [judged_table.table for judged_table in made]
    made += _unjudged([run.record for run in unchecked])
    return tuple(
        replace(judged_table, table=_noted(judged_table.table, leaps(judged_table.table, known)))
        for judged_table in made
    )


UNRANKED = "sent in, and not checked here: nothing is marked, tested or ranked"


def _unjudged(records: Sequence[RunRecord]) -> list[Judged]:
    """Costs are left out, too: nothing here can compute them again."""
    made = []
    for table, selected_on in _summarised(records):
        rows = tuple(
            replace(
                row,
                cells=tuple(cell and replace(cell, mark="") for cell in row.cells),
                untested="sent in, and not checked here",
            )
            for row in without_baseline(table).rows
        )
        made.append(
            Judged(
                table=_noted(replace(table, rows=rows, baseline=None), UNRANKED),
                chosen_on=selected_on,
                checked=False,
            )
        )
    return made


LEAP = 3.0
"""Points, or 0.3 of what has three decimals: a submitted score that is so much better than every known one is flagged."""


def leaps(table: Table, known: Sequence[Table]) -> str:
    """Submitted rows that no known row is near, in words; "" where there are none.

    Known are the rows of the same suite and protocol that the board made itself, of any backbone and setting, and what papers printed of
    the task. Where nothing is known of a task, nothing is said.
    """
    submitted = [
        (row, sender) for row in table.rows if (sender := dict(row.differs).get(SENDER)) is not None
    ]
    if not submitted:
        return ""
    values: dict[str, list[float]] = {}
    for other in known:
        if (other.suite, other.protocol) == (table.suite, table.protocol):
            for row in other.rows:
                for column, cell in zip(other.columns, row.cells, strict=True):
                    if cell is not None and SENDER not in dict(row.differs):
                        values.setdefault(column, []).append(cell.mean)
    for column in table.columns:
        for result in results(task=column):
            if SUITES.get(result.metric) == table.suite and result.protocol in (
                table.protocol,
                UNKNOWN,
            ):
                values.setdefault(column, []).append(result.value)
    sign = -1 if set(table.metric.split(", ")) <= set(LOWER_IS_BETTER) else 1
    told = []
    for row, sender in submitted:
        far = []
        for column, cell in zip(table.columns, row.cells, strict=True):
            if cell is None or column not in values:
                continue
            best = max(values[column], key=lambda value: sign * value)
            if sign * (cell.mean - best) > LEAP * 10.0 ** (2 - cell.decimals):
                far.append(
                    f"{column} {cell.mean:.{cell.decimals}f} (the best known is {best:.{cell.decimals}f})"
                )
        if far:
            told.append(f"{row.name}, submitted by {sender}: {list_names(far, MOST_LEAPS)}")
    return f"far from every known row: {'; '.join(told)}" if told else ""


def _judged(
    table: Table,
    selected_on: str,
    runs: Mapping[str, Run],
    note: str,
    report: Report | None,
    extras: bool,
) -> Judged:
    """Each table is a family of tests by itself: its verdicts do not change when another suite or backbone is added."""
    (table,) = judge([table], runs, report, predictions=not note)
    records = {run: runs[run].record for row in table.rows for run in row.runs}
    table = _noted(table, note)
    if extras:
        (table,) = with_papers([table], records)
    (table,) = costs.with_costs([table], records)
    rows = tuple(
        replace(row, cost=None) if SENDER in dict(row.differs) else row for row in table.rows
    )
    return Judged(table=replace(table, rows=rows), chosen_on=selected_on)


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


def _noted(table: Table, note: str) -> Table:
    return replace(table, notes=(*table.notes, note)) if note else table


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


def checkpoint_words(table: Table, records: Mapping[str, RunRecord]) -> str:
    """One sentence for a table; where its rows differ, the rule of most of them comes first and the others are named.

    "" where nothing was trained.
    """
    rows: dict[str, list[str]] = {}
    for row in table.rows:
        for rule in dict.fromkeys(checkpoint_rule(records[run]) for run in row.runs):
            if rule is not None:
                rows.setdefault(rule, []).append(row.name)
    return f"Checkpoint: {_told(rows)}." if rows else ""


def values_words(table: Table) -> str:
    """ "Values: recipe; tuned: 12 trials (simcse)." in one sentence for a table: where those of its rows come from, the most common first."""
    rows: dict[str, list[str]] = {}
    for row in table.rows:
        if row.values:
            rows.setdefault(row.values, []).append(row.name)
    return f"Values: {_told(rows)}." if rows else ""


def _told(rows: Mapping[str, Sequence[str]]) -> str:
    """The most common first; behind each of the others the names of its rows."""
    first, *others = sorted(rows, key=lambda words: (-len(rows[words]), words))
    return "; ".join(
        [first, *(f"{words} ({list_names(dict.fromkeys(rows[words]))})" for words in others)]
    )


# --- the sentence that a reader came for ---


def answer(tables: Sequence[BoardTable]) -> str:
    """Of the first table that ranks several rows, else of the first that ranks one."""
    checked = [board_table.table for board_table in tables if board_table.checked]
    if tables and not checked:
        return "Every row was sent in, and none was checked here yet: none is ranked."
    said = [(len(table.rows) > 1, text) for table in checked if (text := statements.answer(table))]
    if not said:
        return "No method has a score on every task yet."
    return next((text for several, text in said if several), said[0][1])
