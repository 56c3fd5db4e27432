"""One version's board, made from runs and printed results: which runs have a row, in which order the tables stand, which times and
memory may stand side by side in one, and how all of it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from bench.base.errors import BenchError
from bench.base.text import list_names, plural, seed_ranges, slug
from bench.board.board import Board, BoardTable
from bench.board.judged_tables import SAMPLE, answer, checkpoint_rule, judged_tables
from bench.board.names import unused_name
from bench.compare.formatting import metric_words
from bench.compare.statistics.table import SENDER, Table, corpus_words
from bench.runs.record import RecipeValue, RunRecord
from bench.runs.store import Run


def board(
    runs: Sequence[Run],
    *,
    version: str,
    title: str,
    senders: Mapping[str, str] | None = None,
    note: str | None = None,
    left_out: Sequence[str] = (),
    baseline: str | None = None,
) -> Board:
    """The board of these runs, whatever their order. ``senders``: run id -> who submitted it.

    A run that no table has is none of the board's: one line of ``left_out`` says why. Raises BenchError where none of the runs is finished
    and has a score, UnknownName for a baseline that no table has.
    """
    senders = senders or {}
    finished = sorted(
        (run for run in runs if run.record.status == "finished"), key=lambda run: run.record.run_id
    )
    if not any(run.record.scores for run in finished):
        raise BenchError(
            "none of these runs is finished and has a score",
            "bench run ... --suite sts, then bench publish",
        )
    judged = judged_tables(
        [_separate(run, senders) for run in finished],
        baseline=baseline,
    )
    tables = board_tables(judged, {run.record.run_id: run.record for run in finished})
    in_rows = {run for table in tables for row in table.table.rows for run in row.runs}
    shown = tuple(run for run in finished if run.record.run_id in in_rows)
    by_sender = {run: senders[run] for run in sorted(in_rows & senders.keys())}
    records = [run.record for run in shown if run.record.run_id not in senders]
    dating = records or [run.record for run in shown]  # a sender may write any day into a record
    replaced = [
        f"{run.record.run_id}: replaced: its row has newer runs, of the same seed or of newer code"
        for run in finished
        if run not in shown
    ]
    return Board(
        version=version,
        date=max(record.provenance.created for record in dating)[:10],
        title=title,
        note=note or None,
        answer=answer([table.table for table in tables]),
        runs=shown,
        senders=by_sender,
        left_out=(*left_out, *replaced),
        tables=tables,
        made=facts(version, dating, by_sender, [table.table for table in tables]),
    )


def _separate(run: Run, senders: Mapping[str, str]) -> Run:
    """A run as tables group it: one that was submitted never shares a row with the board's own runs, nor with another sender's.

    Otherwise a newer run of the same seed would replace an own one, and a forged one would move its mean.
    """
    record = run.record
    if (name := senders.get(record.run_id)) is None:
        return run
    sender = RecipeValue(value=name, source="the submission")
    return Run(structs.replace(record, recipe={**record.recipe, SENDER: sender}), run.folder)


# --- how a version was made: what its numbers are of, and how to check them ---

TESTED = (
    "± is a 95 % interval of a row's own mean; pairs that share a sentence count together, and the spread over seeds is borrowed "
    "across rows. Each table is one family of tests on the column that ranks (Bonferroni-Holm, alpha 0.05): verdicts against the baseline, "
    "which was fixed before the scores, and the rows that may be the best are right together in 95 of 100 such tables. Single tasks are not tested."
)
NOT_COMPARABLE = (
    "Numbers of another protocol, text form, setting or backbone stand in another table, times and memory of other hardware "
    "or versions in no column with these. Rows of one table whose data, libraries or code differ have a footnote."
)
MISSING = "A cell that was not scored stays empty, and so does the average of its row. A failed, interrupted, damaged or replaced run has no row."
REPEAT = (
    "Every number has the one command that makes its row again, with its seeds. On another kind of processor a clustering may "
    "differ in the second decimal: k-means works in float32, and small differences grow."
)


def facts(
    version: str, records: Sequence[RunRecord], senders: Mapping[str, str], tables: Sequence[Table]
) -> dict[str, str]:
    """Topic -> how a board was made; topics of which nothing is known are left out. ``records``: of the board's own runs, where it has
    any."""
    trained = [record for record in records if record.training and record.training.sentences]
    protocols = (
        ", ".join(filter(None, (table.protocol, metric_words(table.metric), table.text)))
        for table in tables
    )
    made = {
        "Protocols": _counted(protocols, "table"),
        "Selection": _counted(map(checkpoint_rule, records), "run"),
        "Seeds": seed_ranges(record.seed for record in records),
        "Training": _counted(map(_training, trained), "run"),
        "Intervals and tests": TESTED
        if any(table.tested for table in tables)
        else "Differences were not tested.",
        "Hardware": _counted(map(made_in, records), "run"),
        "Libraries": _counted((_torch(record) for record in records), "run"),
        "Not comparable": NOT_COMPARABLE,
        "Missing and failed": MISSING,
        "Submitted by": list_names(sorted(set(senders.values()))),
        "Repeat": REPEAT,
        "Check": f"bench verify leaderboards/{version} computes every score again from the stored predictions.",
    }
    return {topic: text for topic, text in made.items() if text}


def _counted(values: Iterable[str | None], noun: str) -> str:
    """ "best on STS-B dev: 20 runs; ...", the most frequent first."""
    counts = Counter(filter(None, values))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{value}: {plural(count, noun)}" for value, count in ordered)


def _training(record: RunRecord) -> str:
    """ "64,000 rows of wiki1m@0123ab" """
    assert record.training is not None
    return (
        f"{record.training.sentences:,} rows of {corpus_words(record) or 'a text without a sha256'}"
    )


def _torch(record: RunRecord) -> str | None:
    version = record.provenance.packages.get("torch")
    return f"torch {version}" if version else None


# --- the tables of a board, in the order in which a reader wants them, each with its address and what its columns are of ---

SUITES = ("sts", "cxc", "transfer", "fewshot", "clustering", "geometry", "mteb")
SETTINGS = ("unsupervised", "supervised", "none", None)
NO_DEV_SET = " This is no development set: these scores stand in a table of their own."


def board_tables(
    judged: Sequence[Table], records: Mapping[str, RunRecord]
) -> tuple[BoardTable, ...]:
    """Blocks of one setting and backbone, the largest first within a setting; in a block the suites in the papers' order. The built-in
    sample comes after all other suites. ``judged``: as :func:`judged_tables` makes them."""
    most: dict[tuple[str | None, str | None], int] = {}
    for table in judged:
        block = (table.setting, table.backbone)
        most[block] = max(most.get(block, 0), len(table.rows) * (table.suite != SAMPLE))

    def order(table: Table) -> tuple[object, ...]:
        return (
            table.suite == SAMPLE,
            bool(table.chosen_on),
            SETTINGS.index(table.setting),
            -most[table.setting, table.backbone],
            table.backbone or "",
            SUITES.index(table.suite) if table.suite in SUITES else len(SUITES),
            table.suite,
            table.protocol,
            table.text != "tokenised",
            table.text or "",
            table.chosen_on,
        )

    made: dict[str, BoardTable] = {}
    for table in sorted(judged, key=order):
        setting = "untrained" if table.setting == "none" else table.setting
        chosen = f"on {table.chosen_on}" if table.chosen_on else ""
        name = slug(setting, table.backbone, table.suite, table.protocol, table.text, chosen)
        anchor = unused_name(name or "table", made)
        runs = (records[run] for row in table.rows for run in row.runs)
        rules = _counted(map(checkpoint_rule, runs), "run")
        selection = f"Checkpoint: {rules}." if rules else ""
        selection += NO_DEV_SET * bool(table.chosen_on)
        table, cost_note = comparable_costs(table, records)
        made[anchor] = BoardTable(
            anchor=anchor, table=table, selection=selection, cost_note=cost_note
        )
    return tuple(made.values())


# --- times and memory of a table: of one kind of hardware and one version of the harness, never of two in one column ---

FROM_SOURCE = "0+source"  # the version that a checkout without an installed release has


def comparable_costs(table: Table, records: Mapping[str, RunRecord]) -> tuple[Table, str]:
    """(``table`` with the times and memory of those rows alone that ran where most of them did, a note on where that was and which rows
    ran elsewhere; "" where nothing was timed). Trained parameters depend on no machine and stay."""
    measured = ("train_seconds", "peak_memory_bytes")
    places = {
        row.runs: {made_in(records[run]) for run in row.runs}
        for row in table.rows
        if row.cost and any(getattr(row.cost, name) is not None for name in measured)
    }
    if not places:
        return table, ""
    single = [next(iter(where)) for where in places.values() if len(where) == 1]
    counts = Counter(filter(None, single))
    usual = min(counts, key=lambda place: (-counts[place], place), default=None)
    elsewhere = {runs for runs, where in places.items() if usual is None or where != {usual}}
    note = f"Time and memory: {usual or 'unknown hardware or version'}."
    if names := dict.fromkeys(row.name for row in table.rows if row.runs in elsewhere):
        note += f" Made elsewhere, and not shown: {', '.join(names)}."
    rows = [
        replace(row, cost=replace(row.cost, **dict.fromkeys(measured)))
        if row.cost and row.runs in elsewhere
        else row
        for row in table.rows
    ]
    return replace(table, rows=tuple(rows)), note


def made_in(record: RunRecord) -> str | None:
    """ "cpu: Intel(R) Xeon(R) Processor, 2 cores, bench 0.1.0"; None where that was not recorded. Code that was not released has no
    version: its commit stands for it."""
    made = record.provenance
    device, version = record.cost.device or made.platform.get("device"), made.bench_version
    if version == FROM_SOURCE and made.git.commit:
        version = f"commit {made.git.commit[:12]}"
    return f"{device}, bench {version}" if device and version else None
