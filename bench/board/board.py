"""What a version of the leaderboards holds: pure data, made from runs and printed results, before any page is drawn.

Which runs have a row, in which order the tables are, which times and memory may share a column, what changed since the version
before, where each page is, and the command that repeats a row. Every page, figure and data file of a version is a function of one
``Board``. Nothing here depends on the clock, on the network or on the order in which runs were found.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.base.errors import BenchError
from bench.base.same_code import code_of
from bench.base.text import list_names, plural, seed_ranges, slug
from bench.compare.answer import table_answer
from bench.compare.formatting import metric_words, setting_words
from bench.compare.grouping import UNNAMED
from bench.compare.printed import Beside, Reproduced, changed_by_hand, judge_rows, printed_for
from bench.compare.senders import with_sender
from bench.compare.statistics.table import INCONCLUSIVE, Cell, Row, Table
from bench.compare.statistics.terms import configuration, corpus_words
from bench.compare.tables import TableOptions, compare_runs
from bench.records.arrays import NAME
from bench.records.record import AVERAGE, RunRecord, ScoreKey
from bench.records.searches import Search
from bench.records.store import Run, data_key
from bench.references import ReferenceResult, results, rows, tables

PREVIEW = "preview"
"""Stands in for a version's name before anything is published."""
PREVIEW_NOTE = "A preview, not published."
PAGES = 100
"""Runs of a version up to which each has a page. In a larger one the first run of each row has one, with the scores of every seed."""
MOST_FINISHED = 5
"""Backbones that a table shows for scale."""
ADJACENT = {"sts": ("cxc", "cxc-promcse/1")}
"""Suite -> (suite, protocol) of one column that stands beside its average, as the papers set domain shift beside STS."""


@dataclass(frozen=True, kw_only=True)
class MethodDescription:
    """What pages show about a method: its class (with summary and paper), and the files next to it."""

    cls: Any  # of bench.method.Method
    about: str  # docstring of the class, or else of its module
    variants: Mapping[str, Mapping[str, Any]]
    file: Any  # of bench.run.recipes.RecipeFile: recipes, disagreements


@dataclass(frozen=True, kw_only=True)
class BoardTable:
    """One comparable set of numbers: rows are methods, columns tasks. ``table`` is judged against its baseline, where it has one."""

    anchor: str  # "unsupervised-builtin-sts-senteval-all-1-tokenised"; the same in all versions
    table: Table
    selection: str  # how checkpoints were chosen: "best on STS-B dev, scored every 125 steps"
    cost_note: str = ""  # what times and memory are of; "" where there are none


