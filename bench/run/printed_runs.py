"""From the printed rows of a table or a figure to the runs that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from bench.base.errors import BenchError
from bench.method.own_vectors import own_backbone
from bench.method.plugins import Registry
from bench.papers import (
    SUITES,
    Checkpoint,
    FigureRuns,
    PaperPart,
    PrintedRow,
    figure_runs,
    meaning,
    model_of,
    printed_names,
    released_as,
    released_for,
    results,
    rows,
    scored_from,
)
from bench.run.options import combinations_of
from bench.run.planned import NOT_TRAINED, learns
from bench.run.table_run import TableRun

OPEN = ("not stated", "presumably", "inferred")
"""Words of a footnote about something that is open and that a run must settle."""
RELEASED = "the authors' released checkpoint is scored and nothing is trained"


def runs_of(
    part: PaperPart,
    registry: Registry,
    *,
    filters: Sequence[str] = (),
    backbones: Sequence[str] = (),
    released: bool = False,
) -> tuple[TableRun, ...]:
    """List the runs of a table or a figure, in its order; rows that mean the same run count once.

    Those that cannot be run say why.

    ``filters`` choose rows: a setting, a method, "own" or "copied", or part of a row's label.
    ``backbones``: names (or folders of that name) that the part has choose rows; any other one
    replaces all of them. A row that the paper itself took from a checkpoint is that
    checkpoint; ``released``: so is every row with a known one, and what would be trained is left
    out. Raises BenchError for a filter or a backbone that fits no row.
    """
    printed = {row.first.backbone for row in printed_rows(part)}
    if not printed:
        for figure in figure_runs():
            printed.update(figure.backbones)
    runs = []
    for row in printed_rows(part, filters):
        for place in _places(row.first.backbone, printed, backbones):
            runs.append(_of_row(row, place, registry, released))
    for figure in figure_runs():
        if figure.part != part:
            continue
        places: list[Place] = []
        for name in figure.backbones:
            places += _places(name, printed, backbones)
        runs += _of_figure(figure, places, registry, released)
    if backbones and not runs:
        raise BenchError(
            f"--backbone {','.join(backbones)}: no chosen row of {part.name} has it", part.command
        )
    if released and not any(run.checkpoint for run in runs):
        raise BenchError(
            f"--released: no released checkpoint is listed for these rows of {part.name}",
            "bench references checkpoints",
        )
    if released:
        for run in runs:
            if run.method and (run.on is not None or learns(registry[run.method].cls, run.setting)):
                run.why_not = "--released: no released checkpoint of it is listed"
    return merge_runs(runs)


def merge_runs(runs: Sequence[TableRun]) -> tuple[TableRun, ...]:
    """Each run once, with the rows of all that are the same; also the runs that others need."""
    merged: dict[tuple[object, ...], TableRun] = {}
    for run in runs:
        earlier = merged.setdefault(run.identity, run)
        if earlier is not run:
            earlier.rows += run.rows
            for name in ("suites", "notes", "instead_of"):
                setattr(
                    earlier,
                    name,
                    tuple(dict.fromkeys(getattr(earlier, name) + getattr(run, name))),
                )
    listed = tuple(merged.values())
    for run in listed:
        if run.on is not None:
            run.on = merged.setdefault(run.on.identity, run.on)
    return listed


Place = tuple[str, tuple[str, ...]]
"""A backbone as bench run takes it, and the printed one that it replaces; () if it is the printed
one.
"""


def _places(name: str, printed: set[str], backbones: Sequence[str]) -> list[Place]:
    """Return the backbones that run the rows of a printed one.

    ``printed``: names that choose rows.
    """
    if not backbones:
        return [(model_of(name), ())]
    places: list[Place] = []
    for backbone in backbones:
        names = printed_names(backbone)
        if name in names:
            is_folder = Path(backbone).is_dir()
            places.append((backbone if is_folder else model_of(backbone), ()))
        elif names.isdisjoint(printed):
            places.append((backbone, (name,)))
    return places


def printed_rows(part: PaperPart, filters: Sequence[str] = ()) -> list[PrintedRow]:
    """Return the rows of a table that ``filters`` choose; a figure has none.

    Raises BenchError for a word that fits none.
    """
    every = rows([cell for cell in results(paper=part.paper) if cell.table == part.short])
    for word in filters:
        if not any(_fits(row, word) for row in every):
            labels = ", ".join(dict.fromkeys(row.first.label for row in every))
            raise BenchError(
                f"--rows {word}: no such row in {part.name}, which has {labels or 'no rows'}",
                "a setting, a method, own, copied, or part of a row's label",
            )
    return [row for row in every if not filters or any(_fits(row, word) for word in filters)]


def _fits(row: PrintedRow, word: str) -> bool:
    first = row.first
    means = meaning(first.method, first.variant, first.setting, first.backbone)
    names = {
        first.setting,
        first.method,
        means.method,
        means.name,
        "own" if first.own_result else "copied",
    }
    return word.lower() in names or word.lower() in first.label.lower()


def _of_figure(
    drawn: FigureRuns, places: Sequence[Place], registry: Registry, released: bool
) -> list[TableRun]:
    """Return the runs that a figure is drawn from; each value of a series is a run."""
    made = []
    for (setting, method, variant), changes in product(drawn.runs, combinations_of(drawn.series)):
        own = own_backbone(registry[method].cls)
        for backbone, instead_of in places:
            run = TableRun(
                rows=(),
                method=method,
                variant=variant,
                setting=setting,
                backbone=own or backbone,
                suites=drawn.suites,
                changes=changes,
                instead_of=() if own else instead_of,
                notes=(drawn.open,) if drawn.open else (),
            )
            if released and not variant and not changes:
                checkpoint = released_as(method, setting, backbone)
                if checkpoint is not None:
                    run = _from_checkpoint(run, checkpoint)
            made.append(run)
    return made


def _from_checkpoint(run: TableRun, checkpoint: Checkpoint) -> TableRun:
    """Return the authors' checkpoint instead of a training; its rows and suites stay."""
    return replace(
        run,
        method=checkpoint.ours,
        variant="",
        setting=NOT_TRAINED,
        backbone=checkpoint.hub,
        changes=checkpoint.set,
        checkpoint=checkpoint,
        notes=tuple(filter(None, (RELEASED, *run.notes, checkpoint.note))),
    )


