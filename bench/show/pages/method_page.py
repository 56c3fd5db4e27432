"""The page of one method: how it works, its numbers on all tables, its runs, its recipes, and what papers printed of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bench.base.text import duration
from bench.board.names import link, run_page
from bench.compare.formatting import (
    metric_words,
    score,
    setting_words,
    signed_number,
)
from bench.compare.statistics.table import Cell
from bench.references.ours import meaning
from bench.run.descriptions import MethodDescription
from bench.run.recipe_file import Disagreement, Entry
from bench.show.pages.engine import minus, value_words
from bench.show.pages.engine import render as rendered
from bench.show.pages.printed import PrintedTable, printed_papers
from bench.show.pages.run_page import MethodText, how, package_of, source
from bench.show.tables.lines import SIGNS, average_place, spread_text
from bench.show.tables.report import heads

if TYPE_CHECKING:
    from bench.board.board import Board, PublishedRun, TableRow
    from bench.board.reference_tables import ReferenceTable
    from bench.runs.record import Code


UP = 1  # folders between a method's page and its version


@dataclass(frozen=True, kw_only=True)
class MethodRun:
    """One run, in a line."""

    run_id: str  # id of the run
    link: str  # to its page
    variant: str  # its variant; may be empty
    where: str  # setting and backbone
    seed: str  # its seed
    heads: str  # the average of each suite
    by: str  # who submitted it; empty for an own run
    time: str  # training time; empty where nothing was trained or it was not recorded
    made: str  # the day


@dataclass(frozen=True, kw_only=True)
class MethodPage:
    """Everything about one method."""

    name: str  # name of the method
    version: str  # of the leaderboard
    alone: bool  # a preview where nothing is published: there is no page of all versions
    board: str  # link to the main page
    how: MethodText | None  # what it says of itself; None where its source is not installed
    packages: tuple[str, ...]  # whose code its runs ran, with version
    settings: str  # what it can be run in; empty where that is not known
    variants: tuple[
        tuple[str, str], ...
    ]  # (named switch, recipe values that it sets; may be empty)
    tables: tuple[MethodTable, ...]  # its rows, one table per suite and protocol
    runs: tuple[MethodRun, ...]  # by setting, backbone, variant and seed
    recipes: tuple[Recipes, ...]  # one per setting
    disagreements: tuple[Disagreement, ...]  # where the paper and its authors' code differ
    printed: tuple[PrintedTable, ...]  # rows of the papers' tables that mean it


def render(board: Board, method: str) -> str:
    """The page ``methods/<method>.html`` as HTML, a function of the board and of the method's source where it is installed."""
    return rendered("method.html", page=page(board, method), up=UP)


def page(board: Board, method: str) -> MethodPage:
    """What the page holds."""
    runs = [run for run in board.runs if run.record.method == method]
    plugins = [run.record.provenance.plugin for run in runs]
    names = [package_of(plugin) for plugin in plugins] or [None]
    package = next((name for name in names if source(method, name) is not None), names[0])
    said = source(method, package)
    return MethodPage(
        name=method,
        version=board.version,
        alone=board.alone,
        board=link("index.html", UP),
        how=how(method, package),
        settings=_settings(said),
        packages=tuple(dict.fromkeys(_package(plugin) for plugin in plugins if plugin.package)),
        variants=_variants(said),
        tables=method_tables(board.by_method.get(method, ()), board.page_of, UP),
        runs=tuple(_run(run, board) for run in sorted(runs, key=_order)),
        recipes=recipes(said),
        disagreements=said.file.disagreements if said is not None else (),
        printed=_printed(board, method),
    )


def _package(plugin: Code) -> str:
    return " ".join(filter(None, (plugin.package, plugin.version)))


def _settings(said: MethodDescription | None) -> str:
    return (
        ", ".join(setting_words(str(setting)) for setting in said.settings)
        if said is not None
        else ""
    )


def _variants(said: MethodDescription | None) -> tuple[tuple[str, str], ...]:
    return tuple(
        (str(name), ", ".join(f"{key} {value_words(value)}" for key, value in changes.items()))
        for name, changes in (said.variants if said is not None else {}).items()
    )


def _order(run: PublishedRun) -> tuple[object, ...]:
    record = run.record
    return (
        record.setting,
        record.backbone,
        record.variant,
        -1 if record.seed is None else record.seed,
        record.run_id,
    )


