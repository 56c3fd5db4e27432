"""One version's board, made from runs and printed results: who is kept, what is said of it, in which order its tables stand, and which
times and memory may stand side by side in one."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.base.text import plural, slug
from bench.board.board import (
    PLAN,
    YOURS,
    Beside,
    Board,
    BoardTable,
    CostOf,
    Fact,
    PublishedRun,
    dating_runs,
    separate_record,
)
from bench.board.judged_tables import SAMPLE, answer, checkpoint_rule, how_chosen, judged_tables
from bench.board.names import search_file, unused_name
from bench.board.repeat import seed_words
from bench.compare.formatting import metric_words
from bench.compare.statistics.table import Cell, Row, Table, configuration, corpus_words
from bench.runs.record import RunRecord, public_name
from bench.runs.run import Run

if TYPE_CHECKING:
    from bench.compare.judge import Report
    from bench.runs.searches import Search


def board(
    runs: Sequence[PublishedRun],
    *,
    version: str,
    title: str,
    note: str | None = None,
    left_out: Sequence[str] = (),
    baseline: str | None = None,
    statistics: str = "auto",
    report: Report | None = None,
) -> Board:
    """The board of these runs, whatever their order. ``statistics`` and ``report`` are those of ``judged_tables.judged_tables``.

    A run that no table has is none of the board's: one line of ``left_out`` says why. Raises BenchError where none of the runs is finished
    and has a score, UnknownName for a baseline that no table has.
    """
    finished = sorted(
        (run for run in runs if run.record.status == "finished"), key=lambda run: run.record.run_id
    )
    if not any(run.record.scores for run in finished):
        raise BenchError(
            "none of these runs is finished and has a score",
            "bench run ... --suite sts, then bench publish",
        )
    judged = judged_tables(
        [Run(separate_record(run), run.folder) for run in finished],
        baseline=baseline,
        statistics=statistics,
        report=report,
    )
    tables = board_tables(judged, {run.record.run_id: run.record for run in finished})
    shown, replaced = _in_tables(finished, tables)
    made = Board(
        version=version,
        date=max(run.record.provenance.created for run in dating_runs(shown))[:10],
        title=title,
        note=note or None,
        answer=answer([board_table.table for board_table in tables]),
        runs=shown,
        left_out=(*left_out, *replaced),
        tables=tables,
        methods=tuple(sorted({run.record.method for run in shown})),
    )
    return replace(made, made=facts(made))


def _in_tables(
    runs: Sequence[PublishedRun], tables: Sequence[BoardTable]
) -> tuple[tuple[PublishedRun, ...], list[str]]:
    """The runs that have a row, and a line for each of the others: their rows are of newer runs."""
    shown = {run for table in tables for row in table.table.rows for run in row.runs}
    codes = {_seed_and_code(run) for run in runs if run.record.run_id in shown}
    reasons = {
        True: "a newer run of the same seed is in its row",
        False: "its row has newer code of the method",
    }
    lines = [
        f"{run.record.run_id}: replaced: {reasons[_seed_and_code(run) in codes]}"
        for run in runs
        if run.record.run_id not in shown
    ]
    return tuple(run for run in runs if run.record.run_id in shown), lines


def _seed_and_code(run: PublishedRun) -> tuple[object, ...]:
    """What the runs share of which a row has the newest one only."""
    record = separate_record(run)
    code = record.provenance.plugin.sha256
    return (
        record.method_name,
        record.setting,
        record.backbone_name,
        tuple(configuration(record).items()),
        record.seed,
        code,
    )


def with_plan(board: Board, plan: bytes | None) -> Board:
    """The board with the plan that was written for it."""
    if plan is None:
        return board
    text = f"{PLAN}: the question and the way to answer it, written before. sha256 {hashlib.sha256(plan).hexdigest()}"
    return replace(board, plan=plan, made=(Fact(topic="Plan", text=text), *board.made))


def with_searches(board: Board, searches: Sequence[Search], missing: Sequence[str]) -> Board:
    """The board with the searches that found values of its runs; ``missing``: names of those that were not found."""
    texts = [
        f"{search.name}: {', '.join(search.trials)}; {search.study.words}. Trials: {search_file(search.name, 'json')}"
        for search in searches
    ]
    texts += [
        f"{name}: not published, although runs here have values that it found" for name in missing
    ]
    made = tuple(Fact(topic="Searches", text=text) for text in texts)
    return replace(board, searches=tuple(searches), made=(*board.made, *made))


# --- how a version was made: what its numbers are of, how to check them, how to add a row ---

TEXTS = {
    "Not tested": "Differences were not tested.",
    "Tested": "± is a 95 % interval of a row's own mean; pairs that share a sentence count together, and the spread over seeds is borrowed "
    "across rows. Each table is one family of tests on the column that ranks (Bonferroni-Holm, alpha 0.05): verdicts against the baseline, "
    "which was fixed before the scores, and the rows that may be the best are right together in 95 of 100 such tables. Single tasks are not tested.",
    "Not comparable": "Numbers of another protocol, text form, setting or backbone stand in another table, times and memory of other hardware "
    "or versions in no column with these. Rows of one table whose data, libraries or code differ have a footnote.",
    "Missing": "A cell that was not scored stays empty, and so does the average of its row. A failed, interrupted, damaged or replaced run has no row.",
    "Check": "Computes every score again from the stored predictions.",
    "Repeat": "Every number has the one command that makes its row again, with its seeds. On another kind of processor a clustering may "
    "differ in the second decimal: k-means works in float32, and small differences grow.",
    "Run": "Run it as these rows were. NAME is one of bench methods, or your own with --plugin FILE; the command that a number opens has the "
    "corpus and the budget of its row.",
    "Submit": "Write it to leaderboards/submissions; a pull request with that folder submits it.",
    "Preview": "See it among these rows first: leaderboards/preview/index.html. vN is the version of this board.",
}
MANY = 3  # different values up to which all are named


def facts(board: Board) -> tuple[Fact, ...]:
    """How a board was made, one topic after the other; topics of which nothing is known are left out.

    What records alone say is of the board's own runs, where it has any.
    """
    runs, tables = board.runs, [board_table.table for board_table in board.tables]
    records = [run.record for run in dating_runs(runs)]
    senders = sorted({run.submitted_by for run in runs if run.submitted_by is not None})
    tested = TEXTS["Tested" if any(table.tested for table in tables) else "Not tested"]
    texts = {
        "Protocols": _protocols(tables),
        "Selection": _selection(records),
        "Seeds": seed_words(record.seed for record in records),
        "Training": _training(tables, records),
        "Intervals and tests": tested,
        "Hardware": _hardware(records),
        "Not comparable": TEXTS["Not comparable"],
        "Missing and failed": TEXTS["Missing"],
        "Submitted by": _few(senders, "people"),
        "Repeat": TEXTS["Repeat"],
        "Check": TEXTS["Check"],
    }
    verify = f"bench verify leaderboards/{board.version}"
    made = [
        Fact(topic=topic, text=text, command=verify if topic == "Check" else None)
        for topic, text in texts.items()
        if text
    ]
    return (*made, *(yours(tables[0]) if tables else ()))


def yours(first: Table) -> tuple[Fact, ...]:
    """How a reader adds a row to the first table: run it, hand it in, look at it."""
    seeds = seed_words(seed for row in first.rows for seed in row.seeds)
    backbone, suite = (
        _plain(public_name(first.backbone or ""), "BACKBONE"),
        _plain(first.suite, "SUITE"),
    )
    run = f"bench run --method NAME --backbone {backbone} --suite {suite}"
    commands = {
        "Run": run + (f" --seeds {seeds}" if seeds else ""),
        "Submit": 'bench submit RUN --by "your name"',
        "Preview": "bench publish --preview --runs leaderboards/vN/runs --submissions leaderboards/submissions",
    }
    return tuple(
        Fact(topic=YOURS, text=TEXTS[step], command=command) for step, command in commands.items()
    )


def _plain(name: str, instead: str) -> str:
    """A name out of a record that may stand in a command; a record may hold anything."""
    return name if re.fullmatch(r"[\w.@/-]+", name, re.ASCII) else instead


def _protocols(tables: Sequence[Table]) -> str:
    """ "sts: senteval-all/1, Spearman's rank correlation × 100, raw, tokenised; ..." """
    texts: dict[tuple[str, str, str], set[str]] = {}
    for table in tables:
        texts.setdefault((table.suite, table.protocol, table.metric), set()).add(table.text or "")
    return "; ".join(
        f"{suite}: {', '.join((protocol, metric_words(metric), *sorted(filter(None, forms))))}"
        for (suite, protocol, metric), forms in texts.items()
    )


def _selection(records: Sequence[RunRecord]) -> str:
    """ "best on STS-B dev: 20 runs; ...", the most frequent first; "" where nothing was trained."""
    rules = Counter(rule for record in records if (rule := checkpoint_rule(record)) is not None)
    ordered = sorted(rules.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{rule}: {plural(count, 'run')}" for rule, count in ordered)


def _training(tables: Sequence[Table], records: Sequence[RunRecord]) -> str:
    """ "6,400 to 12,800 rows a run; wiki1m@0123ab" """
    shown = {run for table in tables for row in table.rows for run in row.runs}
    trained = [
        record for record in records if record.run_id in shown and record.training is not None
    ]
    seen = sorted(
        {done.sentences for record in trained if (done := record.training) and done.sentences}
    )
    corpora = sorted({corpus for record in trained if (corpus := corpus_words(record))})
    if not seen:
        return ""
    most = f" to {seen[-1]:,}" if len(seen) > 1 else ""
    return f"{seen[0]:,}{most} rows a run; {_few(corpora, 'training texts')}"


def _hardware(records: Sequence[RunRecord]) -> str:
    """ "cpu; bench 0.1.0; torch 2.13.0" """
    places = [made_in(record) for record in records]
    torch = {str(record.provenance.packages.get("torch") or "") for record in records} - {""}
    parts = [
        _few(sorted({place.device for place in places}), "kinds of hardware"),
        f"bench {_few(sorted({place.bench_version for place in places}), 'versions')}",
        f"torch {_few(sorted(torch), 'versions')}" if torch else "",
    ]
    return "; ".join(filter(None, parts))


def _few(values: Sequence[str], noun: str) -> str:
    return ", ".join(values) if len(values) <= MANY else f"{len(values)} {noun}"


# --- the tables of a board, in the order in which a reader wants them, each with its address and what its columns are of ---

SUITES = ("sts", "cxc", "transfer", "fewshot", "clustering", "geometry", "mteb")
SETTINGS = ("unsupervised", "supervised", "none", None)
BESIDE = {"sts": (("cxc", "cxc-promcse/1"),)}
"""Suites of one column that are shown beside another's average, as the papers set domain shift beside STS."""
NO_DEV_SET = " This is no development set: these scores stand in a table of their own."


