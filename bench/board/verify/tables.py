"""Judge the tables of a version again, by the function that published them, and compare what they
say; compare the runs that they list with those that are there."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, DataDamaged, one_line
from bench.base.findings import AGREES, DIFFERS, UNCHECKED, Finding
from bench.base.foreign_text import escape_markdown
from bench.base.markup import html_text
from bench.base.reading import TABLES_BYTES, read_plain_file
from bench.base.text import list_names
from bench.board.board import Board, build_board
from bench.board.publish.version_files import SCHEMA, board_json, table_files
from bench.board.publish.versions import RUNS, Judged, Version, read_version
from bench.board.verify.compared import close, first_difference
from bench.board.verify.findings import NotChecked, RunReport, make_finding
from bench.board.verify.scores import NO_SUITE
from bench.board.verify.versions import TABLES
from bench.compare.rule import EARLIER, RULE
from bench.compare.words.finding import find
from bench.records.packed import has_predictions
from bench.records.record import RunRecord, Score
from bench.records.run import Run
from bench.records.store import RunsFolder
from bench.score.suites import find_metric, suite_names

WORDS = (
    "name",
    "baseline_name",
    "selection",
    "cost_note",
    "notes",
    "trained_with",
    "untested",
    "printed",
    "command",
    "record",
    "page",
)
"""Keys of tables.json with words, addresses and what papers print: a later bench may write others.
"""
MATRIX_WORDS = ("name", "place", "baseline", "columns", "claimed", "of", "page")
"""The same of its matrix."""
WORDY_COLUMNS = ("row", "notes", "trained_with", "values", "untested")
"""The same of the columns of a table as CSV, besides those that begin with "paper"."""
SCORES = "its scores"


def check_tables(folder: Path) -> RunReport:
    """Return what a version's ``tables.json`` lists and says against its runs. Damaged files are
    findings, never exceptions."""
    try:
        version = read_version(folder)
    except DataDamaged as error:
        return RunReport(TABLES, [Finding("tables", TABLES, DIFFERS, error.message)], "published")
    findings: list[Finding] = []
    try:
        runs = _read_listed(version, findings)
        findings += _check_seeds(version, runs)
        findings += _check_judged(version, runs)
    except Exception as error:  # a file may be wrong in ways that nobody thought of
        why = error.message if isinstance(error, BenchError) else one_line(error)
        findings.append(Finding("tables", TABLES, DIFFERS, f"it cannot be judged again: {why}"))
    return RunReport(TABLES, findings, "published")


def _read_listed(version: Version, findings: list[Finding]) -> dict[str, Run]:
    """Return the listed runs that can be read. ``findings`` get one on each run that is listed or
    there."""
    store = RunsFolder(version.folder / RUNS)
    listed = {run.run_id for run in version.runs}
    for table in version.tables:
        for row in table["table"]["rows"]:
            listed.update(row["runs"])
    there = {path.name for path in store.path.glob("[!.]*")}
    runs = {}
    for run_id in sorted(listed | there):
        why = ""
        if run_id not in there:
            why = f"{TABLES} lists it, and it is not in {RUNS}/"
        elif run_id not in listed:
            why = f"it is in {RUNS}/, and {TABLES} does not list it"
        findings.append(Finding("runs", run_id, DIFFERS if why else AGREES, why))
        if why:
            continue
        with contextlib.suppress(BenchError):  # the report on the run says it
            runs[run_id] = Run(store.read(run_id), store.folder(run_id))
    return runs


def _check_seeds(version: Version, runs: Mapping[str, Run]) -> Iterator[Finding]:
    """Yield a finding on each row of several seeds: do two of them have the same predictions?"""
    rows: dict[tuple[str, ...], None] = {}
    for table in version.tables:
        for row in table["table"]["rows"]:
            rows[tuple(row["runs"])] = None
    for ids in rows:
        records = [runs[run_id].record for run_id in ids if run_id in runs]
        if len(records) > 1:
            yield make_finding("seeds", records[0].run_id, _equal_seeds, records)


def _equal_seeds(records: list[RunRecord]) -> str:
    for one, other in combinations(records, 2):
        scores = {score.key: score for score in other.scores}
        same = [
            score.task
            for score in one.scores
            if score.key in scores and _same_predictions(score, scores[score.key])
        ]
        if same:
            return f"{other.run_id} has the same predictions on {list_names(same, 3)}"
    return ""


def _same_predictions(one: Score, other: Score) -> bool:
    """Say if two scores have one hash of their predictions, complete or reduced: which of the two
    is stored was compared with it. Classes of a few items may be the same by chance."""
    if find_metric(one.suite, one.metric).answers:
        return False
    whole, reduced = one.predictions_sha256, one.reduced_sha256
    return (whole is not None and whole == other.predictions_sha256) or (
        reduced is not None and reduced == other.reduced_sha256
    )


def _check_judged(version: Version, runs: Mapping[str, Run]) -> Iterator[Finding]:
    judged = version.judged
    if judged is None and version.schema == SCHEMA:
        yield Finding("tables", TABLES, DIFFERS, "it does not say how it was judged")
        return
    rule = 1 if judged is None else judged.rule
    if judged is None or rule != RULE:
        yield Finding("tables", TABLES, UNCHECKED, _other_rule(rule))
        return
    try:
        board = _judge_again(version, judged, runs)
    except NotChecked as reason:
        yield Finding("tables", TABLES, UNCHECKED, str(reason))
        return
    again = json.loads(board_json(board))
    written = json.loads(read_plain_file(version.folder / TABLES, TABLES_BYTES))
    for key in ("answer", "date", "runs"):
        arguments = written.get(key), again[key], key, "its runs", WORDS
        yield make_finding("tables", key, first_difference, *arguments)
    yield from _compare_tables(written, again)
    shown = written.get("matrix"), again["matrix"], "matrix", SCORES, MATRIX_WORDS
    yield make_finding("tables", "matrix", first_difference, *shown)
    for name, text in table_files(board).items():
        yield make_finding("tables", f"tables/{name}", _csv_difference, version.folder, name, text)
    yield make_finding("tables", "README.md", _readme_difference, version.folder, board)
    yield make_finding("tables", "index.html", _page_difference, version.folder, board)
    yield make_finding("tables", "words", _other_words, written, again)


def _other_rule(rule: int) -> str:
    """Say who judges by another rule."""
    who = f"commit {EARLIER[rule]}" if rule in EARLIER else "another version"
    return (
        f"it was judged by rule {rule}, and this bench has rule {RULE}: its scores were checked, "
        f"its verdicts not; {who} of bench judges it"
    )


def _judge_again(version: Version, judged: Judged, runs: Mapping[str, Run]) -> Board:
    """Make the board of the version's runs as it was asked for. Raises NotChecked, BenchError."""
    missing = [run.run_id for run in version.runs if run.run_id not in runs]
    if missing:
        raise NotChecked(f"a run that it lists cannot be read: {missing[0]}")
    for run in runs.values():
        if not has_predictions(run.folder):
            raise NotChecked("its predictions are not here")
        for score in run.scores:
            if score.suite not in suite_names():
                raise NotChecked(NO_SUITE.format(score.suite))
    senders = {run_id: name for run_id, name in version.senders.items() if name is not None}
    return build_board(
        list(runs.values()),
        version=version.name,
        title=version.title,
        note=version.note,
        senders=senders,
        baseline=judged.baseline,
        main_budget=judged.main_budget,
    )


