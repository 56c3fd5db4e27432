"""One version's board, made from runs and printed results: who is kept, what is said of it, in which order its tables stand, and which
times and memory may stand side by side in one."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.base.errors import BenchError
from bench.base.text import slug
from bench.board.board import (
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
from bench.board.judged_tables import (
    SAMPLE,
    Judged,
    answer,
    checkpoint_rule,
    checkpoint_words,
    judged_tables,
)
from bench.board.names import search_file, unused_name
from bench.board.reference_tables import reference_tables
from bench.board.repeat import seed_words
from bench.compare.costs import row_budget
from bench.compare.formatting import metric_words, variant_words
from bench.compare.statistics.table import LOWER_IS_BETTER, Cell, Row, Table, configuration
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
    kept = tuple(
        sorted(
            (run for run in runs if run.record.status == "finished"),
            key=lambda run: run.record.run_id,
        )
    )
    if not any(run.record.scores for run in kept):
        raise BenchError(
            "none of these runs is finished and has a score",
            "bench run ... --suite sts, then bench publish",
        )
    records = {run.record.run_id: run.record for run in kept}
    judged = judged_tables(
        [Run(separate_record(run), run.folder) for run in kept],
        baseline=baseline,
        statistics=statistics,
        report=report,
    )
    tables = board_tables(judged, records)
    kept, replaced = _in_tables(kept, tables)
    made = Board(
        version=version,
        date=max(run.record.provenance.created for run in dating_runs(kept))[:10],
        title=title,
        note=note or None,
        answer=answer(tables),
        runs=kept,
        left_out=(*left_out, *replaced),
        tables=tables,
        references=reference_tables(),
        methods=tuple(sorted({run.record.method for run in kept})),
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
    said = Fact(
        topic="Plan",
        text="What was to be found out, and how, is written in plan.md, which lay beside the versions before this one was made. "
        f"Its sha256 is {hashlib.sha256(plan).hexdigest()}.",
    )
    return replace(board, plan=plan, made=(said, *board.made))


def with_searches(board: Board, searches: Sequence[Search], missing: Sequence[str]) -> Board:
    """The board with the searches that found values of its runs; ``missing``: names of those that were not found."""
    told = [Fact(topic="Searches", text=_searched(search)) for search in searches]
    if missing:
        text = f"The trials of {', '.join(missing)}, which found recipe values of runs here, are not published."
        told.append(Fact(topic="Searches", text=text))
    return replace(board, searches=tuple(searches), made=(*board.made, *told))


def _searched(search: Search) -> str:
    return f"{search.name}: {', '.join(search.trials)}; {search.study.words}. Every trial stands in {search_file(search.name, 'json')}."


# --- how a version was made, in sentences: what its numbers are of, what was done about failures, how to repeat and to check them ---


def yours(tables: Sequence[BoardTable]) -> tuple[Fact, ...]:
    """How a reader sets a run of their own among the rows of the first table: run it, look at it there, hand it in."""
    first = next(
        (table.table for table in tables if table.checked), tables[0].table if tables else None
    )
    if first is None:
        return ()
    seeds = sorted({seed for row in first.rows for seed in row.seeds if seed is not None})
    backbone, suite = (
        _plain(public_name(first.backbone or ""), "BACKBONE"),
        _plain(first.suite, "SUITE"),
    )
    command = f"bench run --method NAME --backbone {backbone} --suite {suite}"
    return (
        Fact(
            topic=YOURS,
            text="Run it as these rows were. NAME is one of bench methods, or your own with --plugin FILE; the command that a number opens "
            "has the corpus and the budget of its row.",
            command=command + (f" --seeds {seed_words(seeds)}" if seeds else ""),
        ),
        Fact(
            topic=YOURS,
            text="Write it to leaderboards/submissions; a pull request with that folder submits it.",
            command='bench submit RUN --by "your name"',
        ),
        Fact(
            topic=YOURS,
            text="See it among these rows first: leaderboards/preview/index.html. vN is the version of this board.",
            command="bench publish --preview --runs leaderboards/vN/runs --submissions leaderboards/submissions",
        ),
    )


def _plain(name: str, instead: str) -> str:
    """A name out of a record that may stand in a command; a record may hold anything."""
    return name if re.fullmatch(r"[\w.@/-]+", name, re.ASCII) else instead


# What is said of every board alike
NEVER_TOGETHER = "Numbers of another protocol, text form, setting or backbone stand in another table, times and memory of other hardware or versions in no column with these."
DIFFERENT_ROWS = "Rows of one table whose data, libraries or code differ have a footnote."
EMPTY = (
    "A cell that was not scored stays empty, and so does the average of its row. A failed, interrupted, damaged or replaced run has no row; "
    "such runs are listed below."
)
REPEAT = (
    "Every number opens to the one command that makes its row again, with its seeds, and says what bench cannot fetch. "
    "On another kind of processor a clustering may differ in the second decimal: k-means works in float32, and small differences grow."
)


MANY = 3  # different values up to which a sentence lists them


def facts(board: Board) -> tuple[Fact, ...]:
    """How a board was made: values out of its records, and what is the same for every board. A fact without text is left out.

    What records alone say is of the board's own runs, where it has any.
    """
    runs, tables = board.runs, board.tables
    records = [run.record for run in dating_runs(runs)]
    own = [table for table in tables if table.checked] or list(tables)
    told = [
        Fact(topic="Protocols", text=_protocols(tables)),
        Fact(topic="Selection", text=_selection(records)),
        Fact(topic="Seeds", text=_seeds(records)),
        Fact(topic="Training", text=_training(own, records)),
        Fact(topic="Intervals and tests", text=_statistics(own)),
        Fact(topic="Missing and failed", text=EMPTY),
        Fact(topic="Hardware", text=_hardware(records)),
        Fact(topic="Not comparable", text=f"{NEVER_TOGETHER} {DIFFERENT_ROWS}"),
        Fact(
            topic="What papers printed",
            text="Stands in its own section as it was printed, and is never ranked among runs. Beside a "
            "run stands only a number of the same method, backbone, setting and protocol.",
        ),
        Fact(topic="Submitted", text=_sent(runs)),
        Fact(topic="Repeat", text=REPEAT),
        Fact(
            topic="Check",
            text="Recomputes every score from the stored predictions.",
            command=f"bench verify leaderboards/{board.version}",
        ),
        *yours(tables),
    ]
    return tuple(fact for fact in told if fact.text)


def _protocols(tables: Sequence[BoardTable]) -> str:
    """ "sts: senteval-all/1, Spearman's rank correlation × 100, raw, tokenised; ..." """
    texts: dict[tuple[str, str, str], set[str]] = {}
    for table in (board_table.table for board_table in tables):
        texts.setdefault((table.suite, table.protocol, table.metric), set()).add(table.text or "")
    return "; ".join(
        f"{suite}: {', '.join((protocol, metric_words(metric), *sorted(filter(None, forms))))}"
        for (suite, protocol, metric), forms in texts.items()
    )


def _selection(records: Sequence[RunRecord]) -> str:
    """ "best on STS-B dev: 20 runs; ...", the most frequent first; "" where nothing was trained."""
    rules = Counter(rule for record in records if (rule := checkpoint_rule(record)) is not None)
    ordered = sorted(rules.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{rule}: {count:,} run{'s' * (count != 1)}" for rule, count in ordered)


def _seeds(records: Sequence[RunRecord]) -> str:
    return seed_words(sorted({record.seed for record in records if record.seed is not None}))


def _training(tables: Sequence[BoardTable], records: Sequence[RunRecord]) -> str:
    by_id = {record.run_id: record for record in records}
    rows = {
        row.runs: row
        for table in tables
        for row in table.table.rows
        if by_id.keys() >= set(row.runs)
    }
    seen: list[int] = []
    corpora: set[str] = set()
    for row in rows.values():
        budget = row_budget([by_id[run] for run in row.runs])
        if budget is not None and budget.sentences is not None:
            seen.append(budget.sentences)
            if budget.corpus:
                corpora.add(budget.corpus)
    if not seen:
        return ""
    least, most = min(seen), max(seen)
    rows_seen = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"{rows_seen} rows a run; {_few(sorted(corpora), 'training texts')}"


def _statistics(tables: Sequence[BoardTable]) -> str:
    tested = next((table.table.tested for table in tables if table.table.tested), None)
    covers = {
        cell.spread.covers
        for table in tables
        for row in table.table.rows
        for cell in row.cells
        if cell is not None and cell.spread
    }
    if tested is None:
        return (
            "± is a 95 % interval over seeds; differences were not tested."
            if covers
            else "Differences were not tested."
        )
    return (
        "± is a 95 % interval of a row's own mean; pairs that share a sentence count together, and the spread over seeds is borrowed across "
        "rows. Each table is one family of tests on the column that ranks (Bonferroni-Holm, alpha "
        f"{tested.alpha:g}): verdicts against the baseline, which was fixed before the scores, and the rows that may be the best are right together in "
        "95 of 100 such tables. Single tasks are not tested."
    )


def _hardware(records: Sequence[RunRecord]) -> str:
    """ "cpu; bench 0.1.0; torch 2.13.0" """
    devices, versions = (
        sorted({getattr(made_in(record), what) for record in records})
        for what in ("device", "bench_version")
    )
    torch = sorted(
        {str(record.provenance.packages.get("torch") or "") for record in records} - {""}
    )
    parts = [_few(devices, "kinds of hardware"), f"bench {_few(versions, 'versions')}"]
    return "; ".join([*parts, *([f"torch {_few(torch, 'versions')}"] if torch else [])])


def _sent(runs: Sequence[PublishedRun]) -> str:
    """Whose word the submitted runs are."""
    sent = [run for run in runs if run.submitted_by is not None]
    if not sent:
        return ""
    senders = sorted({str(run.submitted_by) for run in sent})
    return (
        f"{len(sent):,} run{' was' if len(sent) == 1 else 's were'} submitted by {_few(senders, 'people')}. Recipe, training, date, "
        "hardware and cost of a submitted run are what its record says; the facts above are not of such runs."
    )


def _few(values: Sequence[str], what: str) -> str:
    return ", ".join(values) if len(values) <= MANY else f"{len(values)} {what}"


# --- the tables of a board, in the order in which a reader wants them, each with its address and what its columns are of ---

SUITES = ("sts", "cxc", "transfer", "fewshot", "clustering", "geometry", "mteb")
SETTINGS = ("unsupervised", "supervised", "none", None)
BESIDE = {"sts": (("cxc", "cxc-promcse/1"),)}
"""Suites of one column that are shown beside another's average, as the papers set domain shift beside STS."""


