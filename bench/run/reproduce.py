"""A printed table or figure, run again: the runs that it means, in an order in which they can be done, with their seeds and plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from bench.backbones import Reference
from bench.base.errors import BenchError
from bench.base.text import one_value
from bench.compare.consistency import printed_runs
from bench.compare.formatting import setting_words
from bench.data.sets import DataFolder
from bench.records import Run, RunsFolder
from bench.references import (
    SUITES,
    Checkpoint,
    FigureRuns,
    Part,
    ReferenceResult,
    Row,
    figure_runs,
    meaning,
    released_as,
    released_for,
    results,
    rows,
    scored_from,
)
from bench.run.config import RunConfig, series
from bench.run.plan import NOT_TRAINED, PlannedRun, learns, make_all
from bench.run.plugins import Registry
from bench.run.recipes import check_overrides, merge

OPEN = ("not stated", "presumably", "inferred")
"""Words of a footnote about something that is open and that a run must settle."""
RELEASED = "the authors' released checkpoint is scored and nothing is trained"
FIRST_SEED = 42
"""Of one run; further runs have the seeds that follow it, so that a larger number of runs includes a smaller one."""


@dataclass(kw_only=True, eq=False)
class TableRun:
    """One run, with every seed, and the printed rows that it stands for."""

    rows: tuple[Row, ...]
    method: str = ""
    variant: str = ""
    setting: str = ""
    backbone: str = ""  # as bench run takes it: a hub name, a folder, builtin
    suites: tuple[str, ...] = ()
    changes: Mapping[str, str] = field(default_factory=dict)  # recipe values that the paper names
    overrides: Mapping[str, str] = field(default_factory=dict)  # the user's recipe values
    on: TableRun | None = None  # the run whose encoder is its backbone or a recipe value
    on_as: str = ""  # the key of that value ("teacher"); "": its backbone
    instead_of: tuple[str, ...] = ()  # the printed backbones that this one stands in for
    checkpoint: Checkpoint | None = None  # of the authors, which is scored and not trained
    why_not: str = ""  # the reason it is not run; then the rest may be empty
    notes: tuple[str, ...] = ()  # what the paper leaves open, and whether a checkpoint is scored
    planned: tuple[PlannedRun, ...] = ()  # one for each seed
    error: BenchError | None = None  # why it could not be planned

    @property
    def name(self) -> str:
        """ "promcse+eh, supervised, roberta-large"; the labels of its rows if it cannot be run."""
        if not self.method:
            return ", ".join(self.labels)
        method = f"{self.method}+{self.variant}" if self.variant else self.method
        method += "".join(f" {key}={value}" for key, value in self.changes.items())
        on = f"{self.on_as or 'the encoder of'} {self.on.method} on " if self.on else ""
        return f"{method}, {setting_words(self.setting)}, {on}{self.backbone}"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.first.label for row in self.rows))

    @property
    def reason(self) -> str:
        """Why it is not run; "" if it is."""
        return self.why_not or (self.error.message if self.error else "")

    def differs_from(self, cell: ReferenceResult) -> str:
        """Why this run cannot be compared with a printed number; "" if it can."""
        if self.instead_of:
            return f"{self.backbone} stands in for {', '.join(self.instead_of)}"
        if self.overrides:
            return f"not the recipe: {', '.join(f'{k}={v}' for k, v in self.overrides.items())}"
        if self.checkpoint and printed_runs(cell) != (1, False):
            return f"one released checkpoint; printed is the {cell.runs}"
        return self.on.differs_from(cell) if self.on else ""

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal if two rows mean the same run."""
        if not self.method:
            return (self.rows,)
        return (
            self.method,
            self.variant,
            self.setting,
            self.backbone,
            tuple(sorted({**self.changes, **self.overrides}.items())),
            self.on and self.on.identity,
        )

    def config(self, options: RunConfig, seeds: Sequence[int], below: str = "") -> RunConfig:
        """The run with these seeds. ``options``: device, data and the like; ``below``: the folder of the run that it needs."""
        value = {self.on_as: below} if self.on_as and below else {}
        values = {**self.changes, **value, **self.overrides}
        return replace(
            options,
            methods=(self.method,),
            backbones=(self.backbone if value else below or self.backbone,),
            setting=self.setting,
            variant=self.variant,
            seeds=tuple(seeds),
            suites=self.suites,
            overrides={key: one_value(text) for key, text in values.items()},
        )


