"""The tables that ``bench compare`` shows: means, footnotes, and whatever was asked for beside
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.base.errors import BenchError
from bench.base.text import list_names, plural
from bench.compare.costs import SEARCHED, terms, with_costs
from bench.compare.formatting import protocol_words, row_name
from bench.compare.judge import judge
from bench.compare.printed import with_paper
from bench.compare.statistics.summary import summarise, with_baseline
from bench.compare.statistics.table import AVERAGE, Footnote, Row, Table
from bench.data.overlap import seen_tasks
from bench.runs.predictions import Run
from bench.runs.record import RunRecord, dev_words
from bench.runs.searches import kind_of_values, search_of
from bench.runs.store import data_key

# --- what the runs of one table do not share although they stand in one column: a footnote for each difference ---


LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
"""Packages that a score may depend on; ``mteb`` too, of its own suite."""
UNKNOWN = "not recorded"


def with_footnotes(
    table: Table, tables: Sequence[Table], records: Mapping[str, RunRecord]
) -> Table:
    """The table with a footnote for each difference between its runs, and marks at the rows that
    differ.

    Of each thing that is compared, the value that most runs have is the rule; one footnote names
    all who differ. Rows that a suite has only under another protocol or text form, in another one
    of ``tables``, are named too.
    """
    table = _seen_in_training(_with_differences(table, records), records)
    return replace(
        table,
        footnotes=(*table.footnotes, *_elsewhere(table, tables)),
        notes=(*table.notes, *_chosen_on(table, records), *_failures(table, records)),
    )


def _failures(table: Table, records: Mapping[str, RunRecord]) -> list[str]:
    """A note of the finished runs of which another suite or task could not be scored."""
    errors = [(run, records[run].error) for row in table.rows for run in row.runs]
    failed = [f"{run} ({error})" for run, error in errors if error]
    return [f"not scored in full: {list_names(failed, 3)}"] if failed else []


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


def _seen_in_training(table: Table, records: Mapping[str, RunRecord]) -> Table:
    """The table with a footnote for each row that trained on text of which a tenth or more of a task's sentences are."""
    footnotes, rows = list(table.footnotes), []
    for row in table.rows:
        overlaps = [records[run].provenance.corpus.overlap for run in row.runs]
        tasks = dict.fromkeys(task for one in overlaps for task in seen_tasks(one, table.suite))
        if tasks:
            row = replace(row, footnotes=(*row.footnotes, len(footnotes)))
            value = f"a tenth or more of the sentences of {list_names(tasks)}"
            footnotes.append(Footnote("training text", value, row_name(row, table)))
        rows.append(row)
    return replace(table, rows=tuple(rows), footnotes=tuple(footnotes))


def _some_of(seeds: Sequence[int | None], row: Row) -> str:
    if len(seeds) == len(row.runs):
        return ""
    return f" ({'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))})"


def _chosen_on(table: Table, records: Mapping[str, RunRecord]) -> list[str]:
    """Where checkpoints were chosen on pairs that this table scores."""
    runs = (records[run] for row in table.rows for run in row.runs if table.suite == "sts")
    return [f"checkpoints: {text}" for text in dict.fromkeys(map(dev_words, runs)) if text]


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


# --- by what score the checkpoints of a row were chosen ---


DEV = ("dev", "validation", "valid", "val", "train")
"""Last words in the names of sets that no score is taken of."""
UNNAMED = "a set that was not recorded"


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


# --- the tables ---


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What stands in the tables beside the means."""

    baseline: str | None = None
    together: bool = False
    tasks: tuple[str, ...] = ()  # only these; a single one is what a table ranks by
    with_paper: bool = False
    cost: bool = False
    strict: bool = False


def compare_runs(runs: Sequence[Run], options: TableOptions) -> tuple[Table, ...]:
    """The tables of these runs. Raises BenchError where the runs have no score, or ``options``
    refuse them."""
    by_id = {run.record.run_id: run for run in runs}
    records = {run_id: run.record for run_id, run in by_id.items()}
    groups: dict[str, list[RunRecord]] = {}
    for record in records.values():
        groups.setdefault(chosen_on(record), []).append(record)
    summarised = [
        replace(table, chosen_on=name)
        for name in sorted(groups)
        for table in summarise(groups[name], together=options.together, tasks=options.tasks)
    ]
    if not summarised:
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    tables = with_baseline(summarised, options.baseline)
    tables = [with_footnotes(table, tables, records) for table in tables]
    if options.strict:
        refuse_footnotes(tables)
    tables = [judge(table, by_id) for table in tables]
    if options.with_paper:
        tables = [with_paper(table, records) for table in tables]
    if options.cost:
        tables = [with_costs(table, records) for table in tables]
    return tuple(tables)


def refuse_footnotes(tables: Sequence[Table]) -> None:
    """``--strict``: raises BenchError where a table has a footnote."""
    differences = [f"{table.suite}: {footnote}" for table in tables for footnote in table.footnotes]
    if differences:
        raise BenchError(
            f"--strict: {plural(len(differences), 'difference')} between the runs of a table: {list_names(differences, 1)}",
            "name the runs, filter them (--method, --backbone, --text), or leave --strict out and read the footnotes",
        )
