"""What the comparison page holds: pure functions of records, no clock and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.pages.curves import Curve, curves
from bench.runs.record import RunRecord
from bench.statistics.summary import AVERAGE, Table, summarise
from bench.tables import overlap, report, shifts
from bench.tables.report import Section
from bench.tables.words import has_spread, headline, metric_words, score, seeds_differ, seeds_words, variant_words


def _help(text: str) -> dict[str, str]:
    return {"help": text}


@dataclass(frozen=True, kw_only=True)
class PageRow:
    """One line of a score table."""

    method: str = field(metadata=_help("name of the method"))
    beside: str = field(metadata=_help("variant, and whatever else sets the row apart; may be empty"))
    seeds: int = field(metadata=_help("runs behind the row"))
    cells: tuple = field(metadata=_help("summary.Cell per column, or None"))
    difference: float | None = field(metadata=_help("of the averages, from the baseline's; None where there is none"))
    anchor: str | None = field(metadata=_help("id of the first run's place on the page"))
    untrained: bool = field(metadata=_help("nothing was trained"))


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """One comparable set of numbers."""

    anchor: str = field(metadata=_help("id of the table's place on the page"))
    headline: str = field(metadata=_help("setting, backbone, seeds, protocol and text form"))
    suite: str = field(metadata=_help("name of the suite"))
    metric: str = field(metadata=_help("what the numbers are, in words"))
    columns: tuple[str, ...] = field(metadata=_help("tasks, and the average last where the suite has one"))
    average: int | None = field(metadata=_help("index of the average, which comes first on a phone"))
    show_seeds: bool = field(metadata=_help("rows have different numbers of seeds"))
    spread: bool = field(metadata=_help("some cell has a standard deviation"))
    gaps: bool = field(metadata=_help("some cell was not scored"))
    baseline: str | None = field(metadata=_help("the row that differences are taken from"))
    rows: tuple[PageRow, ...] = field(metadata=_help("best average first"))
    notes: tuple[str, ...] = field(metadata=_help("what a reader must know to read the numbers"))


@dataclass(frozen=True, kw_only=True)
class PageRun:
    """Everything about one run."""

    anchor: str = field(metadata=_help("id of the run's place on the page: its run id"))
    run_id: str = field(metadata=_help("id of the run"))
    what: str = field(metadata=_help("method, setting, backbone and seed in words"))
    heads: str = field(metadata=_help("the averages of its suites"))
    scores: tuple[Section, ...] = field(metadata=_help("scores with sub-datasets, one section per suite and form"))
    facts: tuple[Section, ...] = field(metadata=_help("recipe, training, cost, provenance; only those with rows"))
    curves: tuple[Curve, ...] = field(metadata=_help("loss and dev score over steps; empty without a curve"))
    command: str | None = field(metadata=_help("the command that made it"))


@dataclass(frozen=True, kw_only=True)
class Page:
    """The comparison page."""

    title: str = field(metadata=_help("heading of the page"))
    answer: str = field(metadata=_help("one sentence, computed: what has the highest average, and by how much"))
    note: str | None = field(metadata=_help("what the caller has to say, such as that a demo is no evidence"))
    made_of: str = field(metadata=_help("how many runs and methods, and when the newest was made"))
    tables: tuple[PageTable, ...] = field(metadata=_help("one per setting, backbone, suite, protocol and text form"))
    runs: tuple[PageRun, ...] = field(metadata=_help("in the order of the tables' rows"))


def comparison(
    records: Sequence[RunRecord],
    title: str,
    note: str | None,
    *,
    baseline: str | None,
    together: bool,
    folders: Mapping[str, Path],
) -> Page:
    """The page for these records; those that are not finished are not on it."""
    tables = summarise(records, baseline=baseline, together=together)
    by_id = {record.run_id: record for record in records}
    shown = [by_id[run_id] for run_id in dict.fromkeys(run for table in tables for row in table.rows for run in row.runs)]
    return Page(
        title=title, answer=answer(tables), note=note, made_of=_made_of(shown),
        tables=tuple(_table(table, i) for i, table in enumerate(tables, 1)),
        runs=tuple(_run(record, folders.get(record.run_id)) for record in shown),
    )  # fmt: skip


def answer(tables: Sequence[Table]) -> str:
    """The first table in one sentence. It ranks, and says that nothing was tested."""
    ranked = [(table, _ranked(table)) for table in tables]
    table, rows = next(((table, rows) for table, rows in ranked if rows), (None, []))
    if table is None:
        return "No method has a score on every task yet."
    where = ", ".join(part for part in (table.suite, table.backbone) if part)
    (best, value), others = rows[0], rows[1:]
    what = table.head
    if not others:
        return f"{best} reaches {score(value)} ({what}, {where}, {seeds_words(table)})."
    second, below = others[0]
    return (
        f"{best} has the highest {what} on {where}: {score(value)}, {round(value, 2) - round(below, 2):.2f} above {second} "
        f"({seeds_words(table)}; differences are not tested for significance)."
    )


def _ranked(table: Table) -> list[tuple[str, float]]:
    """(name, value) of each row with an average, or with the only task; best first. Empty where nothing ranks."""
    if table.head is None:
        return []
    cells = [(" ".join(filter(None, (row.method, variant_words(row, table)))), row.cells[-1]) for row in table.rows]
    return sorted([(name, cell.mean) for name, cell in cells if cell is not None], key=lambda pair: -pair[1])


def _made_of(records: Sequence[RunRecord]) -> str:
    if not records:
        return "no runs"
    methods = len({(record.method, record.variant) for record in records})
    newest = max(record.provenance.created for record in records)
    versions = ", ".join(sorted({record.provenance.bench_version or "?" for record in records}))
    runs = f"{len(records)} run{'s' * (len(records) != 1)} of {methods} method{'s' * (methods != 1)}"
    return f"{runs}, the newest of {newest[:10]}; bench {versions}"


def _table(table: Table, number: int) -> PageTable:
    rows = tuple(
        PageRow(method=row.method, beside=variant_words(row, table), seeds=len(row.runs), cells=row.cells,
                difference=None if row.is_baseline else row.difference, anchor=row.runs[0], untrained=row.setting == "none")
        for row in table.rows
    )  # fmt: skip
    return PageTable(
        anchor=f"table-{number}", headline=headline(table), suite=table.suite, metric=metric_words(table.metric), columns=table.columns,
        average=len(table.columns) - 1 if table.columns[-1] == AVERAGE and len(table.columns) > 2 else None,
        show_seeds=seeds_differ(table), spread=has_spread(table),
        gaps=any(cell is None for row in table.rows for cell in row.cells), baseline=table.baseline, rows=rows, notes=table.notes,
    )  # fmt: skip


def _run(record: RunRecord, folder: Path | None) -> PageRun:
    facts = (
        report.recipe(record),
        report.training(record, None),
        overlap.of_record(record),
        report.cost(record),
        report.provenance(record),
    )
    return PageRun(
        anchor=record.run_id, run_id=record.run_id, what=report.what(record), heads=report.heads(record),
        scores=(*report.score_sections(record), *shifts.sections(record)), facts=tuple(section for section in facts if section.rows),
        curves=curves(record, folder), command=record.provenance.command or None,
    )  # fmt: skip