def _run(run: PublishedRun, board: Board) -> MethodRun:
    record = run.record
    own = run.submitted_by is None  # else time and date are the sender's word
    seconds = record.cost.train_seconds if own else None
    return MethodRun(
        run_id=record.run_id,
        link=link(run_page(board.page_of[record.run_id]), UP),
        variant=record.variant,
        seed="any" if record.seed is None else str(record.seed),
        where=f"{setting_words(record.setting)}, {record.backbone_name}",
        heads=heads(record),
        by=run.submitted_by or "",
        time="" if not seconds else duration(seconds),
        made=record.provenance.created[:10] if own else "",
    )


def _printed(board: Board, method: str) -> tuple[PrintedTable, ...]:
    papers = printed_papers(board, _of(board.references, method))
    return tuple(table for paper in papers for table in paper.tables)


def _of(tables: Sequence[ReferenceTable], method: str) -> list[ReferenceTable]:
    """Of each printed table the rows that mean the method, with the columns in which they have a number."""
    made = []
    for table in tables:
        rows = [
            row
            for row in table.rows
            if meaning(row.method, row.variant, row.setting).method == method
        ]
        kept = [i for i in range(len(table.tasks)) if any(row.cells[i] is not None for row in rows)]
        if kept:
            rows = [replace(row, cells=tuple(row.cells[i] for i in kept)) for row in rows]
            made.append(replace(table, rows=tuple(rows), tasks=tuple(table.tasks[i] for i in kept)))
    return made


# --- A method's rows on all tables of a board: one table per suite and protocol, whatever the setting and backbone ---


@dataclass(frozen=True, kw_only=True)
class RowCell:
    """One number of the method."""

    text: str  # mean over seeds
    spread: str  # what stands after the plus-minus sign; empty where nothing does
    mark: str  # best, second or empty: among all rows of its table
    top: bool  # on the column that ranks: its row may be the best
    title: str  # in words: seeds, items, interval, difference from the baseline


@dataclass(frozen=True, kw_only=True)
class MethodRow:
    """The method as configured, in one setting on one backbone."""

    name: str  # variant and whatever sets the row apart; empty where nothing does
    setting: str  # setting in words
    backbone: str  # public name of the backbone
    table: str  # link to its table on the main page
    verdict: str  # sign of the difference from the table's baseline; may be empty
    verdict_words: str  # the same in words; may be empty
    runs: tuple[tuple[str, str], ...]  # (seed, link) of each run
    cells: tuple[RowCell | None, ...]  # one per column, None where nothing was scored


@dataclass(frozen=True, kw_only=True)
class MethodTable:
    """Numbers of one suite and protocol, which can be compared along a column as far as setting and backbone allow."""

    suite: str  # name of the suite
    metric: str  # what the numbers are, in words
    protocol: str  # how it was scored, and of which text form
    columns: tuple[str, ...]  # tasks, and the average last where the suite has one
    average: int | None  # index of the average
    rows: tuple[MethodRow, ...]  # in the order of the board's tables


def method_tables(
    found: Sequence[TableRow], page_of: Mapping[str, str], up: int
) -> tuple[MethodTable, ...]:
    """From a page that lies ``up`` folders deep. ``page_of``: as a board has it."""
    groups: dict[tuple[object, ...], list[TableRow]] = {}
    for place in found:
        table = place.of.table
        groups.setdefault(
            (table.suite, table.protocol, table.text, table.metric, table.columns), []
        ).append(place)
    return tuple(_table(places, page_of, up) for places in groups.values())


def _table(places: Sequence[TableRow], page_of: Mapping[str, str], up: int) -> MethodTable:
    table = places[0].of.table
    return MethodTable(
        suite=table.suite,
        metric=metric_words(table.metric),
        protocol=table.protocol + (f", {table.text} text" if table.text else ""),
        columns=table.columns,
        rows=tuple(_row(place, page_of, up) for place in places),
        average=average_place(table),
    )


def _row(place: TableRow, page_of: Mapping[str, str], up: int) -> MethodRow:
    row, table = place.row, place.of.table
    head = None if table.head is None else row.cells[-1]
    verdict = head.against.verdict if head is not None and head.against is not None else None
    parts = ([row.variant] if row.variant else []) + [
        f"{key}={value}" for key, value in row.differs
    ]
    runs = zip(row.runs, row.seeds, strict=True)
    return MethodRow(
        name=" ".join(parts),
        setting=setting_words(row.setting),
        backbone=row.backbone,
        table=f"{link('index.html', up)}#{place.of.anchor}",
        verdict=SIGNS.get(verdict or "", ""),
        verdict_words=f"{verdict}, compared with {table.baseline}" if verdict else "",
        runs=tuple(
            ("any" if seed is None else str(seed), link(run_page(page_of[run_id]), up))
            for run_id, seed in runs
        ),
        cells=tuple(
            None if cell is None else _cell(cell, place, top=cell is head and row.may_be_best)
            for cell in row.cells
        ),
    )


