"""Settings in which the runs of a table differ from most of its runs: what ``--strict`` refuses.

:mod:`bench.compare.words.notes` says which of them matter to a reader.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.base.errors import BenchError
from bench.base.text import list_names, plural
from bench.compare.statistics.rows import CODE
from bench.compare.statistics.table import AVERAGE, Row, Table
from bench.compare.statistics.terms import (
    DEV_SET,
    PRECISION,
    PROCESSES,
    SELECT_ON,
    determined_terms,
)
from bench.compare.trained_with import STEPS
from bench.compare.words.names import row_name
from bench.data.overlap import seen_tasks
from bench.records.names import data_key
from bench.records.record import RunRecord
from bench.records.value_sources import is_tuned, search_of

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
"""Packages that a score may depend on; ``mteb`` too, of its own suite."""
MTEB = "mteb"
CODE_OF = "code of "
"""Begins the name of the setting "code of STS12": what scored the task."""
DATA_OF = "data of "

UNKNOWN = "not recorded"
COMMIT = re.compile(r"[.+]g[0-9a-f]{12}$")
"""The end of the version of a checkout."""

TERMS = ("learning_rate", "batch_size", "max_seq_length", STEPS, PRECISION, PROCESSES)
"""Values of training that do not make another method."""

SEARCHED = "searched"
"""Stands for a value that a search chose."""


@dataclass(frozen=True)
class Difference:
    """A value that some runs have where most runs of their table have another one."""

    setting: str
    value: str
    most: str
    # ids
    runs: frozenset[str]


def differences(table: Table, records: Mapping[str, RunRecord]) -> list[Difference]:
    """Return every setting and value that the runs of a table do not share with most of them."""
    facts = {run: _facts(row, records[run], table) for row in table.rows for run in row.runs}
    found = []
    for setting in dict.fromkeys(key for fact in facts.values() for key in fact):
        having = {run: of_run[setting] for run, of_run in facts.items() if setting in of_run}
        counts = Counter(having.values())
        if all(search_of(records[run]) for run in having):
            # rows of a search may differ in the values that it chose
            counts.pop(SEARCHED, None)
        if len(counts) < 2:
            continue
        usual = max(counts, key=lambda value: (counts[value], value))
        for value in sorted(counts.keys() - {usual}):
            runs = frozenset(run for run, of_run in having.items() if of_run == value)
            found.append(Difference(setting, value, usual, runs))
    return found


def refuse_differences(tables: Sequence[Table], records: Mapping[str, RunRecord]) -> None:
    """Raise BenchError if the runs of a table differ: ``--strict``."""
    found = []
    for table in tables:
        for text in _difference_texts(table, tables, records):
            found.append(f"{table.suite}: {text}")
    if found:
        raise BenchError(
            f"--strict: {plural(len(found), 'difference')} between the runs of a table: "
            f"{list_names(found, 1)}",
            "name the runs, filter them (--method, --backbone, --suite), or leave --strict out "
            "and read the notes",
        )


def _difference_texts(
    table: Table, tables: Sequence[Table], records: Mapping[str, RunRecord]
) -> Iterator[str]:
    for row in table.rows:
        if row.other_code:
            yield f"{CODE}: {row_name(row, table)} has runs of another one"
    for difference in differences(table, records):
        names = []
        for row in table.rows:
            having = [run in difference.runs for run in row.runs]
            if any(having):
                seeds = [seed for seed, has in zip(row.seeds, having, strict=True) if has]
                names.append(row_name(row, table) + ("" if all(having) else _seed_words(seeds)))
        yield (
            f"{difference.setting}: {difference.value} in {list_names(names)}; "
            f"{difference.most} in most rows"
        )
    for row in table.rows:
        tasks = seen_test_tasks(row.runs, table, records)
        if tasks:
            share = f"a tenth or more of the sentences of {list_names(tasks)}"
            yield f"training text: {share} in {row_name(row, table)}"
    yield from rows_elsewhere(table, tables)


def _seed_words(seeds: Sequence[int | None]) -> str:
    noun = "seed" if len(seeds) == 1 else "seeds"
    return f" ({noun} {', '.join(map(str, seeds))})"


def seen_test_tasks(
    runs: Sequence[str], table: Table, records: Mapping[str, RunRecord]
) -> list[str]:
    """Return the tasks with a tenth or more of their sentences in the training text."""
    tasks: dict[str, None] = {}
    for run in runs:
        tasks |= dict.fromkeys(seen_tasks(records[run].provenance.corpus.overlap, table.suite))
    return list(tasks)


def rows_elsewhere(table: Table, tables: Sequence[Table]) -> Iterator[str]:
    """Yield "under senteval-wmean/1 only: PCL" for rows of the same suite, setting and backbone
    that only tables of another protocol have.
    """
    here = {run for row in table.rows for run in row.runs}
    place = (table.suite, table.setting, table.backbone)
    for other in tables:
        if (other.suite, other.setting, other.backbone) != place:
            continue
        if other.protocol == table.protocol:
            continue
        names = [row_name(row, other) for row in other.rows if not here & set(row.runs)]
        if names:
            yield f"under {other.protocol} only: {list_names(dict.fromkeys(names))}"


def _facts(row: Row, record: RunRecord, table: Table) -> dict[str, str]:
    """Return what should be the same in all runs of the table -> its value in this one."""
    packages = record.provenance.packages
    data = record.provenance.data
    libraries = [*LIBRARIES]
    if table.suite == MTEB:
        libraries.append(MTEB)
    # runs of two commits of one version are not remarked on
    facts = {"bench": COMMIT.sub("", record.provenance.bench_version or UNKNOWN)}
    for name in libraries:
        facts[name] = str(packages.get(name, UNKNOWN))
    code = record.provenance.execution.suites.get(table.suite)
    for score in record.scores:
        if (score.suite, score.protocol) != (table.suite, table.protocol) or score.task == AVERAGE:
            continue
        if code is not None and code.sha256:
            facts[f"{CODE_OF}{score.task}"] = code.sha256[:8]
        sha256 = data.get(data_key(score.task, score.protocol, table.suite))
        if sha256 is not None:
            facts[f"{DATA_OF}{score.task}"] = str(sha256)[:8]
    if row.values:
        facts["values"] = row.values
    search = search_of(record).get("name")
    if search:
        facts["search"] = str(search)
    return facts | _terms(row, record)


def _terms(row: Row, record: RunRecord) -> dict[str, str]:
    """Return the training settings of a run besides its method and its corpus: term -> value.

    Empty if nothing was trained. Values chosen by a search count as equal (SEARCHED): the methods
    share the search, not the value. So does a recipe's learning rate that no trial beat.
    """
    if record.training is None:
        return {}
    words = {}
    for key in TERMS:
        if key not in row.trained_with:
            continue
        value = record.recipe.get(key)
        is_searched = key == "learning_rate" and bool(search_of(record))
        if is_searched or (value is not None and is_tuned(value)):
            words[key] = SEARCHED
        else:
            words[key] = row.trained_with[key]
    dev = determined_terms(record).get(DEV_SET)
    if dev is not None:
        named = record.recipe.get(SELECT_ON)
        words[DEV_SET] = f"{named.value if named else UNKNOWN}@{dev.shown}"
    return words