def board_tables(
    judged: Sequence[tuple[Table, str]], records: Mapping[str, RunRecord]
) -> tuple[BoardTable, ...]:
    """Blocks of one setting and backbone, the largest first within a setting; in a block the suites in the papers' order. The built-in
    sample comes after all other suites. ``judged``: as :func:`judged_tables` makes them."""
    rows: dict[tuple[str | None, str | None], int] = {}
    for table, _ in judged:
        place = (table.setting, table.backbone)
        rows[place] = max(rows.get(place, 0), len(table.rows) * (table.suite != SAMPLE))
    made: list[BoardTable] = []
    for table, chosen in sorted(judged, key=lambda one: _place(one[0], one[1], rows)):
        made.append(_board_table(table, chosen, records, {other.anchor for other in made}))
    return tuple(replace(board_table, beside=_beside(board_table, made)) for board_table in made)


def _place(
    table: Table, chosen_on: str, rows: Mapping[tuple[str | None, str | None], int]
) -> tuple[object, ...]:
    return (
        table.suite == SAMPLE,
        bool(chosen_on),
        SETTINGS.index(table.setting),
        -rows[table.setting, table.backbone],
        table.backbone or "",
        SUITES.index(table.suite) if table.suite in SUITES else len(SUITES),
        table.suite,
        table.protocol,
        table.text != "tokenised",
        table.text or "",
        chosen_on,
    )


