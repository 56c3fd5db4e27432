"""Pages built from records: one self-contained HTML file, no script, no network, readable from a phone to paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare.formatting import (
    has_ranks,
    headline,
    is_top,
    list_names,
    metric_words,
    rank_words,
    score,
    seeds_differ,
    seeds_words,
    variant_words,
)
from bench.compare.statistics.summary import summarise
from bench.compare.statistics.table import Cell, Row, Table
from bench.runs.record import RunRecord
from bench.show.pages.curves import Curve, curves
from bench.show.pages.engine import TEMPLATES, render
from bench.show.tables import report
from bench.show.tables.lines import SIGNS, Line, average_place, cost_columns, cost_texts, legend, row_name, spread_text, under
from bench.show.tables.lines import answer as difference_words
from bench.show.tables.report import Section

# --- What the comparison page holds: pure functions of records, no clock and no network ---


@dataclass(frozen=True, kw_only=True)
class PageNumber:
    """One cell's number."""

    text: str  # the mean, as printed
    mark: str  # best, second or empty
    spread: str  # what stands after the plus-minus sign; empty where nothing does
    top: bool  # on the column that ranks: its row may be the best
    title: str  # interval, test and number of items in words, shown on pointing; may be empty


@dataclass(frozen=True, kw_only=True)
class PageRow:
    """One line of a score table."""

    method: str  # name of the method
    beside: str  # variant, and whatever else sets the row apart; may be empty
    seeds: int  # runs behind the row
    rank: str  # those that it may have; empty where it was not tested
    cells: tuple[PageNumber | None, ...]  # one per column, None where nothing was scored
    lines: tuple[Line, ...]  # differences from the baseline, a paper's numbers
    costs: tuple[str, ...]  # one per cost column
    footnotes: tuple[int, ...]  # numbers of the table's footnotes that concern it
    anchor: str  # id of the first run's place on the page


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """One comparable set of numbers."""

    anchor: str  # id of the table's place on the page
    headline: str  # setting, backbone, seeds, protocol and text form
    suite: str  # name of the suite
    metric: str  # what the numbers are, in words
    columns: tuple[str, ...]  # tasks, and the average last where the suite has one
    average: int | None  # index of the average, which comes first on a phone
    show_seeds: bool  # rows have different numbers of seeds
    show_ranks: bool  # rows have ranks
    costs: tuple[str, ...]  # headings of the cost columns; empty where they were not asked for
    gaps: bool  # some cell was not scored
    rows: tuple[PageRow, ...]  # best average first
    legend: tuple[str, ...]  # what the signs mean, and how it was tested
    notes: tuple[str, ...]  # what a reader must know to read the numbers
    footnotes: tuple[str, ...]  # one per difference between the runs of a column


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
    tables: tuple[PageTable, ...]  # one per setting, backbone, suite, protocol and text form
    runs: tuple[PageRun, ...]  # in the order of the tables' rows


def answer(tables: Sequence[Table]) -> str:
    """The first table in one sentence: who is best, and whether that can be told from the next."""
    table = next((table for table in tables if _ranked(table)), None)
    if table is None:
        return "No method has a score on every task yet."
    where = ", ".join(part for part in (table.suite, table.backbone) if part)
    (row, value), *others = _ranked(table)
    best = row_name(row, table)
    if not others:
        return f"{best} reaches {score(value)} ({table.head}, {where}, {seeds_words(table)})."
    second, below = others[0]
    ahead = f"{round(value, 2) - round(below, 2):.2f} above {row_name(second, table)}"
    how_sure = _how_sure([row for row, _ in others], table)
    return f"{best} has the highest {table.head} on {where}: {score(value)}, {ahead} ({seeds_words(table)}; {how_sure})."


def _how_sure(rows: Sequence[Row], table: Table) -> str:
    """Of the rows below the best: which of them may be the best as well."""
    if any(row.rank is None for row in rows):
        return "differences are not tested for significance"
    alike = [row_name(row, table) for row in rows if row.rank and row.rank[0] == 1]
    if not alike:
        return "better than every other row, all pairs tested"
    return f"it cannot be told from {list_names(alike, 3)}, all pairs tested"


def _ranked(table: Table) -> list[tuple[Row, float]]:
    """(row, value) of each row with an average, or with the only task; best first. Empty where nothing ranks."""
    if table.head is None:
        return []
    having = [(row, cell.mean) for row in table.rows if (cell := row.cells[-1]) is not None]
    return sorted(having, key=lambda row_and_mean: -row_and_mean[1])