def _compare_tables(written: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding on each table that is written or that the runs give."""
    before = {shown["anchor"]: shown["table"] for shown in written["tables"]}
    now = {shown["anchor"]: shown["table"] for shown in again["tables"]}
    for anchor in [*now, *(name for name in before if name not in now)]:
        yield make_finding("tables", anchor, _table_difference, before.get(anchor), now.get(anchor))
    if [shown["anchor"] for shown in written["tables"]] != list(now):
        yield Finding("tables", TABLES, DIFFERS, "its tables are others, or in another order")


def _table_difference(written: dict[str, Any] | None, again: dict[str, Any] | None) -> str:
    if written is None:
        return "the runs give this table, and it is missing"
    if again is None:
        return "the runs do not give this table"
    if len(written["rows"]) != len(again["rows"]):
        return f"{len(written['rows'])} rows are recorded, its runs give {len(again['rows'])}"
    for before, now in zip(written["rows"], again["rows"], strict=True):
        difference = first_difference(_numbers(before), _numbers(now), now["name"], SCORES, WORDS)
        if difference:
            return difference
    return first_difference(written, again, "table", SCORES, (*WORDS, "rows"))


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the words on where its values come from; its cells have values, too."""
    return {key: value for key, value in row.items() if key != "values"}


def _csv_difference(folder: Path, name: str, again: str) -> str:
    written = _read_text(folder / "tables" / name)
    before, now = (list(csv.DictReader(io.StringIO(text))) for text in (written, again))
    if len(before) != len(now):
        return f"{len(before)} lines are there, {SCORES} give {len(now)}"
    for line, (old, new) in enumerate(zip(before, now, strict=True), 2):
        for column, value in new.items():
            if column in WORDY_COLUMNS or column.startswith("paper"):
                continue
            if not _same_text(old.get(column), value):
                return f"line {line}, {column}: {old.get(column)} is there, {SCORES} give {value}"
    return ""


def _same_text(written: str | None, again: str) -> bool:
    """Compare two texts, as numbers if they are some."""
    if written == again:
        return True
    try:
        return close(float(written or ""), float(again))
    except ValueError:
        return False


def _readme_difference(folder: Path, board: Board) -> str:
    if f"**{escape_markdown(board.answer, limit=None)}**" in _read_text(folder / "README.md"):
        return ""
    return f"its finding is not what its tables give: {board.answer}"


def _page_difference(folder: Path, board: Board) -> str:
    """Compare the page's heading and the sentences below it with the finding."""
    page = _read_text(folder / "index.html")
    finding = find([shown.table for shown in board.tables])
    headings = re.findall(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    if headings == [html_text(finding.claim)] and html_text(finding.details) in page:
        return ""
    return f"its heading is not what its tables give: {board.answer}"


def _read_text(path: Path) -> str:
    """Raises DataDamaged for what is no plain file of text."""
    try:
        return read_plain_file(path, TABLES_BYTES).decode("utf-8")
    except OSError as error:
        raise DataDamaged(str(error.strerror)) from None
    except ValueError:
        raise DataDamaged("not a text") from None


def _other_words(written: Mapping[str, Any], again: Mapping[str, Any]) -> str:
    """Raise NotChecked if this bench writes other names, notes or printed numbers."""
    for key in ("tables", "runs", "made"):
        difference = first_difference(written.get(key), again[key], key, "this bench's words")
        if difference:
            raise NotChecked(difference)
    return ""