@dataclass(frozen=True, kw_only=True)
class Board:
    """All of one version."""

    version: str  # "v1"
    date: str  # of the newest own run: "2026-11-21"
    title: str
    note: str | None  # what the publisher has to say, such as that it is not the papers' setting
    answer: str  # one computed sentence
    runs: tuple[Run, ...]  # by run id
    senders: Mapping[str, str] = field(default_factory=dict)  # run id -> who submitted it
    left_out: tuple[str, ...]  # failed, interrupted, damaged, replaced by newer runs: one line each
    tables: tuple[BoardTable, ...]
    changes: Changes | None = None
    made: Mapping[str, str] = field(default_factory=dict)  # topic -> how the version was made
    plan: bytes | None = None  # what was to be found out and how, in Markdown
    searches: tuple[Search, ...] = ()  # that found recipe values of own runs
    described: Mapping[str, MethodDescription] = field(default_factory=dict)  # by method
    predictions: str = NAME  # the file of all predictions: below the version's folder, or a URL
    one_file: bool = False  # its page holds everything: links lead to places on it

    @cached_property
    def records(self) -> Mapping[str, RunRecord]:
        """By run id."""
        return {run.record.run_id: run.record for run in self.runs}

    @property
    def methods(self) -> list[str]:
        return sorted({run.record.method for run in self.runs})

    @property
    def alone(self) -> bool:
        """A preview where nothing is published yet, so that there is no page of all versions to go to."""
        return self.version == PREVIEW and self.changes is None

    @cached_property
    def rows(self) -> list[tuple[BoardTable, Row]]:
        """The rows of all tables, in their order."""
        return [(table, row) for table in self.tables for row in table.table.rows]

    @cached_property
    def page_of(self) -> Mapping[str, str]:
        """Run id -> the run whose page has its scores: its own, or that of the first run of its row."""
        pages = {run_id: run_id for run_id in self.records}
        for submitted in (False, True):  # how many others sent does not change where own runs are
            mine = [run_id for run_id in pages if (run_id in self.senders) == submitted]
            if len(mine) <= PAGES:
                continue
            rows = [
                row.runs
                for shown, row in reversed(self.rows)  # the first row's stays
                if bool(shown.table.sender) == submitted
            ]
            pages |= {run: runs[0] for runs in rows for run in runs}
            pages |= {runs[0]: runs[0] for runs in rows}
        return pages

    @cached_property
    def paged(self) -> list[Run]:
        """The runs that have a page."""
        return [run for run in self.runs if self.page_of[run.record.run_id] == run.record.run_id]

    def rows_of(self, run_id: str) -> list[tuple[BoardTable, Row]]:
        return [(table, row) for table, row in self.rows if run_id in row.runs]

    def finished(self, table: Table) -> list[tuple[Table, Row]]:
        """The best untrained row of each other backbone that is scored as the table is, the best first: for scale, not ranked. It is
        what a reader needs to judge the numbers of a small backbone.
        """
        if table.setting == "none" or table.sender:
            return []
        form = ("none", *_form(table))
        best: dict[str, tuple[Table, Row]] = {}
        for other, row in self.rows:
            if (other.table.setting, *_form(other.table)) == form and not other.table.sender:
                best.setdefault(row.backbone, (other.table, row))  # the best of a table come first
        best.pop(table.backbone or "", None)
        return sorted(
            best.values(),
            key=lambda pair: cell.mean if (cell := pair[1].cells[-1]) is not None else 0.0,
            reverse=True,
        )[:MOST_FINISHED]

    @cached_property
    def _single(self) -> Mapping[tuple[object, ...], Cell | None]:
        """The cells of tables of one column."""
        return {
            (*_form(shown.table), row.runs): row.cells[0]
            for shown, row in self.rows
            if len(shown.table.columns) == 1
        }

    def cell_of_same_runs(self, row: Row, other: Table) -> Cell | None:
        """What the runs of a row have in a table of one column; None where it has other runs, even other seeds."""
        return self._single.get((*_form(other), row.runs))

    def adjacent_tables(self, table: Table) -> list[BoardTable]:
        """The tables of one column that are shown beside a table's average: CxC-STS beside the seven STS tasks. Never part of it."""
        form = (ADJACENT.get(table.suite), table.setting, table.backbone, table.text)
        return [
            shown
            for shown in self.tables
            if ((other := shown.table).suite, other.protocol) == form[0]
            and (other.setting, other.backbone, other.text) == form[1:]
            and any(self.cell_of_same_runs(row, other) for row in table.rows)
        ]

    @cached_property
    def reproduced(self) -> Mapping[ReferenceResult, Reproduced]:
        """Printed number -> what became of it here, judged as ``bench reproduce`` does. Submitted runs, and rows with recipe values
        that a command set, are not among them."""
        records = {run: self.records[run] for run in self.records if run not in self.senders}
        runs_of = _runs_of(self, records)
        verdicts: dict[ReferenceResult, Reproduced] = {}
        for paper, table in tables():
            pairs = []
            for row in rows(results(paper=paper, table=table)):
                ours = dict.fromkeys(run for cell in row.cells for run in runs_of.get(cell, ()))
                pairs += [Beside(row.cells, [records[run] for run in ours])] if ours else []
            for cells in judge_rows(pairs, "tokenised"):
                verdicts |= {cell.printed: cell for cell in cells if cell.mean is not None}
        return verdicts


def _form(table: Table) -> tuple[object, ...]:
    """What tables must share for their numbers to be in one column."""
    return table.suite, table.protocol, table.text, table.columns