def _made_of(records: Sequence[RunRecord]) -> str:
    if not records:
        return "no runs"
    methods = len({(record.method, record.variant) for record in records})
    newest = max(record.provenance.created for record in records)
    versions = ", ".join(sorted({record.provenance.bench_version or "?" for record in records}))
    runs = f"{len(records)} run{'s' * (len(records) != 1)} of {methods} method{'s' * (methods != 1)}"
    return f"{runs}, the newest of {newest[:10]}; bench {versions}"


def _table(table: Table, number: int) -> PageTable:
    return PageTable(
        anchor=f"table-{number}", headline=headline(table), suite=table.suite, metric=metric_words(table.metric), columns=table.columns,
        average=average_place(table),
        show_seeds=seeds_differ(table), show_ranks=has_ranks(table), costs=cost_columns(table),
        gaps=any(cell is None for row in table.rows for cell in row.cells), rows=tuple(_row(row, table) for row in table.rows),
        legend=tuple(legend(table, SIGNS)), notes=table.notes, footnotes=table.footnotes,
    )  # fmt: skip


def _row(row: Row, table: Table) -> PageRow:
    return PageRow(
        method=row.method, beside=variant_words(row, table), seeds=len(row.runs), rank=rank_words(row),
        cells=tuple(None if cell is None else _number(cell, top=task == table.head and is_top(row, table))
                    for task, cell in zip(table.columns, row.cells, strict=True)), lines=tuple(under(row, table)),
        costs=tuple(cost_texts(row, table)), footnotes=tuple(number + 1 for number in row.footnotes),
        anchor=row.runs[0],
    )  # fmt: skip


def _number(cell: Cell, *, top: bool) -> PageNumber:
    d = cell.decimals
    told = [f"{cell.n:,} items, {len(cell.values)} seed{'s' * (len(cell.values) != 1)}"]
    if cell.sd is not None:
        told.append(f"standard deviation over seeds {score(cell.sd, d)}")
    if cell.spread:
        told.append(
            f"{100 * cell.spread.level:g} % interval {score(cell.spread.low, d)} to {score(cell.spread.high, d)} ({cell.spread.covers})"
        )
    if (against := cell.against) and against.verdict is not None and against.p_adjusted is not None:
        told.append(f"less the baseline: {difference_words(against, 'the baseline', d)}; adjusted p {against.p_adjusted:.2g}")
    return PageNumber(text=score(cell.mean, d), mark=cell.mark, spread=spread_text(cell), top=top, title="; ".join(told))


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


def write_page(
    records: Iterable[RunRecord],
    out_file: Path,
    title: str = "Comparison",
    note: str | None = None,
    *,
    baseline: str | None = None,
    together: bool = False,
    folders: Mapping[str, Path] | None = None,
    tables: Sequence[Table] | None = None,
) -> Path:
    """Write the comparison of ``records`` to ``out_file``, whole or not at all; returns its path.

    ``tables``, where they are given, are shown instead of those that ``records`` make (``bench.compare`` adds statistics to them).
    ``note`` stands under the title, ``folders`` (run id -> folder) is where training curves are looked for. The bytes depend
    on the records and curves only.
    """
    from bench.base.files import write_or_fail

    html = render_page(records, title, note, baseline=baseline, together=together, folders=folders, tables=tables)
    write_or_fail(Path(out_file), html.encode(), hint="another place for the page")
    return Path(out_file)


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
    """The page as HTML; runs that are not finished are not on it.

    Raises ``jinja2.UndefinedError`` where the template asks for what the page does not have.
    """
    from markupsafe import Markup

    records = list(records)
    by_id = {record.run_id: record for record in records}
    if tables is None:
        tables = summarise(records, baseline=baseline, together=together)
    shown = [by_id[run_id] for run_id in dict.fromkeys(run for table in tables for row in table.rows for run in row.runs)]
    page = Page(
        title=title,
        answer=answer(tables),
        note=note,
        made_of=_made_of(shown),
        tables=tuple(_table(table, i) for i, table in enumerate(tables, 1)),
        runs=tuple(_run(record, (folders or {}).get(record.run_id)) for record in shown),
    )
    style = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))  # ours: the one thing that is not escaped
    return render("comparison.html", page=page, style=style, signs=SIGNS)