def board_tables(
    judged: Sequence[Judged], records: Mapping[str, RunRecord]
) -> tuple[BoardTable, ...]:
    """Blocks of one setting and backbone, the largest first within a setting; in a block the suites in the papers' order. The built-in
    sample comes after all other suites."""
    rows: dict[tuple[str | None, str | None], int] = {}
    for judged_table in judged:
        place = (judged_table.table.setting, judged_table.table.backbone)
        rows[place] = max(
            rows.get(place, 0), len(judged_table.table.rows) if _leads(judged_table) else 0
        )
    made: list[BoardTable] = []
    for judged_table in sorted(judged, key=lambda one: _place(one, rows)):
        made.append(_board_table(judged_table, records, {table.anchor for table in made}))
    return tuple(replace(table, beside=_beside(table, made)) for table in made)


def _leads(judged_table: Judged) -> bool:
    """Whether its size may set its setting and backbone before others."""
    return judged_table.checked and judged_table.table.suite != SAMPLE


def _place(
    judged_table: Judged, rows: Mapping[tuple[str | None, str | None], int]
) -> tuple[object, ...]:
    table = judged_table.table
    suite = SUITES.index(table.suite) if table.suite in SUITES else len(SUITES)
    return (
        not judged_table.checked,
        table.suite == SAMPLE,
        bool(judged_table.chosen_on),
        SETTINGS.index(table.setting),
        -rows[table.setting, table.backbone],
        table.backbone or "",
        suite,
        table.suite,
        table.protocol,
        table.text != "tokenised",
        table.text or "",
        judged_table.chosen_on,
    )


