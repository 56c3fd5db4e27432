"""Footnotes: one for each difference between the runs of a table that share a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.base.errors import BenchError
from bench.base.text import list_names, plural
from bench.compare.formatting import row_name
from bench.compare.statistics.table import (
    AVERAGE,
    Footnote,
    Table,
)
from bench.compare.statistics.terms import (
    DEV_SET,
    PRECISION,
    PROCESSES,
    SELECT_ON,
    determined_terms,
)
from bench.data.overlap import seen_tasks
from bench.records.names import data_key
from bench.records.record import RunRecord, Score
from bench.records.selection import dev_words
from bench.records.value_sources import is_tuned, kind_of_values, search_of

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
"""Packages that a score may depend on; ``mteb`` too, of its own suite."""

UNKNOWN = "not recorded"
COMMIT = re.compile(r"[.+]g[0-9a-f]{12}$")
"""The end of the version of a checkout."""


def with_footnotes(
    table: Table,
    tables: Sequence[Table],
    records: Mapping[str, RunRecord],
) -> Table:
    """Return the table with a footnote for each difference between its runs, and marks at the rows
    that differ.

    The value that most runs have is the rule; one footnote names all that differ from it. Rows that
    a suite has only under another protocol, in another one of ``tables``, are named too.
    """
    table = _seen_in_training(_with_differences(table, records), records)
    runs = [records[run] for row in table.rows for run in row.runs]
    notes = [
        f"checkpoints: {text}"
        for text in dict.fromkeys(map(dev_words, runs))
        if text and table.suite == "sts"
    ]
    notes += _same_place_notes(table, records)
    notes += _precision_notes(table, records)
    failed = [f"{record.run_id} ({record.error})" for record in runs if record.error]
    if failed:
        notes.append(f"not scored in full: {list_names(failed, 3)}")
    return replace(
        table,
        footnotes=(*table.footnotes, *_elsewhere(table, tables)),
        notes=(*table.notes, *notes),
    )


def _same_place_notes(table: Table, records: Mapping[str, RunRecord]) -> list[str]:
    """Note rows with the same teacher for all seeds, or another model that the recipe names: their
    ± covers no other one."""
    rows_of: dict[str, list[str]] = {}
    for row in table.rows:
        if row.seeds == (None,):
            continue
        keys = _shared_places([records[run] for run in row.runs])
        if keys:
            rows_of.setdefault(list_names(keys), []).append(row_name(row, table))
    told = [f"{keys} ({list_names(names)})" for keys, names in rows_of.items()]
    if not told:
        return []
    return [f"± is over other seeds with the same {'; '.join(told)}, and covers no other one"]


def _precision_notes(table: Table, records: Mapping[str, RunRecord]) -> list[str]:
    """Note rows with scores of weights that are not float32, and the precision of the scores."""
    rows_of: dict[str, list[str]] = {}
    for row in table.rows:
        for words in {records[run].provenance.execution.scored_in for run in row.runs}:
            if words:
                rows_of.setdefault(words, []).append(row_name(row, table))
    return [f"scored in {words}: {list_names(names)}" for words, names in rows_of.items()]


def _shared_places(runs: Sequence[RunRecord]) -> list[str]:
    """Return the recipe keys that name a file, a folder or a model that all these runs share."""
    shared = []
    places_of_runs: list[dict[Any, Any]] = []
    for run in runs:
        places = (run.provenance.determines or {}).get("places")
        if not isinstance(places, dict):
            return []
        places_of_runs.append(places)
    first, *others = places_of_runs
    for key, content in sorted(first.items()):
        if content is not None and all(places.get(key) == content for places in others):
            shared.append(str(key))
    return shared


def _with_differences(table: Table, records: Mapping[str, RunRecord]) -> Table:
    facts = {run: _facts(records[run], table) for row in table.rows for run in row.runs}
    _leave_out_dev_sets(facts)
    footnotes = list(table.footnotes)
    marks = [list(row.footnotes) for row in table.rows]
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
            names = []
            for row, row_marks in zip(table.rows, marks, strict=True):
                seeds = [
                    seed
                    for run, seed in zip(row.runs, row.seeds, strict=True)
                    if having.get(run) == value
                ]
                if not seeds:
                    continue
                name = row_name(row, table)
                if len(seeds) < len(row.runs):
                    noun = "seed" if len(seeds) == 1 else "seeds"
                    name += f" ({noun} {', '.join(map(str, seeds))})"
                row_marks.append(len(footnotes))
                names.append(name)
            footnotes.append(Footnote(setting, value, list_names(names), usual))
    rows = []
    for row, row_marks in zip(table.rows, marks, strict=True):
        kinds = dict.fromkeys(kind_of_values(records[run]) for run in row.runs)
        values = ", ".join(kind for kind in kinds if kind)
        rows.append(replace(row, footnotes=tuple(row_marks), values=values))
    return replace(table, rows=tuple(rows), footnotes=tuple(footnotes))


def _leave_out_dev_sets(facts: Mapping[str, dict[str, str]]) -> None:
    """Remove the contents of dev sets, unless one name has several: else the name, ``select_on``,
    says the same."""
    contents: dict[str, set[str]] = {}
    for of_run in facts.values():
        if DEV_SET in of_run:
            contents.setdefault(of_run.get(SELECT_ON, ""), set()).add(of_run[DEV_SET])
    if any(len(found) > 1 for found in contents.values()):
        return
    for of_run in facts.values():
        of_run.pop(DEV_SET, None)


def _seen_in_training(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """Return the table with a footnote for each row with a tenth or more of a task's sentences in
    its training text."""
    footnotes, rows = list(table.footnotes), []
    for row in table.rows:
        tasks = dict.fromkeys(
            task
            for run in row.runs
            for task in seen_tasks(records[run].provenance.corpus.overlap, table.suite)
        )
        if tasks:
            row = replace(row, footnotes=(*row.footnotes, len(footnotes)))
            footnotes.append(
                Footnote(
                    "training text",
                    f"a tenth or more of the sentences of {list_names(tasks)}",
                    row_name(row, table),
                )
            )
        rows.append(row)
    return replace(table, rows=tuple(rows), footnotes=tuple(footnotes))


def _facts(record: RunRecord, table: Table) -> dict[str, str]:
    """Return what should be the same in all runs of the table -> its value in this one."""
    packages = record.provenance.packages
    data = record.provenance.data
    libraries = [*LIBRARIES]
    if table.suite == "mteb":
        libraries.append("mteb")
    # runs of two commits of one version are not remarked on
    facts = {"bench": COMMIT.sub("", record.provenance.bench_version or UNKNOWN)}
    for name in libraries:
        facts[name] = str(packages.get(name, UNKNOWN))
    has_codes = bool(record.provenance.execution.suites)
    for score in record.scores:
        if (score.suite, score.protocol) != (table.suite, table.protocol) or score.task == AVERAGE:
            continue
        code = _code_of(score, record) if has_codes else None
        if code:
            facts[f"code of {score.task}"] = code[:8]
        sha256 = data.get(data_key(score.task, score.protocol, table.suite))
        if sha256 is not None:
            facts[f"data of {score.task}"] = str(sha256)[:8]
    kind = kind_of_values(record)
    if kind:
        facts["values"] = kind
    search = search_of(record).get("name")
    if search:
        facts["search"] = str(search)
    return facts | terms(record)


def _code_of(score: Score, record: RunRecord) -> str | None:
    """Return the hash of the code that scored a task; None if it was not recorded."""
    code = record.provenance.execution.suites.get(score.suite)
    return None if code is None else code.sha256


def _elsewhere(table: Table, tables: Sequence[Table]) -> list[Footnote]:
    """Return footnotes for rows of the same suite that only other tables have.

    Those tables have another protocol.
    """
    here = {run for row in table.rows for run in row.runs}
    place = (table.suite, table.setting, table.backbone)
    footnotes = []
    for other in tables:
        if (other.suite, other.setting, other.backbone) != place:
            continue
        if other.protocol == table.protocol:
            continue
        names = dict.fromkeys(row.name for row in other.rows if not here & set(row.runs))
        if names:
            only = f"{other.protocol} only"
            footnotes.append(Footnote("protocol", only, list_names(names), table.protocol))
    return footnotes


def refuse_footnotes(tables: Sequence[Table]) -> None:
    """Raise BenchError if a table has a footnote: ``--strict``."""
    differences = [f"{table.suite}: {footnote}" for table in tables for footnote in table.footnotes]
    if differences:
        raise BenchError(
            f"--strict: {plural(len(differences), 'difference')} between the runs of a table: "
            f"{list_names(differences, 1)}",
            "name the runs, filter them (--method, --backbone, --suite), or leave --strict out "
            "and read the footnotes",
        )


TERMS = ("learning_rate", "batch_size", "max_seq_length", SELECT_ON)
"""Recipe values that may differ in two rows of a table: they do not make another method."""

SEARCHED = "searched"
"""The words of a footnote for a value that a search chose."""


def terms(record: RunRecord) -> dict[str, str]:
    """Return the training settings of a run besides its method and its corpus: term -> value.

    Empty if nothing was trained. "processes": the number that divides the gradient. Rows of one
    table that differ in one of them get a footnote, and ``--strict`` refuses them.
    Values chosen by a search count as equal (SEARCHED): the methods share the search, not the
    value. So does a recipe's learning rate that no trial beat.
    """
    done = record.training
    if done is None:
        return {}
    rate = "learning_rate" if search_of(record) else None
    words = {}
    for key in TERMS:
        value = record.recipe.get(key)
        if value is None or value.value is None:
            continue
        if key == rate or is_tuned(value):
            words[key] = SEARCHED
        else:
            words[key] = str(value.value)
    if "learning_rate" in record.recipe:
        words["steps"] = f"{done.steps:,}"
    decides = determined_terms(record)
    if PRECISION in decides:
        words[PRECISION] = decides[PRECISION].shown
        words[PROCESSES] = "1"
        if PROCESSES in decides:
            words[PROCESSES] = decides[PROCESSES].shown
    if DEV_SET in decides:
        words[DEV_SET] = decides[DEV_SET].shown
    return words