def _runs_of(
    board: Board, records: Mapping[str, RunRecord]
) -> dict[ReferenceResult, tuple[str, ...]]:
    """Printed number -> runs of the row that it stands for; of several rows the one with the most seeds, the first in case of a tie."""
    runs_of: dict[ReferenceResult, tuple[str, ...]] = {}
    for shown, row in board.rows:
        if (record := records.get(row.runs[0])) is None:
            continue
        for task in shown.table.columns:
            for printed in printed_for(row, task, shown.table, record):
                more = len(row.runs) > len(runs_of.get(printed, ()))
                if more and not changed_by_hand(record, printed):
                    runs_of[printed] = row.runs
    return runs_of


# --- addresses on published pages, which stay the same from version to version ---


def unused_name(name: str, taken: Container[str]) -> str:
    """``name``, with a number if it is taken."""
    return next(
        one
        for one in chain([name], (f"{name}-{number}" for number in count(2)))
        if one not in taken
    )


# --- where things lie below a version's folder. These addresses stay the same from version to version ---

_PLAIN = re.compile(
    r"[a-z0-9][a-z0-9-]{0,99}"
)  # what a method's name has to be; a record may hold anything


def run_file(run_id: str, name: str) -> str:
    """A file of a run: "index.html", "run.json". A record's run id is safe as a folder's name: the record's schema says so."""
    return f"runs/{run_id}/{name}"


def search_file(search: str) -> str:
    """The trials of a search. Any name becomes a valid file name, different for each."""
    return f"searches/{method_file(search)}.json"


def method_page(method: str) -> str:
    """The page of a method. An invalid name becomes a valid file name, different for each."""
    return f"methods/{method_file(method)}.html"


def method_file(method: str) -> str:
    """ "promcse"; "../Evil" -> "evil-1f2e3d4c" """
    if _PLAIN.fullmatch(method):
        return method
    words = slug(method, longest=60) or "method"
    return f"{words}-{hashlib.sha256(method.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def link(path: str, up: int = 0) -> str:
    """A relative link to a path below the version's folder, from a page that lies ``up`` folders deep."""
    return "../" * up + quote(path, safe="/+@=")


# --- what changed since the version before: for each row and suite its average then and now, and what its runs differ in ---


NOISE = 1e-6  # points; another library of linear algebra adds in another order
UNSET = "not set"
HASHED = ("code", "data")  # of which a reader is told that they differ, not how


class ChangedRow(NamedTuple):
    """One row of one suite: the suite's average or, if it has none, one of its tasks. ``before``, ``now``: None if it was absent."""

    row: str  # "promcse+eh"
    where: str  # "unsupervised, builtin"
    suite: str  # with the task: "sts Avg."
    before: float | None
    now: float | None
    differs: str  # "seeds: 1-3 before, 1-5 now and code"


@dataclass(frozen=True, kw_only=True)
class Changes:
    """From one version to the next."""

    before: str  # "v1"
    rows: tuple[ChangedRow, ...] = ()


class _Mean(NamedTuple):
    value: float
    verdict: str  # against the baseline; "" where it was not tested
    rows: int  # of its table
    runs: Sequence[str]


def changes_since(
    before: str,
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    records: Mapping[str, RunRecord],
) -> Changes:
    """The rows of the tables ``new`` that are new or have another average or verdict than in ``old``, the tables of version ``before``;
    then those that are gone. Tables as in ``tables.json``; ``records``: of all their runs."""
    was, now = _means(old), _means(new)
    changed = (_changed(key, was.get(key), now.get(key), records) for key in now | was)
    return Changes(before=before, rows=tuple(filter(None, changed)))


def _means(tables: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], _Mean]:
    """(row, where, score, what sets the row apart) -> the average of a suite, or of each task of a suite without one."""
    found: dict[tuple[Any, ...], _Mean] = {}
    for table in tables:
        for row in table["rows"]:
            name = (
                f"{row['method']}+{row['variant']}".rstrip("+"),
                setting_words(row["setting"])
                + "".join(f", {part}" for part in (row["backbone"], table.get("budget")) if part),
            )
            for task in {AVERAGE} & {*table["columns"]} or table["columns"]:
                if cell := row["cells"].get(task):
                    score = ScoreKey(table["suite"], task, table["protocol"], table["text"])
                    against = cell.get("against") or {"verdict": None}
                    found[*name, score, str(row["differs"])] = _Mean(
                        cell["mean"],
                        # v3 has another word
                        (against["verdict"] or "").replace("unknown", INCONCLUSIVE),
                        len(table["rows"]),
                        row["runs"],
                    )
    return {key: found[key] for key in sorted(found, key=str)}