def _board_table(
    table: Table, chosen_on: str, records: Mapping[str, RunRecord], taken: set[str]
) -> BoardTable:
    table, cost_of, elsewhere = comparable_costs(table, records)
    setting = "untrained" if table.setting == "none" else table.setting
    chosen = f"on {chosen_on}" if chosen_on else ""
    name = slug(setting, table.backbone, table.suite, table.protocol, table.text, chosen) or "table"
    return BoardTable(
        anchor=unused_name(name, taken),
        table=table,
        selection=how_chosen(table, records) + (NO_DEV_SET if chosen_on else ""),
        costs_comparable=not elsewhere,
        cost_note=_cost_note(cost_of, elsewhere),
        cost_of=cost_of,
    )


def _beside(board_table: BoardTable, every: Sequence[BoardTable]) -> tuple[Beside, ...]:
    mine, columns = board_table.table, []
    for suite, protocol in BESIDE.get(mine.suite, ()):
        form = (suite, protocol, mine.setting, mine.backbone, mine.text)
        for other in every:
            table = other.table
            if (
                form == (table.suite, table.protocol, table.setting, table.backbone, table.text)
                and len(table.columns) == 1
                and any(cells := tuple(_cell_of(row, table) for row in mine.rows))
            ):
                columns.append(
                    Beside(
                        name=table.columns[0],
                        suite=suite,
                        protocol=protocol,
                        metric=table.metric,
                        anchor=other.anchor,
                        cells=cells,
                    )
                )
    return tuple(columns)