# --- a table, a figure, several of them ---


def runs_of(
    part: Part,
    registry: Registry,
    *,
    filters: Sequence[str] = (),
    backbones: Sequence[str] = (),
    released: bool = False,
) -> tuple[TableRun, ...]:
    """The runs of a table or a figure, in its order; rows that mean the same run are one. Those that cannot be run say why.

    ``filters`` choose rows: a setting, a method, "own" or "copied", or part of a row's label. ``backbones``: names (or folders of
    that name) that the part has choose rows; any other one stands in for all of them. A row that the paper itself took from a
    checkpoint is that checkpoint; ``released``: so is every row with a known one, and what would be trained is left out.
    Raises BenchError for a filter or a backbone that fits no row.
    """
    printed = {row.first.backbone for row in printed_rows(part)} or {
        name for one in figure_runs() for name in one.backbones
    }
    runs = [
        _of_row(row, place, registry, released)
        for row in printed_rows(part, filters)
        for place in _places(row.first.backbone, printed, backbones)
    ]
    for one in [one for one in figure_runs() if one.part == part]:
        runs += _of_figure(
            one,
            [place for name in one.backbones for place in _places(name, printed, backbones)],
            registry,
            released,
        )
    if backbones and not runs:
        raise BenchError(
            f"--backbone {','.join(backbones)}: no chosen row of {part.name} has it", part.command
        )
    if released and not any(run.checkpoint for run in runs):
        raise BenchError(
            f"--released: no released checkpoint is listed for these rows of {part.name}",
            "bench references checkpoints",
        )
    for run in runs if released else ():
        if run.method and (run.on is not None or learns(registry[run.method].cls, run.setting)):
            run.why_not = "--released: no released checkpoint of it is listed"
    return together(runs)


def together(runs: Sequence[TableRun]) -> tuple[TableRun, ...]:
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
"""A backbone as bench run takes it, and the printed one that it stands in for; () if it is the printed one."""


def _places(name: str, printed: set[str], backbones: Sequence[str]) -> list[Place]:
    """The backbones on which the rows of a printed one are run. ``printed``: names that choose rows."""
    return [
        *((one, ()) for one in backbones or [name] if Path(one).name == name),
        *((one, (name,)) for one in backbones if Path(one).name not in printed),
    ]


def printed_rows(part: Part, filters: Sequence[str] = ()) -> list[Row]:
    """The rows of a table that ``filters`` choose; a figure has none. Raises BenchError for a word that fits none."""
    every = rows([cell for cell in results(paper=part.paper) if cell.table == part.short])
    for word in filters:
        if not any(_fits(row, word) for row in every):
            labels = ", ".join(dict.fromkeys(row.first.label for row in every))
            raise BenchError(
                f"--rows {word}: no such row in {part.name}, which has {labels or 'no rows'}",
                "a setting, a method, own, copied, or part of a row's label",
            )
    return [row for row in every if not filters or any(_fits(row, word) for word in filters)]


def _fits(row: Row, word: str) -> bool:
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
    """The runs that a figure is drawn from; each value of a series is a run."""
    made = []
    for (setting, method, variant), changes in product(drawn.runs, series(drawn.series)):
        own = registry[method].cls.own_backbone
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
            checkpoint = (
                released_as(method, setting, backbone)
                if released and not variant and not changes
                else None
            )
            made.append(run if checkpoint is None else _from_checkpoint(run, checkpoint))
    return made


def _from_checkpoint(run: TableRun, checkpoint: Checkpoint) -> TableRun:
    """The authors' checkpoint instead of a training; its rows and suites stay."""
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


# --- one printed row ---


