"""What a row took, and whether two rows took the same: training text, rows of it seen, seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from bench.base.errors import BenchError
from bench.base.text import plural
from bench.compare.statistics.table import Cost, Row, Table, corpus_words
from bench.runs.record import EncodingCost, RunRecord
from bench.runs.searches import is_tuned, search_of

TOLERANCE = 0.01
"""Share by which rows seen may differ: a last batch that is left out, a set that does not divide by the batch."""


@dataclass(frozen=True)
class RowBudget:
    """What a row was given. Time and memory depend on the machine and are no part of it; ``--cost`` shows them."""

    sentences: (
        int | None
    )  # rows of the corpus seen by one run, a row in two epochs counted twice; None: not recorded
    corpus: str | None  # name and the beginning of its sha256
    seeds: int
    stated: str | None = None  # what `--budget` said: training time, tokens, ...

    def equals(self, other: RowBudget) -> bool:
        if self.corpus != other.corpus or self.seeds != other.seeds:
            return False
        if self.stated is not None and self.stated == other.stated:
            return True  # whatever each method made of it
        if self.sentences is None or other.sentences is None:
            return False
        return abs(self.sentences - other.sentences) <= TOLERANCE * max(
            self.sentences, other.sentences
        )

    def __str__(self) -> str:
        seen = (
            "an unknown number of rows of"
            if self.sentences is None
            else f"{self.sentences:,} rows of"
        )
        if self.stated is not None:
            seen = f"a budget of {self.stated} on"
        return f"{seen} {self.corpus or 'an unknown corpus'}, {plural(self.seeds, 'seed')}"


def with_costs(tables: Sequence[Table], records: Mapping[str, RunRecord]) -> tuple[Table, ...]:
    """The tables with what every row took: means over its runs. What encoding takes is shown under one condition, that of
    most rows, which a note names; of other rows it is left out."""
    return tuple(_with_costs(table, records) for table in tables)


def _with_costs(table: Table, records: Mapping[str, RunRecord]) -> Table:
    rows = [replace(row, cost=_cost([records[run] for run in row.runs])) for row in table.rows]
    under = Counter(
        row.cost.encode_condition for row in rows if row.cost and row.cost.encode_condition
    )
    if not under:
        return replace(table, rows=tuple(rows))
    usual = min(under, key=lambda condition: (-under[condition], condition))
    note = f"encode was measured on: {usual}"
    if others := [
        row.name for row in rows if row.cost and row.cost.encode_condition not in (None, usual)
    ]:
        note += f"; measured otherwise, and not shown: {', '.join(others)}"
    return replace(
        table, rows=tuple(encoding_under(usual, row) for row in rows), notes=(*table.notes, note)
    )


def encoding_under(condition: str | None, row: Row) -> Row:
    """``row`` without what its encoding takes, where that was measured under another condition."""
    if row.cost is None or row.cost.encode_condition == condition:
        return row
    cost = replace(
        row.cost, encode_sentences_per_second=None, encode_memory_bytes=None, encode_condition=None
    )
    return replace(row, cost=cost)


TERMS = ("learning_rate", "batch_size", "max_seq_length", "select_on")
"""Recipe values that two methods may have unlike each other without being other methods for it."""
SEARCHED = "searched"
"""What a footnote calls a value that a search chose."""


def terms(record: RunRecord) -> dict[str, str]:
    """What a trained run was given besides its method and its corpus: term -> value in words; empty where nothing was trained.

    Rows of one table that differ in one of them get a footnote, and ``--strict`` refuses them. What a search chose is SEARCHED,
    whatever it is: that methods were searched alike is what they share. So is the rate of a recipe that no trial of its search beat.
    """
    done = record.training
    if done is None:
        return {}
    rate = "learning_rate" if search_of(record) else None
    words = {
        key: SEARCHED if key == rate or is_tuned(value) else str(value.value)
        for key in TERMS
        if (value := record.recipe.get(key)) is not None and value.value is not None
    }
    return words | {"steps": f"{done.steps:,}"} if "learning_rate" in record.recipe else words


def refuse_unequal(tables: Sequence[Table], records: Mapping[str, RunRecord]) -> None:
    """Raises BenchError, naming two rows and what they were given, where trained rows of a table had unequal budgets.

    A row in which nothing was trained or fitted spent nothing, and may stand beside any other.
    """
    for table in tables:
        given = [
            (row, budget)
            for row in table.rows
            if (budget := row_budget([records[run] for run in row.runs])) is not None
        ]
        if not given:
            continue
        usual = Counter(budget for _, budget in given).most_common(1)[0][0]
        rule = next(row for row, budget in given if budget == usual)
        others = [(row, budget) for row, budget in given if not budget.equals(usual)]
        if not others:
            continue
        row, budget = others[0]
        if row is rule:  # not even itself: something was not recorded
            raise BenchError(
                f"--equal-budget: the budget of {row.name} is not known: {budget}", "leave it out"
            )
        more = len(others) - 1
        rest = f" (and {plural(more, 'more row')})" if more else ""
        raise BenchError(
            f"--equal-budget: in the table of {table.suite}, {row.name} had {budget}; {rule.name} {usual}{rest}",
            "choose runs of one budget (--method, RUN ...), or train the others as long (bench run ... --budget)",
        )


def row_budget(runs: Sequence[RunRecord]) -> RowBudget | None:
    """What the runs of one row were given; None where nothing was trained or fitted."""
    if all(run.training is None and not run.provenance.corpus.name for run in runs):
        return None
    seen, corpora = [_sentences(run) for run in runs], {corpus_words(run) for run in runs}
    known = [value for value in seen if value is not None]
    return RowBudget(
        sentences=max(known)
        if len(known) == len(seen) and max(known) - min(known) <= TOLERANCE * max(known)
        else None,
        corpus=corpora.pop() if len(corpora) == 1 else None,
        seeds=len(runs),
        stated=_stated(runs),
    )


def _stated(runs: Sequence[RunRecord]) -> str | None:
    """The recipe's budget, where all runs have the same."""
    given = {value.value if (value := run.recipe.get("budget")) else None for run in runs}
    only = given.pop() if len(given) == 1 else None
    return only if isinstance(only, str) else None