def _cell_of(row: Row, table: Table) -> Cell | None:
    """The cell of the same runs in a table of one column; None where it has other runs, even other seeds."""
    return next((other.cells[0] for other in table.rows if set(other.runs) == set(row.runs)), None)


# --- times and memory of a table: of one kind of hardware and one version of the harness, never of two in one column ---

UNKNOWN = "not recorded"
FROM_SOURCE = "0+source"  # the version that a checkout without an installed release has


def comparable_costs(
    table: Table, records: Mapping[str, RunRecord]
) -> tuple[Table, CostOf | None, list[str]]:
    """(``table`` with the times and memory of those rows alone that ran where most of them did, that place, names of the other rows).

    Trained parameters depend on no machine and stay. Costs of a row whose runs were made in different places are left out. The place is
    None where no row recorded one.
    """
    places = [_one_place([records[run] for run in row.runs]) for row in table.rows]
    timed = [
        row.cost is not None
        and (row.cost.train_seconds, row.cost.peak_memory_bytes) != (None, None)
        for row in table.rows
    ]
    counts = Counter(
        place
        for place, is_timed in zip(places, timed, strict=True)
        if place is not None and is_timed
    )
    usual = min(counts, key=lambda place: (-counts[place], place), default=None)
    rows, elsewhere = [], []
    for row, place, is_timed in zip(table.rows, places, timed, strict=True):
        if is_timed and row.cost is not None and (place is None or place != usual):
            elsewhere.append(row.name)
            row = replace(row, cost=replace(row.cost, train_seconds=None, peak_memory_bytes=None))
        rows.append(row)
    return replace(table, rows=tuple(rows)), usual, list(dict.fromkeys(elsewhere))


def made_in(record: RunRecord) -> CostOf:
    """Where a run was made, as far as it was recorded. Code that was not released has no version: its commit stands for it."""
    made = record.provenance
    version = made.bench_version or UNKNOWN
    if version == FROM_SOURCE and made.git.commit:
        version = f"commit {made.git.commit[:12]}"
    device = record.cost.device or made.platform.get("device")
    return CostOf(device=str(device or UNKNOWN), bench_version=version)


def _one_place(runs: Sequence[RunRecord]) -> CostOf | None:
    """The one place of all runs of a row; None where there are several, or where one is not known."""
    first, *others = {made_in(run) for run in runs}
    return None if others or UNKNOWN in (first.device, first.bench_version) else first


def _cost_note(place: CostOf | None, elsewhere: Sequence[str]) -> str:
    """Of which hardware and version the times are, and which rows have others; "" where no row has any."""
    if place is None and not elsewhere:
        return ""
    of = f"{place.device}, bench {place.bench_version}" if place else "unknown hardware or version"
    others = f" Made elsewhere, and not shown: {', '.join(elsewhere)}." if elsewhere else ""
    return f"Time and memory: {of}.{others}"
