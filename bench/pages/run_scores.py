"""The scores of one run: what it has itself, what the row of all its seeds has, and what a paper printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.pages.places import Place
from bench.pages.says import says
from bench.runs.record import RunRecord
from bench.statistics.grouping import AVERAGE
from bench.statistics.table import Cell
from bench.tables import report, shifts
from bench.tables.section import Section
from bench.tables.words import metric_words, rank_words, score, spread, variant_words


@dataclass(frozen=True, kw_only=True)
class Head:
    """The number of a suite that ranks."""

    suite: str = field(metadata=says("name of the suite, with its text form where it is not the usual one"))
    what: str = field(metadata=says("Avg., or the only task"))
    value: str = field(metadata=says("this run's score"))
    around: str = field(
        metadata=says("mean and interval over the seeds of its row, or its own interval; empty where there is none")
    )
    rank: str = field(metadata=says("its row's place among all rows; empty where it has none"))
    anchor: str = field(metadata=says("id of the table on the main page; empty where it is in none"))


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """All tasks of one suite, protocol and text form."""

    suite: str = field(metadata=says("name of the suite"))
    metric: str = field(metadata=says("what the numbers are, in words"))
    protocol: str = field(metadata=says("how it was scored, and of which text form"))
    section: Section = field(metadata=says("rows of text; a row whose first cell begins with blanks is a sub-dataset"))
    anchor: str = field(metadata=says("id of the table on the main page; empty where it is in none"))
    sources: tuple[str, ...] = field(metadata=says("where the papers' numbers were printed"))


def heads(record: RunRecord, places: Sequence[Place]) -> tuple[Head, ...]:
    """In the order of the record's suites."""
    made = []
    for suite, protocol, text in _forms(record):
        scores = [s for s in record.scores if (s.suite, s.protocol, s.text) == (suite, protocol, text)]
        head = next((s for s in scores if s.task == AVERAGE), scores[0] if len(scores) == 1 else None)
        if head is None:
            continue
        place = _place(places, suite, protocol, text)
        cell = None if place is None else _cell(place, head.task)
        form = "" if text in (None, "tokenised", "sccl") else f" ({text})"
        decimals = cell.decimals if cell else 2
        made.append(Head(
            suite=suite + form, what=head.task if head.task == AVERAGE else f"{head.task}, {protocol}",
            value=score(head.value, decimals), around="" if place is None or cell is None else _around(place, cell),
            rank="" if place is None or place.row.rank is None or place.of.table.head != head.task
            else f"rank {rank_words(place.row)} of {len(place.of.table.rows)}",
            anchor="" if place is None else place.of.anchor,
        ))  # fmt: skip
    return tuple(made)


def score_tables(record: RunRecord, places: Sequence[Place]) -> tuple[ScoreTable, ...]:
    """One per suite, protocol and text form, in the record's order."""
    made = []
    for (suite, protocol, text), told in zip(_forms(record), report.score_sections(record), strict=True):
        section = _without_echoes(told)
        place = _place(places, suite, protocol, text)
        metrics = dict.fromkeys(s.metric for s in record.scores if (s.suite, s.protocol, s.text) == (suite, protocol, text))
        made.append(ScoreTable(
            suite=suite, metric=metric_words(", ".join(metrics)), protocol=protocol + (f", {text} text" if text else ""),
            section=section if place is None else _widened(section, place), anchor="" if place is None else place.of.anchor,
            sources=() if place is None else _sources(place, section),
        ))  # fmt: skip
    return tuple(made)


def side_tables(record: RunRecord) -> tuple[Section, ...]:
    """What changes with the text form and with the domain."""
    return tuple(shifts.sections(record))


def row_name(place: Place) -> str:
    return " ".join(filter(None, (place.row.method, variant_words(place.row, place.of.table))))


def _forms(record: RunRecord) -> list[tuple[str, str, str | None]]:
    return list(dict.fromkeys((s.suite, s.protocol, s.text) for s in record.scores))


def _without_echoes(section: Section) -> Section:
    """Without the rows of a sub-dataset that is the whole task: it would say the same again."""
    kept = []
    task = ""
    for row in section.rows:
        task = task if row[0].startswith(" ") else row[0]
        if row[0] != "  " + task:
            kept.append(row)
    return Section(section.title, section.heading, tuple(kept), section.numbers)


def _place(places: Sequence[Place], suite: str, protocol: str, text: str | None) -> Place | None:
    wanted = (suite, protocol, text)
    return next((one for one in places if (one.of.table.suite, one.of.table.protocol, one.of.table.text) == wanted), None)


def _cell(place: Place, task: str) -> Cell | None:
    columns = place.of.table.columns
    return place.row.cells[columns.index(task)] if task in columns else None


def _around(place: Place, cell: Cell) -> str:
    if len(cell.values) > 1:
        return f"{_over_seeds(place, cell)} over {len(cell.values)} seeds"
    if cell.spread is None:
        return ""
    return f"{score(cell.spread.low, cell.decimals)} to {score(cell.spread.high, cell.decimals)} ({100 * cell.spread.level:g} %)"


def _over_seeds(place: Place, cell: Cell) -> str:
    if len(cell.values) < 2:
        return ""
    half = spread(cell)
    return score(cell.mean, cell.decimals) + ("" if half is None else f" ±{score(half, cell.decimals)}")


def _widened(section: Section, place: Place) -> Section:
    """With a column of the row's mean after the score, and one of the paper's number, where there are such."""
    tasks = [row[0] for row in section.rows]
    cells = [None if task.startswith(" ") else _cell(place, task) for task in tasks]
    means = ["" if cell is None else _over_seeds(place, cell) for cell in cells]
    papers = ["" if cell is None or cell.printed is None else score(cell.printed.value, cell.decimals) for cell in cells]
    added = [(f"{len(place.row.runs)} seeds", means), ("paper", papers)]
    added = [(heading, column) for heading, column in added if any(column)]
    heading = (*section.heading[:2], *(heading for heading, _ in added), *section.heading[2:])
    rows = tuple((*row[:2], *(column[i] for _, column in added), *row[2:]) for i, row in enumerate(section.rows))
    return Section(section.title, heading, rows, tuple(range(1, len(heading))))


def _sources(place: Place, section: Section) -> tuple[str, ...]:
    """ "promcse, table 1", and whether it is a quotation there."""
    cells = [_cell(place, row[0]) for row in section.rows]
    found: dict[str, None] = {}
    for cell in cells:
        if cell is not None and cell.printed is not None:
            paper, _, table = cell.printed.source.partition(":")
            found[f"{paper}, table {table}" + ("" if cell.printed.own else " (copied there)")] = None
    return tuple(found)
