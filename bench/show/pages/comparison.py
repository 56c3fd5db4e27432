"""The page of a comparison: one self-contained HTML file, no script, no network, readable from a phone to paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.board.board import BoardTable
from bench.board.judged_tables import answer
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Table
from bench.runs.record import RunRecord
from bench.show.pages.curves import Curve, curves
from bench.show.pages.engine import render, style
from bench.show.pages.score_tables import WORDS, ScoreTable, score_table
from bench.show.tables import report
from bench.show.tables.report import Section

# --- What the page holds: pure functions of records, no clock and no network ---


@dataclass(frozen=True, kw_only=True)
class PageRun:
    """Everything about one run."""

    run_id: str  # id of the run, and of its place on the page
    what: str  # method, setting, backbone and seed in words
    heads: str  # the averages of its suites
    scores: tuple[Section, ...]  # scores with sub-datasets, one section per suite and form
    facts: tuple[Section, ...]  # recipe, training, cost, provenance; only those with rows
    curves: tuple[Curve, ...]  # loss and dev score over steps; empty without a curve
    command: str | None  # the command that made it


@dataclass(frozen=True, kw_only=True)
class Page:
    """The comparison page."""

    title: str  # heading of the page
    answer: str  # one sentence, computed: what has the highest average, and by how much
    note: str | None  # what the caller has to say, such as that a demo is no evidence
    made_of: str  # how many runs and methods, and when the newest was made
    tables: tuple[ScoreTable, ...]  # one per setting, backbone, suite, protocol and text form
    runs: tuple[PageRun, ...]  # in the order of the tables' rows


def _made_of(records: Sequence[RunRecord]) -> str:
    if not records:
        return "no runs"
    methods = len({(record.method, record.variant) for record in records})
    newest = max(record.provenance.created for record in records)
    versions = ", ".join(sorted({record.provenance.bench_version or "?" for record in records}))
    runs = (
        f"{len(records)} run{'s' * (len(records) != 1)} of {methods} method{'s' * (methods != 1)}"
    )
    return f"{runs}, the newest of {newest[:10]}; bench {versions}"


def _run(record: RunRecord, folder: Path | None) -> PageRun:
    return PageRun(
        run_id=record.run_id,
        what=report.what(record),
        heads=report.heads(record),
        scores=(*report.score_sections(record), *report.shift_sections(record)),
        facts=tuple(report.fact_sections(record)),
        curves=curves(record, folder),
        command=record.provenance.command or None,
    )


# --- The page as HTML ---


def render_page(
    records: Iterable[RunRecord],
    title: str = "Comparison",
    note: str | None = None,
    *,
    baseline: str | None = None,
    together: bool = False,
    folders: Mapping[str, Path] | None = None,
    tables: Sequence[Table] | None = None,
) -> str:
    """The page as HTML; runs that are not finished are not on it. The bytes depend on the records and curves only.

    ``tables``, where they are given, are shown instead of those that ``records`` make (``bench.compare`` adds statistics to them).
    ``note`` stands under the title, ``folders`` (run id -> folder) is where training curves are looked for. Raises ``jinja2.UndefinedError`` where the template asks for what the page does not have.
    """
    records = list(records)
    by_id = {record.run_id: record for record in records}
    if tables is None:
        tables = summarise(records, baseline=baseline, together=together)
    shown = [
        by_id[run_id]
        for run_id in dict.fromkeys(
            run for table in tables for row in table.rows for run in row.runs
        )
    ]
    judged = [
        BoardTable(
            anchor=f"table-{i}",
            table=table,
            selection="",
            costs_comparable=True,
            cost_note="",
        )
        for i, table in enumerate(tables, 1)
    ]
    page = Page(
        title=title,
        answer=answer(judged),
        note=note,
        made_of=_made_of(shown),
        tables=tuple(score_table(table) for table in judged),
        runs=tuple(_run(record, (folders or {}).get(record.run_id)) for record in shown),
    )
    return render("comparison.html", page=page, style=style(), words=WORDS)