def _cell(cell: Cell, place: TableRow, *, top: bool) -> RowCell:
    d = cell.decimals
    told = [f"{len(cell.values)} seed{'s' * (len(cell.values) != 1)}, {cell.n:,} items"]
    if cell.spread is not None:
        told.append(
            f"{100 * cell.spread.level:g} % interval {score(cell.spread.low, d)} to {score(cell.spread.high, d)}"
        )
    if cell.against is not None and not place.row.is_baseline:
        told.append(f"{signed_number(cell.against.difference, d)} from {place.of.table.baseline}")
    if top:
        told.append("its row may be the best")
    return RowCell(
        text=minus(score(cell.mean, d)),
        spread=spread_text(cell),
        mark=cell.mark,
        top=top,
        title=minus("; ".join(told)),
    )


# --- The recipes that lie beside a method: what is the same for all backbones, what differs, and where each value is from ---

LONGEST = 24  # characters of a value that fits into a column


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A value of some recipes."""

    key: str  # the recipe key; empty where it stands in the line above
    value: str  # what those recipes have
    of: str  # their backbones; empty where all have it
    source: str  # where the value is from
    note: str  # what another source says; may be empty


@dataclass(frozen=True, kw_only=True)
class Recipes:
    """Those of one setting."""

    setting: str  # setting in words
    names: tuple[str, ...]  # backbone and variant of each recipe
    differing: tuple[tuple[str, tuple[str, ...]], ...]  # (key, one value per recipe)
    same: tuple[tuple[str, str], ...]  # (key, value) where all recipes have one value
    sources: tuple[Sourced, ...]  # every value with its source
    facts: tuple[Sourced, ...]  # what the sources state, and no recipe key changes
    notes: tuple[str, ...]  # about whole recipes


def recipes(source: MethodDescription | None) -> tuple[Recipes, ...]:
    """One per setting; none where the method has no recipe file, or its source is not installed."""
    entries = source.file.recipes if source is not None else ()
    return tuple(
        _recipes([entry for entry in entries if entry.setting == setting], setting)
        for setting in dict.fromkeys(entry.setting for entry in entries)
    )


def _recipes(entries: Sequence[Entry], setting: str) -> Recipes:
    entries = sorted(entries, key=lambda entry: entry.backbone == "builtin")
    keys = dict.fromkeys(key for entry in entries for key in entry.values)
    rows: dict[str, list[str]] = {"corpus": [entry.corpus or "" for entry in entries]}
    rows |= {
        key: [
            value_words(entry.values[key].value) if key in entry.values else "" for entry in entries
        ]
        for key in keys
    }
    rows["paper's Avg."] = [
        f"{entry.expect['value']:.2f}" if entry.expect else "" for entry in entries
    ]
    differing = {key: cells for key, cells in rows.items() if len(set(cells)) > 1}
    return Recipes(
        setting=setting_words(setting),
        names=tuple(map(_name, entries)),
        differing=tuple(
            (key, tuple(cells))
            for key, cells in differing.items()
            if max(map(len, cells)) <= LONGEST
        ),
        same=tuple(
            (key, cells[0]) for key, cells in rows.items() if key not in differing and cells[0]
        ),
        sources=tuple(_sourced([(_name(entry), entry.values) for entry in entries])),
        notes=_notes(entries),
        facts=tuple(_sourced([(_name(entry), entry.facts) for entry in entries])),
    )


def _notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Each with the recipes that it is about, where these are not all."""
    noted: dict[str, list[str]] = {}
    for entry in entries:
        if entry.note:
            noted.setdefault(entry.note, []).append(_name(entry))
    return tuple(
        note if len(who) == len(entries) else f"{', '.join(who)}: {note}"
        for note, who in noted.items()
    )


def _name(entry: Entry) -> str:
    return entry.backbone + (f" +{entry.variant}" if entry.variant else "")


def _sourced(recipes: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Sourced]:
    """One line for each value that comes from one source; the recipes, (name, values) each, that share it together."""
    for key in dict.fromkeys(key for _, values in recipes for key in values):
        named: dict[tuple[str, str, str], list[str]] = {}
        for name, values in recipes:
            if key in values:
                value = values[key]
                named.setdefault(
                    (value_words(value.value), value.source, value.note or ""), []
                ).append(name)
        for i, ((value_text, origin, note), who) in enumerate(named.items()):
            of = "" if len(who) == len(recipes) else ", ".join(who)
            yield Sourced(
                key=key if i == 0 else "", value=value_text, of=of, source=origin, note=note
            )