def _changed(
    key: tuple[Any, ...], before: _Mean | None, now: _Mean | None, records: Mapping[str, RunRecord]
) -> ChangedRow | None:
    name, where, score, _ = key
    if before is None or now is None:
        words = ["new" if before is None else "no longer shown"]
    else:
        words = []
        if abs(before.value - now.value) > NOISE:
            old, new = ([records[run] for run in mean.runs] for mean in (before, now))
            words = _differences(old, new, score) or ["libraries or hardware"]
        if before.verdict != now.verdict:
            each = [f"{mean.verdict or 'none'} among {mean.rows} rows" for mean in (before, now)]
            words.append(f"verdict: {each[0]} before, {each[1]} now")
    return (
        ChangedRow(
            row=name,
            where=where,
            suite=f"{score.suite} {score.task}",
            before=before and before.value,
            now=now and now.value,
            differs=list_names(words, 6),
        )
        if words
        else None
    )


def _differences(old: Sequence[RunRecord], new: Sequence[RunRecord], key: ScoreKey) -> list[str]:
    """The seeds, recipe values, code and data in which the records differ."""
    before, now = _facts(old, key), _facts(new, key)
    pairs = {name: (before.get(name, UNSET), now.get(name, UNSET)) for name in now | before}
    return [
        name if name in HASHED else f"{name}: {then} before, {value} now"
        for name, (then, value) in pairs.items()
        if then != value
    ]


def _facts(runs: Sequence[RunRecord], key: ScoreKey) -> dict[str, str]:
    """What runs of a row had, by name: their seeds, the recipe, and hashes of the method's code and of the scored data."""
    return {
        "seeds": seed_ranges(run.seed for run in runs) or "any",
        **{name: value for name, value in configuration(runs[0]).items() if value != "null"},
        "code": str({code_of(run.provenance.plugin.sha256) for run in runs}),
        "data": str(
            sorted(
                {
                    str(run.provenance.data.get(data_key(score.task, key.text, key.suite)))
                    for run in runs
                    for score in run.scores
                    if score.key._replace(task=key.task) == key
                }
            )
        ),
    }


# --- the board of some runs ---


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
    tables = board_tables(
        judged_tables(
            [with_sender(run, senders.get(run.record.run_id)) for run in finished],
            baseline=baseline,
        ),
        {run.record.run_id: run.record for run in finished},
    )
    in_rows = {run for table in tables for row in table.table.rows for run in row.runs}
    shown = tuple(run for run in finished if run.record.run_id in in_rows)
    by_sender = {run: senders[run] for run in sorted(in_rows & senders.keys())}
    dating = [  # a sender may write any day into a record
        run.record for run in shown if run.record.run_id not in senders
    ] or [run.record for run in shown]
    return Board(
        version=version,
        date=max(record.provenance.created for record in dating)[:10],
        title=title,
        note=note or None,
        answer=answer([table.table for table in tables]),
        runs=shown,
        senders=by_sender,
        left_out=(
            *left_out,
            *(
                f"{run.record.run_id}: replaced: its row has newer runs, of the same seed or of newer code"
                for run in finished
                if run not in shown
            ),
        ),
        tables=tables,
        made=facts(
            version, dating, by_sender, [one.table for one in tables if not one.table.sender]
        ),
    )


# --- how a version was made: what its numbers are of, and how to check them ---

