"""The page of one method: how it works, its numbers on all tables, its runs, its recipes, and what papers printed of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bench.method_source import Stated
from bench.pages.addresses import link, run_page
from bench.pages.engine import render as rendered
from bench.pages.how import How, how, source
from bench.pages.method_rows import MethodTable, method_tables
from bench.pages.places import places
from bench.pages.printed import PrintedTable, printed_papers
from bench.pages.recipes import Recipes, recipes
from bench.pages.run_page import package_of
from bench.pages.says import says
from bench.pages.words import value_words
from bench.publish.names import public_name
from bench.recipe_file import Disagreement
from bench.references.ours import meaning
from bench.tables import report

if TYPE_CHECKING:
    from bench.publish.board import Board, PublishedRun, ReferenceTable

UP = 1  # folders between a method's page and its version


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A named switch of the method."""

    name: str = field(metadata=says("its name"))
    changes: str = field(metadata=says("recipe values that it sets; may be empty"))


@dataclass(frozen=True, kw_only=True)
class MethodRun:
    """One run, in a line."""

    run_id: str = field(metadata=says("id of the run"))
    link: str = field(metadata=says("to its page"))
    variant: str = field(metadata=says("its variant; may be empty"))
    where: str = field(metadata=says("setting and backbone"))
    seed: str = field(metadata=says("its seed"))
    heads: str = field(metadata=says("the average of each suite"))
    grade: str = field(metadata=says("how far it was checked"))
    time: str = field(metadata=says("training time; empty where nothing was trained or it was not recorded"))
    made: str = field(metadata=says("the day"))


@dataclass(frozen=True, kw_only=True)
class MethodPage:
    """Everything about one method."""

    name: str = field(metadata=says("name of the method"))
    version: str = field(metadata=says("of the leaderboard"))
    alone: bool = field(metadata=says("a preview where nothing is published: there is no page of all versions"))
    board: str = field(metadata=says("link to the main page"))
    how: How | None = field(metadata=says("what it says of itself; None where its source is not installed"))
    packages: tuple[str, ...] = field(metadata=says("whose code its runs ran, with version"))
    settings: str = field(metadata=says("what it can be run in; empty where that is not known"))
    variants: tuple[Variant, ...] = field(metadata=says("named switches"))
    tables: tuple[MethodTable, ...] = field(metadata=says("its rows, one table per suite and protocol"))
    runs: tuple[MethodRun, ...] = field(metadata=says("by setting, backbone, variant and seed"))
    recipes: tuple[Recipes, ...] = field(metadata=says("one per setting"))
    disagreements: tuple[Disagreement, ...] = field(metadata=says("where the paper and its authors' code differ"))
    printed: tuple[PrintedTable, ...] = field(metadata=says("rows of the papers' tables that mean it"))


def render(board: Board, method: str) -> str:
    """The page ``methods/<method>.html`` as HTML, a function of the board and of the method's source where it is installed."""
    return rendered("method.html", page=page(board, method), up=UP)


def page(board: Board, method: str) -> MethodPage:
    """What the page holds."""
    runs = [run for run in board.runs if run.record.method == method]
    plugins = [run.record.provenance.plugin or {} for run in runs]
    names = [package_of(plugin) for plugin in plugins] or [None]
    package = next((name for name in names if source(method, name) is not None), names[0])
    said = source(method, package)
    return MethodPage(
        name=method, version=board.version, alone=board.alone, board=link("index.html", UP), how=how(method, package), settings=_settings(said),
        packages=tuple(dict.fromkeys(_package(plugin) for plugin in plugins if plugin.get("package"))),
        variants=_variants(said), tables=method_tables(places(board).by_method.get(method, ()), UP),
        runs=tuple(_run(run) for run in sorted(runs, key=_order)), recipes=recipes(said),
        disagreements=said.file.disagreements if said is not None else (),
        printed=_printed(board, method),
    )  # fmt: skip


def _package(plugin: Any) -> str:
    return " ".join(str(part) for part in (plugin["package"], plugin.get("version")) if part)


def _settings(said: Stated | None) -> str:
    return ", ".join("nothing trained" if one == "none" else str(one) for one in said.settings) if said is not None else ""


def _variants(said: Stated | None) -> tuple[Variant, ...]:
    return tuple(Variant(name=str(name), changes=", ".join(f"{key} {value_words(value)}" for key, value in changes.items()))
                 for name, changes in (said.variants if said is not None else {}).items())  # fmt: skip


def _order(run: PublishedRun) -> tuple[object, ...]:
    record = run.record
    return record.setting, record.backbone, record.variant, -1 if record.seed is None else record.seed, record.run_id


def _run(run: PublishedRun) -> MethodRun:
    record = run.record
    seconds = record.cost.train_seconds
    return MethodRun(
        run_id=record.run_id, link=link(run_page(record.run_id), UP), variant=record.variant, seed="any" if record.seed is None else str(record.seed),
        where=f"{'nothing trained' if record.setting == 'none' else record.setting}, {public_name(record.backbone)}",
        heads=report.heads(record), grade=run.grade, time="" if not seconds else report.duration(seconds), made=record.provenance.created[:10],
    )  # fmt: skip


def _printed(board: Board, method: str) -> tuple[PrintedTable, ...]:
    papers = printed_papers(replace(board, references=tuple(_of(board.references, method))))
    return tuple(table for paper in papers for table in paper.tables)


def _of(tables: Sequence[ReferenceTable], method: str) -> list[ReferenceTable]:
    """Of each printed table the rows that mean the method, with the columns in which they have a number."""
    made = []
    for table in tables:
        rows = [row for row in table.rows if meaning(row.method, row.variant).method == method]
        kept = [i for i in range(len(table.tasks)) if any(row.cells[i] is not None for row in rows)]
        if kept:
            rows = [replace(row, cells=tuple(row.cells[i] for i in kept)) for row in rows]
            made.append(replace(table, rows=tuple(rows), tasks=tuple(table.tasks[i] for i in kept)))
    return made