def _board_table(
    judged_table: Judged, records: Mapping[str, RunRecord], taken: set[str]
) -> BoardTable:
    table, cost_of, elsewhere = comparable_costs(judged_table.table, records)
    address = [
        "untrained" if table.setting == "none" else table.setting,
        table.backbone,
        table.suite,
        table.protocol,
        table.text,
    ]
    said = checkpoint_words(table, records)
    if judged_table.chosen_on:
        address.append(f"on {judged_table.chosen_on}")
        said += " This is no development set: these scores stand in a table of their own."
    if not judged_table.checked:
        address.append("submitted")
        said += " Sent in by others, and not checked here: these rows stand in a table of their own, and nothing is ranked."
    return BoardTable(
        anchor=unused_name(slug(*address) or "table", taken),
        table=table,
        selection=said,
        costs_comparable=not elsewhere,
        cost_note=_cost_note(cost_of, elsewhere),
        cost_of=cost_of,
        checked=judged_table.checked,
    )


def _beside(board_table: BoardTable, every: Sequence[BoardTable]) -> tuple[Beside, ...]:
    own, columns = board_table.table, []
    for suite, protocol in BESIDE.get(own.suite, ()):
        wanted = (suite, protocol, own.setting, own.backbone, own.text, board_table.checked)
        for other in every:
            table = other.table
            if (
                table.suite,
                table.protocol,
                table.setting,
                table.backbone,
                table.text,
                other.checked,
            ) != wanted or len(table.columns) > 1:
                continue
            cells = tuple(_cell_of(row, table) for row in own.rows)
            if any(cells):
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
    """Where a run was made, as far as it was recorded."""
    device = record.cost.device or record.provenance.platform.get("device")
    return CostOf(
        device=str(device or UNKNOWN), bench_version=record.provenance.bench_version or UNKNOWN
    )


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