def _of_row(row: Row, place: Place, registry: Registry, released: bool) -> TableRun:
    first, (backbone, instead_of) = row.first, place
    means = meaning(first.method, first.variant, first.setting, first.backbone)
    open_notes = [
        cell.note
        for cell in row.cells
        if cell.own_result and any(word in cell.note for word in OPEN)
    ]
    suites = (SUITES[first.metric],)
    checkpoint = None if instead_of else released_for(first) if released else scored_from(first)
    if checkpoint is not None:
        run = TableRun(rows=(row,), suites=suites, notes=tuple(dict.fromkeys(open_notes)))
        return _from_checkpoint(run, checkpoint)
    if means.why_not:
        return TableRun(rows=(row,), why_not=means.why_not)
    cls, setting = registry[means.method].cls, means.setting or first.setting
    run = TableRun(
        rows=(row,),
        method=means.method,
        variant=means.variant,
        setting=setting
        if setting in cls.settings
        else cls.settings[0],  # fitted or pooled: one of its own
        backbone=cls.own_backbone or backbone,
        suites=suites,
        changes=means.set,
        notes=tuple(dict.fromkeys(text for text in (means.doubt, *open_notes) if text)),
        instead_of=() if cls.own_backbone else instead_of,
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


# --- the user's values ---


def with_set(
    runs: Sequence[TableRun], registry: Registry, overrides: Mapping[str, str]
) -> tuple[TableRun, ...]:
    """The runs with the user's recipe values, each with those that its method knows. Raises UnknownName for a key that none of them
    knows, BenchError for a series."""
    for key, text in overrides.items():
        if len(series({key: text})) > 1:
            raise BenchError(
                f"--set {key}={text}: a table is run again with one value per key",
                "bench run --set KEY=A,B,C",
            )
    every = in_order(runs)
    classes = [registry[run.method].cls for run in every]
    trained = [learns(cls, run.setting) for cls, run in zip(classes, every, strict=True)]
    if overrides and every:
        check_overrides(overrides, list(dict.fromkeys(classes)), any(trained))
    for run, cls, learning in zip(every, classes, trained, strict=True):
        recipe = merge(cls, None, "", overrides, trained=learning)
        run.overrides = {key: value for key, value in overrides.items() if key in recipe}
        if run.on_as in run.overrides:  # the user has one already
            run.on, run.on_as = None, ""
    return tuple(runs)


# --- their seeds, their plans, their records ---


def in_order(runs: Sequence[TableRun]) -> list[TableRun]:
    """Every run that can be done, each after the one that it needs."""
    runnable = [run for run in runs if not run.why_not]
    return sorted(
        dict.fromkeys([*(run.on for run in runnable if run.on), *runnable]),
        key=lambda run: run.on is not None,
    )


def seeds_of(run: TableRun, runs: Sequence[TableRun], chosen: Sequence[int]) -> tuple[int, ...]:
    """The user's, or as many as the printed numbers have, also those of the runs that need this one. One if the paper does not say, for a
    figure, and for a trial, which is not compared with the paper."""
    if chosen:
        return tuple(chosen)
    meant = [
        row.first.repeats
        for one in [run, *(one for one in runs if one.on is run)]
        for row in one.rows
        if not one.differs_from(row.first)
    ]
    return tuple(range(FIRST_SEED, FIRST_SEED + max(meant, default=1)))


def plan_runs(
    runs: Sequence[TableRun],
    config: RunConfig,
    registry: Registry,
    store: RunsFolder,
    data: DataFolder,
    ready: Callable[[Reference], Reference],
) -> list[PlannedRun]:
    """Plan each of these runs, as ``bench run`` does, or note the error that prevents it. The seeds of ``config`` are the user's."""
    for run in runs:
        run.planned, run.error = (), None
        try:
            run.planned = tuple(
                make_all(
                    _configs(run, seeds_of(run, runs, config.seeds), config, store),
                    registry,
                    data,
                    ready,
                )
            )
        except BenchError as error:
            run.error = error
    return [planned for run in runs for planned in run.planned]


def _configs(
    run: TableRun, seeds: Sequence[int], config: RunConfig, store: RunsFolder
) -> list[RunConfig]:
    """One for each encoder that the run needs. Raises BenchError if there is none yet."""
    if run.on is None:
        return [run.config(config, seeds)]
    folders = {record.seed: str(folder) for record, folder in finished(run.on, store)}
    if not folders:
        raise BenchError(f"it needs a finished run of {run.on.name}")
    by_folder: dict[str, list[int]] = {}
    for seed in seeds:
        if folder := folders.get(seed, folders.get(None)):
            by_folder.setdefault(folder, []).append(seed)
    return [run.config(config, some, folder) for folder, some in by_folder.items()]


def finished(run: TableRun, store: RunsFolder) -> list[Run]:
    """The finished runs among the planned ones of this run."""
    return [
        Run(record, store.folder(one.run_id))
        for one in run.planned
        if (record := store.get(one.run_id, one.fingerprint)) is not None
        and record.status == "finished"
    ]
