"""The tables that ``bench compare`` shows: means, footnotes, and whatever was asked for beside
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.base.text import list_names, plural
from bench.compare import costs
from bench.compare.costs import SEARCHED, terms
from bench.compare.formatting import protocol_words, row_name
from bench.compare.printed import with_papers
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import AVERAGE, Footnote, Row, Table
from bench.runs.packed import has_predictions
from bench.runs.predictions import Run
from bench.runs.record import RunRecord, dev_words
from bench.runs.searches import kind_of_values, search_of
from bench.runs.store import data_key

if TYPE_CHECKING:
    from bench.compare.judge import Report


# --- what the runs of one table do not share although they stand in one column: a footnote for each difference ---


LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
"""Packages that a score may depend on; ``mteb`` too, of its own suite."""
UNKNOWN = "not recorded"


def with_footnotes(tables: Sequence[Table], records: Mapping[str, RunRecord]) -> tuple[Table, ...]:
    """The tables with a footnote for each difference between the runs of a table, and marks at the
    rows that differ.

    Of each thing that is compared, the value that most runs have is the rule; one footnote names
    all who differ. Rows that a suite has only under another protocol or text form, in another
    table, are named too.
    """
    return tuple(_with_footnotes(table, tables, records) for table in tables)


def _with_footnotes(
    table: Table, tables: Sequence[Table], records: Mapping[str, RunRecord]
) -> Table:
    table = _with_differences(table, records)
    return replace(
        table,
        footnotes=(*table.footnotes, *_elsewhere(table, tables)),
        notes=(*table.notes, *_chosen_on(table, records), *_failures(table, records)),
    )


MOST_FAILURES = 3  # that a table lists


def _failures(table: Table, records: Mapping[str, RunRecord]) -> list[str]:
    """A note for each finished run of which another suite or task could not be scored."""
    failed = [run for row in table.rows for run in row.runs if records[run].error]
    notes = [f"not scored in {run}: {records[run].error}" for run in failed[:MOST_FAILURES]]
    more = len(failed) - MOST_FAILURES
    return notes + [f"{more} more runs have such failures: bench runs RUN"] * (more > 0)


def _with_differences(table: Table, records: Mapping[str, RunRecord]) -> Table:
    facts = {run: _facts(records[run], table) for row in table.rows for run in row.runs}
    footnotes = list(table.footnotes)
    marks = [list(row.footnotes) for row in table.rows]
    for setting in dict.fromkeys(key for fact in facts.values() for key in fact):
        having = {run: of_run[setting] for run, of_run in facts.items() if setting in of_run}
        counts = Counter(having.values())
        if all(search_of(records[run]) for run in having):
            counts.pop(SEARCHED, None)  # rows of a search may differ in what it chose
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
                if seeds:
                    row_marks.append(len(footnotes))
                    names.append(row_name(row, table) + _some_of(seeds, row))
            footnotes.append(Footnote(setting, value, list_names(names), usual))
    rows = tuple(
        replace(
            row, footnotes=tuple(row_marks), values=values_words([records[run] for run in row.runs])
        )
        for row, row_marks in zip(table.rows, marks, strict=True)
    )
    return replace(table, rows=rows, footnotes=tuple(footnotes))


def _some_of(seeds: Sequence[int | None], row: Row) -> str:
    if len(seeds) == len(row.runs):
        return ""
    return f" ({'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))})"


def _chosen_on(table: Table, records: Mapping[str, RunRecord]) -> tuple[str, ...]:
    """Where checkpoints were chosen on pairs that this table scores."""
    if table.suite != "sts":
        return ()
    chosen = dict.fromkeys(dev_words(records[run]) for row in table.rows for run in row.runs)
    return tuple(f"checkpoints: {words}" for words in chosen if words)


def _facts(record: RunRecord, table: Table) -> dict[str, str]:
    """What should be the same in all runs of the table -> its value in this one."""
    packages, data = record.provenance.packages, record.provenance.data
    facts = {"bench": record.provenance.bench_version or UNKNOWN}
    facts |= {
        name: str(packages.get(name, UNKNOWN))
        for name in (*LIBRARIES, *(("mteb",) if table.suite == "mteb" else ()))
    }
    for score in record.scores:
        if score.suite != table.suite or score.protocol != table.protocol or score.task == AVERAGE:
            continue
        if (
            table.text is not None
            and score.text is not None
            and (score.text == table.text or score.text.startswith("other-"))
        ):
            facts[f"text of {score.task}"] = score.text
        key = data_key(score.task, score.text, table.suite)
        if score.text == table.text and (sha := data.get(key)) is not None:
            facts[f"data of {score.task}"] = str(sha)[:8]
    if kind := kind_of_values(record):
        facts["values"] = kind
    if name := search_of(record).get("name"):
        facts["search"] = str(name)
    return facts | terms(record)


def values_words(runs: Sequence[RunRecord]) -> str:
    """ "paper", "recipe", "tuned: 12 trials"; several where the seeds of a row are not of one kind;
    "" where nothing is trained."""
    return ", ".join(filter(None, dict.fromkeys(map(kind_of_values, runs))))


def _elsewhere(table: Table, tables: Sequence[Table]) -> list[Footnote]:
    """A footnote for rows of the same suite that only other tables have, under another protocol or text form."""
    here = {run for row in table.rows for run in row.runs}
    place, form = (table.suite, table.setting, table.backbone), protocol_words(table)
    return [
        Footnote("protocol", f"{protocol_words(other)} only", list_names(names), form)
        for other in tables
        if (other.suite, other.setting, other.backbone) == place and protocol_words(other) != form
        if (names := dict.fromkeys(row.name for row in other.rows if not here & set(row.runs)))
    ]


# --- the tables ---


AUTO, YES, NO = "auto", "yes", "no"
MANY_RUNS = 1_000
"""Runs with predictions up to which ``auto`` reads them without being asked: about a minute."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What stands in the tables beside the means."""

    baseline: str | None = None
    together: bool = False
    statistics: str = (
        AUTO  # intervals and verdicts: auto (up to MANY_RUNS runs with predictions), yes, no
    )
    tasks: tuple[str, ...] = ()  # only these; a single one is what a table ranks by
    with_paper: bool = False
    cost: bool = False
    strict: bool = False