def _of_row(row: PrintedRow, place: Place, registry: Registry, released: bool) -> TableRun:
    first, (backbone, instead_of) = row.first, place
    means = meaning(first.method, first.variant, first.setting, first.backbone)
    open_notes = [
        cell.note
        for cell in row.cells
        if cell.own_result and any(word in cell.note for word in OPEN)
    ]
    suites = (SUITES[first.metric],)
    checkpoint = None
    if not instead_of:
        checkpoint = released_for(first) if released else scored_from(first)
    if checkpoint is not None:
        run = TableRun(rows=(row,), suites=suites, notes=tuple(dict.fromkeys(open_notes)))
        return _from_checkpoint(run, checkpoint)
    if means.why_not:
        return TableRun(rows=(row,), why_not=means.why_not)
    for name in filter(None, (means.method, means.on, *means.uses.values())):
        if name not in registry.plugins:
            return TableRun(rows=(row,), why_not=f"no method {name} is installed here")
    cls = registry[means.method].cls
    setting = means.setting or first.setting
    if setting not in cls.settings:  # a method that is fitted or pooled has a setting of its own
        setting = cls.settings[0]
    run = TableRun(
        rows=(row,),
        method=means.method,
        variant=means.variant,
        setting=setting,
        backbone=own_backbone(cls) or backbone,
        suites=suites,
        changes=means.set,
        notes=tuple(dict.fromkeys(text for text in (means.doubt, *open_notes) if text)),
        instead_of=() if own_backbone(cls) else instead_of,
    )
    key, below = next(iter(means.uses.items()), ("", means.on))
    if not below:
        return run
    on = TableRun(
        rows=(),
        method=below,
        setting=means.on_setting or registry[below].cls.settings[0],
        backbone=run.backbone,
        suites=suites,
        instead_of=run.instead_of,
    )
    return replace(run, on=on, on_as=key)