TESTED = (
    "± is a 95 % interval of a row's own mean; pairs that share a sentence are counted together, and the spread over seeds is borrowed "
    "across rows, two degrees of freedom at most. Each table by itself is one family of tests on the column that ranks (Bonferroni-Holm, "
    "level 0.05): verdicts against the baseline, which was fixed before the scores, and the rows that may be the best. All of a table is right "
    "in about 94 of 100 such tables, if rows of few seeds spread like the others; of a page with several tables less often. Rows with fewer "
    "than three seeds, submitted rows as candidates for the best, and single tasks are not tested."
)
NOT_COMPARABLE = (
    "Numbers with another protocol, text form, setting or backbone are in another table. Times and memory measured on other "
    "hardware or with another version are not shown next to these. Rows of one table whose data, libraries or code differ have a footnote."
)
MISSING = "A cell that was not scored is empty, and so is the average of its row. Failed, interrupted, damaged and replaced runs have no row."
REPEAT = (
    "Each number comes with the one command that repeats its row, seeds included. On another kind of processor a clustering score may "
    "differ in the second decimal: k-means runs in float32, and small differences grow."
)


def facts(
    version: str, records: Sequence[RunRecord], senders: Mapping[str, str], tables: Sequence[Table]
) -> dict[str, str]:
    """Topic -> how a board was made; unknown topics are left out. ``records``: of the board's own runs, where it has
    any."""
    made = {
        "Protocols": _counted(
            (
                ", ".join(filter(None, (table.protocol, metric_words(table.metric), table.text)))
                for table in tables
            ),
            "table",
        ),
        "Selection": _counted(map(checkpoint_rule, records), "run"),
        "Seeds": seed_ranges(record.seed for record in records),
        "Training": _counted(
            (
                f"{record.training.sentences:,} rows of {corpus_words(record) or 'a text without a sha256'}"
                for record in records
                if record.training and record.training.sentences
            ),
            "run",
        ),
        "Intervals and tests": TESTED
        if any(table.tested for table in tables)
        else "Differences were not tested.",
        "Hardware": _counted(map(made_in, records), "run"),
        "Libraries": _counted(
            (
                f"torch {packages['torch']}"
                for packages in (record.provenance.packages for record in records)
                if packages.get("torch")
            ),
            "run",
        ),
        "Not comparable": NOT_COMPARABLE,
        "Missing and failed": MISSING,
        "Submitted by": list_names(sorted(set(senders.values()))),
        "Repeat": REPEAT,
        "Check": f"bench verify leaderboards/{version} computes every score again from the stored predictions.",
    }
    return {topic: text for topic, text in made.items() if text}