def compare_runs(
    runs: Sequence[Run], options: TableOptions, report: Report | None = None
) -> tuple[Table, ...]:
    """The tables of these runs. Raises BenchError where the runs have no score, or ``options``
    refuse them."""
    records = {run.record.run_id: run.record for run in runs}
    tables = summarise(
        records.values(),
        baseline=options.baseline,
        together=options.together,
        tasks=options.tasks,
    )
    if not tables:
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    tables = with_footnotes(tables, records)
    if options.strict:
        refuse_footnotes(tables)
    if options.statistics != NO:
        tables = _judged(tables, {run.record.run_id: run for run in runs}, options, report)
    if options.with_paper:
        tables = with_papers(tables, records)
    return costs.with_costs(tables, records) if options.cost else tables


def refuse_footnotes(tables: Sequence[Table]) -> None:
    """``--strict``: raises BenchError where a table has a footnote."""
    footnotes = [(table.suite, footnote) for table in tables for footnote in table.footnotes]
    if not footnotes:
        return
    (suite, first), more = footnotes[0], len(footnotes) - 1
    rest = f" (and {plural(more, 'more difference')})" if more else ""
    raise BenchError(
        f"--strict: the runs of {suite} are not of one kind: {first}{rest}",
        "name the runs, filter them (--method, --backbone, --text), or leave --strict out and read the footnotes",
    )


def _judged(
    tables: tuple[Table, ...], runs: Mapping[str, Run], options: TableOptions, report: Report | None
) -> tuple[Table, ...]:
    from bench.compare.judge import judge

    shown = {run: runs[run] for table in tables for row in table.rows for run in row.runs}
    stored = sum(has_predictions(run.folder) for run in shown.values())
    if not stored and options.statistics == YES:
        raise BenchError(
            "--statistics yes: none of these runs has predictions",
            "the command of each run makes them again",
        )
    many = options.statistics == AUTO and stored > MANY_RUNS
    if many:
        note = f"not tested: reading the predictions of {stored:,} runs takes minutes; choose fewer runs, or --statistics yes"
        tables = tuple(replace(table, notes=(*table.notes, note)) for table in tables)
    return judge(tables, shown, report, predictions=not many)