# --- one row per method over all suites: its rank in each, and how far each task lies from the baseline. No total: suites have no common scale ---


MOST_ROWS = 100
"""Rows of an overview; a page of a thousand runs has the others in its tables."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One task of a row: how far it lies from the baseline's."""

    task: str
    difference: float  # points


@dataclass(frozen=True, kw_only=True)
class SuiteRow:
    """One row in one suite."""

    row: Row
    steps: tuple[
        Step, ...
    ]  # the tasks that both have, in the suite's order; empty for the baseline, and where nothing was compared


@dataclass(frozen=True, kw_only=True)
class Overview:
    """The suites of one setting and backbone, side by side. ``standings[i][j]`` is row i in suite j, None where it was not scored."""

    setting: str | None
    backbone: str | None
    suites: tuple[BoardTable, ...]
    names: tuple[tuple[str, str], ...]  # method, and what stands beside it
    standings: tuple[tuple[SuiteRow | None, ...], ...]
    left_out: int  # rows beyond MOST_ROWS

    @property
    def baselines(self) -> tuple[str, ...]:
        """What the tasks are compared with: mostly one method for all suites."""
        return tuple(
            dict.fromkeys(suite.table.baseline for suite in self.suites if suite.table.baseline)
        )


def overviews(tables: Sequence[BoardTable]) -> tuple[Overview, ...]:
    """Of each setting and backbone that has at least two suites whose rows can be ranked; what nobody here checked is not among them."""
    places: dict[tuple[str | None, str | None], dict[str, BoardTable]] = {}
    # of several protocols of a suite, the one beside another's columns
    shown = {other.anchor for board_table in tables for other in board_table.beside}
    for board_table in tables:
        table = board_table.table
        if (
            board_table.checked
            and table.head is not None
            and table.metric not in LOWER_IS_BETTER
            and len(table.rows) > 1
        ):
            suites = places.setdefault((table.setting, table.backbone), {})
            if table.suite not in suites or (
                board_table.anchor in shown and suites[table.suite].anchor not in shown
            ):
                suites[table.suite] = board_table
    return tuple(
        _overview(setting, backbone, tuple(suites.values()))
        for (setting, backbone), suites in places.items()
        if setting is not None and backbone is not None and len(suites) > 1
    )


def _overview(
    setting: str | None, backbone: str | None, suites: tuple[BoardTable, ...]
) -> Overview:
    """Rows are those of the same runs; in the order of the first suite that has them."""
    rows: list[tuple[tuple[str, str], dict[int, SuiteRow]]] = []
    by_run: dict[str, int] = {}
    for j, table in enumerate(suites):
        base = next((row for row in table.table.rows if row.is_baseline), None)
        for row in table.table.rows:
            i = next((by_run[run] for run in row.runs if run in by_run), None)
            if i is None or j in rows[i][1]:
                i = len(rows)
                rows.append(((row.label, variant_words(row, table.table)), {}))
            by_run.update(dict.fromkeys(row.runs, i))
            rows[i][1][j] = SuiteRow(row=row, steps=_steps(row, base, table.table))
    shown = rows[:MOST_ROWS]
    return Overview(
        setting=setting,
        backbone=backbone,
        suites=suites,
        names=tuple(name for name, _ in shown),
        left_out=len(rows) - len(shown),
        standings=tuple(
            tuple(standings.get(j) for j in range(len(suites))) for _, standings in shown
        ),
    )


def _steps(row: Row, base: Row | None, table: Table) -> tuple[Step, ...]:
    if base is None or row is base:
        return ()
    alone = len(table.columns) == 1
    return tuple(
        Step(
            task=task,
            difference=cell.mean - other.mean,
        )
        for task, cell, other in zip(table.columns, row.cells, base.cells, strict=True)
        if cell is not None and other is not None and (alone or task != table.head)
    )