def _counted(values: Iterable[str | None], noun: str) -> str:
    """ "best on STS-B dev: 20 runs; ...", the most frequent first."""
    ordered = sorted(Counter(filter(None, values)).items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(f"{value}: {plural(count, noun)}" for value, count in ordered)


# --- the tables of a board, in the order in which a reader wants them, each with its address and what its columns are of ---

SUITES = ("sts", "cxc", "transfer", "fewshot", "clustering", "geometry", "mteb")
SETTINGS = ("unsupervised", "supervised", "none", None)


def board_tables(
    judged: Sequence[Table], records: Mapping[str, RunRecord]
) -> tuple[BoardTable, ...]:
    """Blocks of one setting and backbone, the largest first within a setting; in a block the suites in the papers' order. The built-in
    sample comes after all other suites. ``judged``: as :func:`judged_tables` makes them."""
    most: dict[tuple[str | None, str | None], int] = {}
    for table in judged:
        if table.sender:
            continue
        block = (table.setting, table.backbone)
        most[block] = max(most.get(block, 0), len(table.rows) * (table.suite != SAMPLE))

    def order(table: Table) -> tuple[object, ...]:
        return (
            table.sender,  # "" first: the publisher's
            table.suite == SAMPLE,
            bool(table.chosen_on or table.budget),
            SETTINGS.index(table.setting),
            -most.get((table.setting, table.backbone), 0),
            table.backbone or "",
            SUITES.index(table.suite) if table.suite in SUITES else len(SUITES),
            table.suite,
            table.protocol,
            table.text != "tokenised",
            table.text or "",
            table.chosen_on,
            table.budget,
        )

    made: dict[str, BoardTable] = {}
    for table in sorted(judged, key=order):
        name = slug(
            "untrained" if table.setting == "none" else table.setting,
            table.backbone,
            table.suite,
            table.protocol,
            table.text,
            table.chosen_on and f"on {table.chosen_on}",
            table.budget,
            table.sender and f"by {table.sender}",
        )
        anchor = unused_name(name or "table", made)
        rules = _counted(
            (checkpoint_rule(records[run]) for row in table.rows for run in row.runs), "run"
        )
        selection = f"Checkpoint: {rules}." if rules else ""
        selection += (
            " This is not a development set, so these scores have a table of their own."
            if table.chosen_on
            else ""
        )
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
    counts = Counter(
        place for where in places.values() if len(where) == 1 for place in where if place
    )
    usual = min(counts, key=lambda place: (-counts[place], place), default=None)
    elsewhere = {runs for runs, where in places.items() if usual is None or where != {usual}}
    note = f"Time and memory: {usual or 'unknown hardware or version'}."
    if names := dict.fromkeys(row.name for row in table.rows if row.runs in elsewhere):
        note += f" Not shown, because they ran elsewhere: {', '.join(names)}."
    return replace(
        table,
        rows=tuple(
            replace(row, cost=replace(row.cost, **dict.fromkeys(measured)))
            if row.cost and row.runs in elsewhere
            else row
            for row in table.rows
        ),
    ), note


def made_in(record: RunRecord) -> str | None:
    """ "cpu: Intel(R) Xeon(R) Processor, 2 cores, bench 0.1.0"; None where that was not recorded. Code that was not released has no
    version: its commit stands for it."""
    made = record.provenance
    device, version = record.cost.device or made.platform.get("device"), made.bench_version
    if version == FROM_SOURCE and made.git.commit:
        version = f"commit {made.git.commit[:12]}"
    return f"{device}, bench {version}" if device and version else None


# --- the tables of a version, judged against the baseline ---


SAMPLE = "check"
"""The built-in suite, a small sample: no result, so that a run with scores of other suites, too, needs no table of it."""


def judged_tables(
    runs: Sequence[Run],
    *,
    baseline: str | None = None,
    extras: bool = True,
) -> tuple[Table, ...]:
    """The tables of these runs as ``bench compare`` makes them.

    ``extras``: with printed values. A table of ``SAMPLE`` is among them where one of its runs has no other table. The rest is as
    :func:`bench.compare.tables.compare_runs` has it.
    """
    tables = compare_runs(runs, TableOptions(baseline=baseline, with_paper=extras, cost=True))
    elsewhere = {
        run for table in tables if table.suite != SAMPLE for row in table.rows for run in row.runs
    }
    return tuple(
        replace(
            table,
            # what a submitted run took is not shown: nobody saw it
            rows=tuple(replace(row, cost=None) if table.sender else row for row in table.rows),
        )
        for table in tables
        if table.suite != SAMPLE or any(not elsewhere.issuperset(row.runs) for row in table.rows)
    )


# --- by what score the checkpoints of a column were chosen ---


def checkpoint_rule(record: RunRecord) -> str | None:
    """How the checkpoint of a run was chosen; None if nothing was trained.

    "best on STS-B dev, scored every 125 steps", "the last step, nothing selected"
    """
    done = record.training
    if done is None:
        return None
    if done.dev_score is None:
        return "the last step, nothing selected"
    every = record.recipe.get("eval_steps")
    often = (
        f", scored every {every.value:,} steps"
        if every is not None and isinstance(every.value, int) and every.value
        else ""
    )
    return f"best on {(done.dev_task or '').strip() or UNNAMED}{often}"


# --- the sentence that a reader came for ---


def answer(tables: Sequence[Table]) -> str:
    """Of the publisher's first table that ranks several rows, else of the first that ranks one."""
    of_one_row = ""
    for table in tables:
        text = "" if table.sender else table_answer(table)
        if text and len(table.rows) > 1:
            return text
        of_one_row = of_one_row or text
    if of_one_row:
        return of_one_row
    if tables and all(table.sender for table in tables):
        return "All of these runs were submitted; the publisher has none here."
    return "No method has a score on every task yet."