def _sentences(run: RunRecord) -> int | None:
    if run.training is None:
        return None
    if run.training.sentences is not None:
        return run.training.sentences
    batch = run.recipe.get("batch_size")
    return (
        run.training.steps * batch.value
        if batch and isinstance(batch.value, int) and run.training.steps
        else None
    )


def _cost(runs: Sequence[RunRecord]) -> Cost:
    costs, (seconds, trials) = [run.cost for run in runs], tuning_cost(runs)
    return Cost(
        tuning_seconds=seconds,
        tuning_trials=trials,
        trainable_parameters=_mean([cost.trainable_parameters for cost in costs]),
        trainable_parts=_parts([cost.trainable_parts for cost in costs]),
        train_seconds=_mean([cost.train_seconds for cost in costs]),
        peak_memory_bytes=_mean([cost.peak_memory_bytes for cost in costs]),
        **_encoding([cost.encoding for cost in costs]),
    )


def _encoding(measured: Sequence[EncodingCost | None]) -> dict[str, Any]:
    """What encoding takes, mean over those runs of a row that were measured; nothing where that was under two conditions."""
    known = [cost for cost in measured if cost is not None]
    if len({cost.condition for cost in known}) != 1:
        return {}
    return {
        "encode_sentences_per_second": fmean(cost.sentences_per_second for cost in known),
        "encode_memory_bytes": fmean(cost.memory_bytes for cost in known),
        "encode_condition": known[0].condition,
    }


def tuning_cost(runs: Sequence[RunRecord]) -> tuple[float | None, int | None]:
    """(seconds, trials) of the one search behind all runs of a row; None for what it does not say, or says wrong."""
    searches = [search_of(run) for run in runs]
    if any(search.get("name") != searches[0].get("name") for search in searches):
        return None, None
    seconds, trials = searches[0].get("seconds"), searches[0].get("trials")
    known = float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e12 else None
    return known, trials if type(trials) is int and 0 <= trials < 1e6 else None


def _parts(counts: Sequence[Mapping[str, int] | None]) -> dict[str, float] | None:
    """Means over runs, of each part; None where a run recorded none, or other parts than the rest."""
    known = [parts for parts in counts if parts is not None]
    if len(known) < len(counts) or any(parts.keys() != known[0].keys() for parts in known):
        return None
    return {part: fmean(parts[part] for parts in known) for part in known[0]}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
