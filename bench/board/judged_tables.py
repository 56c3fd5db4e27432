"""The tables of a version, judged against a baseline and against each other one that a reader may choose; and the sentence that answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import UnknownName
from bench.board.board import BoardTable
from bench.compare import costs
from bench.compare.formatting import (
    SEVERAL,
    duration,
    is_top,
    list_names,
    score,
    setting_words,
    signed_number,
    variant_words,
    with_interval,
)
from bench.compare.judge import StatisticsOptions, judge
from bench.compare.statistics.summary import against, summarise
from bench.compare.statistics.table import AVERAGE, LOWER_IS_BETTER, SENDER, Cell, Row, Table
from bench.compare.tables import AUTO, MANY_RUNS, NO, with_footnotes, with_papers
from bench.references import UNKNOWN, results
from bench.references.ours import SUITES
from bench.runs.packed import has_predictions
from bench.runs.predictions import Run
from bench.runs.record import RunRecord
from bench.runs.searches import search_of

if TYPE_CHECKING:
    from bench.compare.judge import Report


BASELINE = "simcse"
"""What rows are tested against where nobody says otherwise, and there is such a row."""
MOST_LEAPS = 3  # tasks of a row that are named
MOST_BASELINES = 9
"""That a reader may choose beside the board's own: each is a family of tests, and data on the page. A table of ten rows offers all."""
SAMPLE = "check"
"""The built-in suite, a small sample: no result, so that a run with scores of other suites, too, needs no table of it."""
FEW_BASELINES = 2
"""Beyond ``MANY_RUNS`` runs, where a choice of baselines is megabytes of page. What is published must not depend on what happens to
be cached, so their number alone decides."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of the statistics is computed."""

    note: str  # why predictions are not read, for intervals over items, verdicts and ranks; "" where they are
    baselines: int  # that a reader may choose beside the board's own


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A table, the set on which its checkpoints were chosen if that is no development set, and the table against others."""

    table: Table
    chosen_on: str
    baselines: Mapping[str, Table]
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
    """The tables of these runs, with intervals, verdicts, printed values and costs; those against other baselines beside them.

    ``unchecked``: runs that were sent in and that nobody here made again. They have tables of their own, with means alone: whatever
    is sent in, nothing that is said of ``runs`` is another. ``statistics``: "yes" reads predictions however many there are, "no" none,
    "auto" as ``plan`` says. ``extras``: with printed values, and against each other baseline that a reader may choose. Raises
    UnknownName for a baseline that no table has.
    """
    by_id = {record.run_id: (record, folder) for record, folder in runs}
    records = {run: record for run, (record, _) in by_id.items()}
    summarised = _summarised(list(records.values()))
    tables = with_footnotes([table for table, _ in summarised], records)
    how_much = plan(tables, by_id, statistics)
    if not extras:
        how_much = replace(how_much, baselines=0)
    if baseline is not None and not any(against(table, baseline).baseline for table in tables):
        raise UnknownName(
            "baseline",
            baseline,
            {row.name for table in tables for row in table.rows},
            "among these runs",
        )
    chosen = baseline or _default(tables)
    made = [
        _judged(table, on, chosen, by_id, how_much, report, extras)
        for table, (_, on) in zip(tables, summarised, strict=True)
    ]
    known = [judged_table.table for judged_table in made]
    made += _unjudged([record for record, _ in unchecked])
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
            replace(row, cells=tuple(cell and replace(cell, mark="") for cell in row.cells))
            for row in table.rows
        )
        made.append(
            Judged(
                table=_noted(replace(table, rows=rows), UNRANKED),
                chosen_on=selected_on,
                baselines={},
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
    baseline: str | None,
    runs: Mapping[str, Run],
    how_much: Plan,
    report: Report | None,
    extras: bool,
) -> Judged:
    """Each table is a family of tests by itself: what is told of it does not change when another suite or backbone is added."""
    own = against(table, baseline).baseline
    offered = [name for name in choices(table) if name != own][: how_much.baselines]
    options = StatisticsOptions(predictions=not how_much.note)
    first, *others = (
        judged for (judged,) in judge([table], runs, options, report, [baseline, *offered])
    )
    records = {run: runs[run][0] for row in table.rows for run in row.runs}
    first = _noted(first, how_much.note)
    if extras:
        (first,) = with_papers([first], records)
    (first,) = costs.with_costs([first], records)
    first = replace(
        first,
        rows=tuple(
            replace(row, cost=None) if SENDER in dict(row.differs) else row for row in first.rows
        ),
    )
    baselines = {name: _overlaid(first, other) for name, other in zip(offered, others, strict=True)}
    return Judged(table=first, chosen_on=selected_on, baselines=baselines)


def _default(tables: Sequence[Table]) -> str | None:
    """``BASELINE`` where there is such a row, else the first choice of the first table with one."""
    names = [name for table in tables for name in choices(table)]
    return BASELINE if BASELINE in names else next(iter(names), None)


def plan(tables: Sequence[Table], runs: Mapping[str, Run], statistics: str = AUTO) -> Plan:
    """Predictions are read of up to ``MANY_RUNS`` runs, and of more where that is asked for; else a note says that they were not."""
    shown = {run for table in tables for row in table.rows for run in row.runs}
    note = ""
    if statistics == NO:
        note = "not tested"
    elif not any(has_predictions(runs[run][1]) for run in shown):
        note = "not tested: none of these runs has predictions"
    elif statistics == AUTO and len(shown) > MANY_RUNS:
        note = f"not tested: reading the predictions of {len(shown):,} runs takes minutes; --statistics yes does it"
    return Plan(note=note, baselines=MOST_BASELINES if len(shown) <= MANY_RUNS else FEW_BASELINES)


def choices(table: Table) -> list[str]:
    """Rows worth testing the others of a table against: the default baseline, the best row in which nothing was trained, then the
    best rows. None where a table has one row."""
    if len(table.rows) < 2:
        return []
    names = [row.name for row in table.rows]
    untrained = [row.name for row in table.rows if row.setting == "none"][:1]
    return list(dict.fromkeys([*([BASELINE] if BASELINE in names else []), *untrained, *names]))


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


def _overlaid(table: Table, other: Table) -> Table:
    """``table`` with the differences of ``other``: the same rows against another baseline."""
    rows = tuple(
        replace(
            row,
            difference=theirs.difference,
            is_baseline=theirs.is_baseline,
            cells=tuple(
                a if a is None or b is None else replace(a, against=b.against)
                for a, b in zip(row.cells, theirs.cells, strict=True)
            ),
        )
        for row, theirs in zip(table.rows, other.rows, strict=True)
    )
    return replace(table, rows=rows, baseline=other.baseline, tested=other.tested)


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


# --- the sentence that a reader came for: which row is best, by how much, how surely, and what it cost ---


NAMED = 4  # rows that the sentence names
VERDICTS = (
    "better",
    "worse",
    "equivalent",
    "unknown",
)  # in the order in which the sentence counts them
NAMES = {"sts": "STS", "cxc": "CxC", "mteb": "MTEB"}
Ranked = tuple[Row, Cell]
"""A row, and its cell in the column that ranks."""


def answer(tables: Sequence[BoardTable]) -> str:
    """Of the first table that ranks several rows, else of the first that ranks one. What nobody here has checked is not told of."""
    checked = [board_table.table for board_table in tables if board_table.checked]
    if tables and not checked:
        return "Every row was sent in, and none was checked here yet: none is ranked."
    ranking = [
        (table, rows)
        for table in checked
        if table.head is not None and (rows := _best_first(table))
    ]
    if not ranking:
        return "No method has a score on every task yet."
    table, rows = next((ranked for ranked in ranking if len(ranked[1]) > 1), ranking[0])
    (row, cell), *below = rows
    where, what, best = place_words(table), head_words(table), row_name(row, table)
    value, cost = score(cell.mean, cell.decimals), cost_words(row, best)
    if not below:
        return f"{where}: {best} reaches {value} on {what}{cost}."
    second, decimals = below[0][1], below[0][1].decimals
    ahead = (
        signed_number(round(cell.mean, decimals) - round(second.mean, decimals), decimals).lstrip(
            "+"
        )
        + f" above {row_name(below[0][0], table)}"
    )
    if any(row.rank is None for row, _ in rows):
        return f"{where}: {best} has the highest value on {what}, {value}, {ahead}; differences were not tested{cost}."
    level = [other for other, _ in below if is_top(other, table)]
    if not level:
        return f"{where}: {best} is the best on {what}, {value}, {ahead}{_against_baseline(rows[0], table)}{cost}."
    if len(level) == 1 and level[0].is_baseline and (against := cell.against) is not None:
        by = with_interval(against.difference, against.low, against.high)
        others, base = f"{row_name(level[0], table)}, the baseline ({by})", _verdicts(table)
    else:
        others = (
            "any other row"
            if len(level) == len(below) > 1
            else _listed([row_name(other, table) for other in level])
        )
        base = _against_baseline(rows[0], table)
    return f"{where}: {best} is highest on {what}, {value}, but cannot be told from {others}{base}{cost}."


def place_words(table: Table) -> str:
    """ "On the built-in backbone, unsupervised, 3 seeds" """
    backbone = "the built-in backbone" if table.backbone == "builtin" else table.backbone or SEVERAL
    where = f"On {backbone}, {setting_words(table.setting)}"
    counts = [len(row.runs) for row in table.rows if row.setting != "none"]
    if not counts:
        return where
    few, many = min(counts), max(counts)
    return (
        f"{where}, {many} seed{'s' * (many != 1)}"
        if few == many
        else f"{where}, {few} to {many} seeds"
    )


def head_words(table: Table) -> str:
    """ "the STS average", "CxC-STS" """
    form = "" if table.text in (None, "tokenised") else f" ({table.text})"
    return (
        f"the {NAMES.get(table.suite, table.suite)} average{form}"
        if table.head == AVERAGE
        else f"{table.head}{form}"
    )


def row_name(row: Row, table: Table) -> str:
    """ "promcse (eh)" """
    beside = variant_words(row, table)
    return f"{row.label} ({beside})" if beside else row.label


def _best_first(table: Table) -> list[Ranked]:
    having = [(row, cell) for row in table.rows if (cell := row.cells[-1]) is not None]
    return sorted(having, key=lambda row_and_cell: -row_and_cell[1].mean)


def cost_words(row: Row, name: str) -> str:
    """What the best row cost; "" where that was not recorded, or is no time of training."""
    seconds = row.cost.train_seconds if row.cost is not None else None
    return f"; training {name} takes {duration(seconds)}" if seconds else ""


def _against_baseline(best: Ranked, table: Table) -> str:
    """What can be said of the best row and the baseline; empty where it was not tested against it."""
    base = next((row for row in table.rows if row.is_baseline), None)
    if base is None or table.baseline is None:
        return ""
    name = row_name(base, table)
    against = best[1].against
    if best[0].is_baseline:
        return f", and it is the baseline{_verdicts(table)}"
    if against is None or against.verdict is None:
        return ""
    if against.verdict in ("better", "worse"):
        said = f"it is {against.verdict} than the baseline {name}:"
    elif against.verdict == "equivalent":
        said = f"it is equivalent to the baseline {name}:"
    elif is_top(base, table):
        said = f"the difference to the baseline {name} is"
    else:
        said = f"it cannot be told from the baseline {name}:"
    return (
        f"; {said} {with_interval(against.difference, against.low, against.high)}{_verdicts(table)}"
    )


def _verdicts(table: Table) -> str:
    """How many of the rows that were tested against the baseline, which was just named, are better, worse, equivalent, unknown: the best
    may be none of what the others are. Empty where nothing is known of any, or of one alone."""
    compared = [
        cell.against
        for row in table.rows
        if (cell := row.cells[-1]) is not None and cell.against is not None
    ]
    counts = Counter(against.verdict for against in compared if against.verdict is not None)
    first, *others = [verdict for verdict in VERDICTS if counts[verdict]] or ["unknown"]
    if counts.total() < 2 or first == "unknown":
        return ""
    be = "is" if counts[first] == 1 else "are"
    return f"; {', '.join([f'{counts[first]} of {counts.total()} rows {be} {first}', *(f'{counts[other]} {other}' for other in others)])}"


def _listed(names: Sequence[str]) -> str:
    """ "a, b and c", "a, b, c, d and 3 more" """
    names = list(dict.fromkeys(names))
    if len(names) > NAMED:
        return ", ".join(names[:NAMED]) + f" and {len(names) - NAMED} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
