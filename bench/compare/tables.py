"""The tables of ``bench compare``: grouped, compared with a baseline, judged, with notes, and in
order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.base.errors import BenchError
from bench.compare.costs import with_costs
from bench.compare.differences import refuse_differences
from bench.compare.grouping import UNNAMED_TEXT, Usual, recorded_budget
from bench.compare.judge import judge
from bench.compare.printed import with_paper
from bench.compare.questions import asked_tables, questions_of
from bench.compare.senders import sender_of
from bench.compare.statistics.rows import is_start
from bench.compare.statistics.summary import Apart, summarise
from bench.compare.statistics.table import Table
from bench.compare.statistics.terms import corpus_words
from bench.compare.trained_with import with_values
from bench.compare.words.names import short_text
from bench.compare.words.notes import with_notes
from bench.records.copies import distinct_runs
from bench.records.names import protocol_text
from bench.records.record import RunRecord
from bench.records.run import Run

SUITES = ("sts", "sts-multi", "cxc", "transfer", "clustering", "geometry", "fewshot", "mteb")
"""The suites in the papers' order."""
SETTINGS = ("unsupervised", "supervised", "none", None)
SAMPLE = "check"
"""The built-in suite, a small sample: a run that is scored on other suites, too, needs no table of
it."""


def make_tables(
    runs: Sequence[Run],
    *,
    baseline: str | None = None,
    together: bool = False,
    tasks: tuple[str, ...] = (),
    strict: bool = False,
    paper: bool = False,
    cost: bool = False,
    main_budget: str = "",
) -> tuple[Table, ...]:
    """Make the tables of these runs: first the publisher's, then each sender's. A table of
    ``SAMPLE`` is left out if all of its runs have another one.

    Each table is judged among its own rows, so that none changes another. A sender's table has a
    baseline if the sender has a row of the usual name.

    ``together``: runs of every text and length in one table. ``tasks``: only these; a table ranks
    by a single one. ``strict``: refuse runs that differ in more than the method. ``paper``,
    ``cost``: with these columns. ``main_budget``: tables with this budget come first, if there are
    some; with "", the budget of most runs.

    Raises BenchError if the runs have no score, are refused, or two different runs have one id.
    """
    by_id = {run.record.run_id: run for run in distinct_runs(runs)}
    records = {run_id: run.record for run_id, run in by_id.items()}
    by_sender: dict[str, list[RunRecord]] = {}
    for record in records.values():
        by_sender.setdefault(sender_of(record), []).append(record)
    own_records = by_sender.pop("", [])
    usual = Usual.of(own_records)
    own = _summarised(own_records, together, tasks, usual)
    if not any(record.scores for record in records.values()):
        raise BenchError("none of these runs has a score", "bench run ... --suite sts")
    own = asked_tables(own, questions_of(_of(by_id, own_records)), baseline)
    if strict:
        refuse_differences(own, records)
    made = [with_notes(judge(table, by_id), own, records) for table in own]
    for sender, theirs in sorted(by_sender.items()):
        sent = _summarised(theirs, together, tasks, Usual.of(theirs, usual))
        sent = asked_tables(sent, questions_of(_of(by_id, theirs)), None)
        sent = [replace(table, sender=sender) for table in sent]
        made += [with_notes(judge(table, by_id), sent, records) for table in sent]
    tables = _in_order(_without_sample(made), main_budget, usual)
    if paper:
        tables = [with_paper(table, records) for table in tables]
    if cost:
        tables = [with_costs(table, records) for table in tables]
    return tuple(tables)


def _of(runs: Mapping[str, Run], records: Sequence[RunRecord]) -> list[Run]:
    return [runs[record.run_id] for record in records]


def _without_sample(tables: Sequence[Table]) -> list[Table]:
    elsewhere: set[str] = set()
    for table in tables:
        if table.suite != SAMPLE:
            elsewhere.update(run for row in table.rows for run in row.runs)
    return [
        table
        for table in tables
        if table.suite != SAMPLE or not all(elsewhere.issuperset(row.runs) for row in table.rows)
    ]


def _in_order(tables: Sequence[Table], main_budget: str, usual: Usual) -> list[Table]:
    """Sort into blocks of one setting and backbone, the largest block first within a setting.

    The tables of the main budget come first. In a block the suites are in the papers' order. The
    built-in sample comes after all other suites, and submitted tables after the publisher's.
    """
    most: Counter[tuple[str | None, str | None]] = Counter()
    for table in tables:
        block = (table.setting, table.backbone)
        if not table.sender and table.suite != SAMPLE:
            most[block] = max(most[block], len(table.rows))

    def is_main(table: Table) -> bool:
        if table.budget or not main_budget:
            return table.budget == main_budget
        return usual.budgets.get((table.setting or "", table.backbone or "")) == main_budget

    def order(table: Table) -> tuple[object, ...]:
        return (
            table.sender,
            table.suite == SAMPLE,
            not is_main(table),
            not is_main(table) and bool(table.budget),
            SETTINGS.index(table.setting),
            -most[table.setting, table.backbone],
            table.backbone or "",
            SUITES.index(table.suite) if table.suite in SUITES else len(SUITES),
            table.suite,
            bool(protocol_text(table.protocol)),
            table.protocol,
            table.budget,
            bool(table.text),
            table.text,
            table.is_further,
        )

    return sorted(tables, key=order)


def _summarised(
    records: Sequence[RunRecord], together: bool, tasks: tuple[str, ...], usual: Usual
) -> list[Table]:
    """Make the tables of one sender's runs, before anything is compared."""
    by_id = {record.run_id: record for record in records}
    apart = {}
    # what the tables of a backbone differ in is in their names
    budgets: dict[str | None, set[str]] = {}
    several_texts = set()
    for record in records:
        own = Apart() if together else usual.apart(record)
        apart[record.run_id] = own
        if record.setting != "none" and not is_start(record) and not together:
            budgets.setdefault(record.backbone_name, set()).add(recorded_budget(record))
        if own.text:
            several_texts.add((record.setting, record.backbone_name))
    made = []
    for table in summarise(records, together=together, tasks=tasks, apart=apart):
        place = (table.setting or "", table.backbone or "")
        if len(budgets.get(table.backbone, ())) > 1:
            table = replace(table, length=table.budget or usual.budgets.get(place, ""))
        if place in several_texts:
            table = replace(table, trained_on=_text_name(table, by_id))
        made.append(with_values(table, by_id))
    return made


def _text_name(table: Table, records: Mapping[str, RunRecord]) -> str:
    """Return the name of the text that the rows of a table were trained on, as short as a row has
    it."""
    if table.text:
        return short_text(table.text)
    names = []
    for row in table.rows:
        if row.setting != "none" and not row.is_start:
            names.append(corpus_words(records[row.runs[0]]) or UNNAMED_TEXT)
    return short_text(names[0]) if names else ""
