"""A printed table or figure -> the runs that it means. Nothing is read or trained here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.base.errors import BenchError
from bench.compare.formatting import setting_words
from bench.method import Method, Recipe
from bench.references import (
    RUNS,
    SCORES,
    FigureRuns,
    Part,
    ReferenceResult,
    Row,
    figure_runs,
    results,
    rows,
)
from bench.references.checkpoints import Checkpoint, released_as, released_for, scored_from
from bench.references.ours import SUITES, meaning
from bench.run.plan import NOT_TRAINED, Request, learns
from bench.run.plugins import Registry
from bench.run.recipe_file import Entry, entries
from bench.run.recipes import (
    ON_REQUEST,
    check_overrides,
    merge,
    one_value,
    series,
    variants_of,
    whole_entry,
)

OWN, COPIED = "own", "copied"
OPEN = ("not stated", "presumably", "inferred")
"""Words of a footnote that leaves something open which a run must settle."""
SEVERAL = ("mean of", "best of")
"""How ``runs`` of a printed number begins where it is of several trainings."""


@dataclass(frozen=True, kw_only=True)
class WantedRun:
    """One run, of every seed that is asked for, and the printed rows that it stands for."""

    rows: tuple[Row, ...]
    method: str = ""
    variant: str = ""
    setting: str = ""
    backbone: str = ""  # as bench run takes it: a hub name, a folder, builtin
    suites: tuple[str, ...] = ()
    changes: Mapping[str, str] = field(
        default_factory=dict
    )  # recipe values that the print names: --set
    asked: Mapping[str, str] = field(default_factory=dict)  # recipe values that the user changed
    on: WantedRun | None = (
        None  # the run that it stands on: whose encoder is its backbone, or the value of a recipe key
    )
    on_as: str = ""  # that key ("teacher"); "": its backbone
    instead_of: str = ""  # the tables' backbone, where another one stands in for it
    checkpoint: Checkpoint | None = None  # the authors' own, which is scored and not trained
    title: str = ""  # of what cannot be run and has no rows
    why_not: str = ""  # why it cannot be run; then the rest may be empty
    doubts: tuple[str, ...] = ()  # what the print leaves open

    @property
    def name(self) -> str:
        """ "promcse+eh, supervised, roberta-large"; of what cannot be run, its rows."""
        if not self.method:
            return ", ".join(self.labels) or self.title
        what = (
            self.method
            + (f"+{self.variant}" if self.variant else "")
            + "".join(f" {k}={v}" for k, v in self.changes.items())
        )
        where = self.backbone
        if self.on:
            where = (
                f"{where}, {self.on_as} {self.on.method}"
                if self.on_as
                else f"the encoder of {self.on.method} on {where}"
            )
        return f"{what}, {setting_words(self.setting)}, {where}"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.first.label for row in self.rows))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the plan should know: that a checkpoint is scored, and what the print leaves open."""
        if self.checkpoint is None:
            return self.doubts
        tables = [
            first.paper + ":" + first.table
            for first in (row.first for row in self.rows)
            if scored_from(first)
        ]
        why = (
            f"{', '.join(dict.fromkeys(tables))} took it from a checkpoint"
            if tables
            else "--released"
        )
        return (
            f"the authors' released checkpoint is scored and nothing is trained ({why})",
            *self.doubts,
        )

    @property
    def comparable(self) -> bool:
        """Whether its numbers are meant to be those of the print: no other backbone, no recipe value of the user's."""
        return not self.instead_of and not self.asked and (self.on is None or self.on.comparable)

    def compares_with(self, cell: ReferenceResult) -> bool:
        """Whether this printed number is meant to be that of the run: not where it is a mean, or the best, of several trainings and
        the run scores the one checkpoint that was released."""
        return self.comparable and (self.checkpoint is None or not cell.runs.startswith(SEVERAL))

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal where two rows mean the same run."""
        below = self.on.identity if self.on else None
        changes = tuple(sorted({**self.changes, **self.asked}.items()))
        return (
            (self.method, self.variant, self.setting, self.backbone, changes, below)
            if self.method
            else (self.rows or self.title,)
        )

    def request(
        self,
        seeds: tuple[int, ...],
        *,
        text: str,
        corpus: str | None,
        precision: str,
        below: str = "",
        allow_pickle: bool = False,
    ) -> Request:
        """What ``bench run`` would be asked; ``below``: the folder of the run that it stands on."""
        value = {self.on_as: below} if self.on_as and below else {}
        return Request(
            methods=(self.method,),
            backbones=(self.backbone if value else below or self.backbone,),
            setting=self.setting,
            variant=self.variant,
            seeds=seeds,
            suites=self.suites,
            text=text,
            corpus=corpus,
            overrides={
                key: one_value(text)
                for key, text in {**self.changes, **value, **self.asked}.items()
            },
            precision=precision,
            allow_pickle=allow_pickle,
        )


def wanted_runs(
    paper: str,
    table: str,
    registry: Registry,
    *,
    words: Sequence[str] = (),
    backbones: Sequence[str] = (),
    released: bool = False,
) -> tuple[WantedRun, ...]:
    """The runs of a table, in its order; rows that mean the same run are one. Those that cannot be run say why.

    A row that the paper itself took from a checkpoint is that checkpoint; ``released``: so is every row of which one is known, and
    what would be trained is left out.

    ``words`` choose rows: a setting, a method, "own" or "copied", or part of a row's label. ``backbones``: names (or folders of
    that name) that the table has choose rows; any other one stands in for all of them. Raises BenchError for a word that fits no row.
    """
    every = rows([r for r in results(paper=paper) if r.table == table])
    chosen = _choose(every, words, f"{paper}:{table}")
    places = _backbones(every, backbones)
    if not any(places(row) for row in chosen):
        have = ", ".join(dict.fromkeys(row.first.backbone for row in chosen))
        raise BenchError(
            f"--backbone {','.join(backbones)}: the chosen rows of {paper}:{table} are of {have}",
            f"bench references {paper}:{table}",
        )
    meant = [
        _meant(row, backbone, instead_of, registry, released)
        for row in chosen
        for backbone, instead_of in places(row)
    ]
    return together([_untrained(meant, registry, f"{paper}:{table}") if released else meant])


def figure(
    runs: FigureRuns, registry: Registry, *, backbones: Sequence[str] = (), released: bool = False
) -> tuple[WantedRun, ...]:
    """The runs that a figure is drawn from, in its order; a series of a recipe value is a run for each. ``released`` as of a table."""
    printed = {
        backbone for drawn in figure_runs() for backbone in drawn.backbones
    }  # these choose figures, as they choose rows of a table
    places = [(name, "") for name in backbones if Path(name).name in runs.backbones]
    places += [
        (name, backbone)
        for name in backbones
        if Path(name).name not in printed
        for backbone in runs.backbones
    ]
    if backbones and not places:
        raise BenchError(
            f"--backbone {','.join(backbones)}: {runs.part.part} of {runs.part.paper} is of {', '.join(runs.backbones)}",
            runs.part.command,
        )
    places = places or [(backbone, "") for backbone in runs.backbones]
    meant: list[WantedRun] = []
    for setting, method, variant in runs.runs:
        if method not in registry.plugins:
            continue
        own = registry[method].cls.own_backbone
        for changes in series(dict([runs.series]) if runs.series else {}):
            for backbone, instead_of in places:
                run = WantedRun(
                    rows=(),
                    method=method,
                    variant=variant,
                    setting=setting,
                    backbone=own or backbone,
                    suites=runs.suites,
                    changes=changes,
                    instead_of="" if own else instead_of,
                    doubts=(runs.open,) if runs.open else (),
                )
                checkpoint = (
                    released_as(method, setting, backbone)
                    if released and not run.variant and not changes
                    else None
                )
                meant.append(run if checkpoint is None else _from_checkpoint(run, checkpoint))
    return together([_untrained(meant, registry, runs.part.name) if released else meant])


def _from_checkpoint(run: WantedRun, checkpoint: Checkpoint) -> WantedRun:
    """The authors' checkpoint in the place of a training; its rows and suites stay."""
    doubts = (*run.doubts, checkpoint.note) if checkpoint.note else run.doubts
    return replace(
        run,
        method=checkpoint.ours,
        variant="",
        setting=NOT_TRAINED,
        backbone=checkpoint.hub,
        changes=checkpoint.set,
        checkpoint=checkpoint,
        doubts=doubts,
    )


def _untrained(runs: Sequence[WantedRun], registry: Registry, name: str) -> list[WantedRun]:
    """With what would be trained left out. Raises BenchError where no released checkpoint remains."""
    if not any(run.checkpoint for run in runs):
        raise BenchError(
            f"--released: no released checkpoint is listed for these rows of {name}",
            "bench references checkpoints",
        )
    why = "--released trains nothing, and no released checkpoint of it is listed (bench references checkpoints)"
    return [
        WantedRun(rows=run.rows, title=run.name, why_not=why)
        if run.method and (run.on is not None or learns(registry[run.method].cls, run.setting))
        else run
        for run in runs
    ]


def part(
    paper_part: Part,
    registry: Registry,
    *,
    words: Sequence[str] = (),
    backbones: Sequence[str] = (),
    released: bool = False,
) -> tuple[WantedRun, ...]:
    """The runs of a table or a figure. Raises BenchError for a part that has none."""
    if paper_part.how == SCORES:
        return wanted_runs(
            paper_part.paper,
            paper_part.short,
            registry,
            words=words,
            backbones=backbones,
            released=released,
        )
    if paper_part.how != RUNS:
        raise BenchError(
            f"{paper_part.name} means no runs: it shows {paper_part.shows}",
            paper_part.command or paper_part.why,
        )
    if words:
        raise BenchError(
            f"--rows {','.join(words)}: {paper_part.part} of {paper_part.paper} has no rows",
            "--rows belongs to tables",
        )
    return figure(
        next(drawn for drawn in figure_runs() if drawn.part == paper_part),
        registry,
        backbones=backbones,
        released=released,
    )


def together(parts: Sequence[Sequence[WantedRun]]) -> tuple[WantedRun, ...]:
    """The runs of several tables and figures, each once, with the rows of all."""
    merged: dict[tuple[object, ...], WantedRun] = {}
    for runs in parts:
        for run in runs:
            earlier = merged.get(run.identity)
            merged[run.identity] = run if earlier is None else _together(earlier, run)
    return tuple(merged.values())


def scored_on(run: WantedRun, suites: tuple[str, ...]) -> WantedRun:
    """The run, scored on other suites than its table's."""
    return (
        replace(run, suites=suites, on=scored_on(run.on, suites) if run.on else None)
        if run.method
        else run
    )


def _choose(every: Sequence[Row], words: Sequence[str], name: str) -> list[Row]:
    for word in words:
        if not any(_fits(row, word) for row in every):
            labels = ", ".join(dict.fromkeys(row.first.label for row in every))
            raise BenchError(
                f"--rows {word}: no row of {name} has it: {labels}",
                "a setting, a method, own, copied, or part of a row's label",
            )
    return [row for row in every if not words or any(_fits(row, word) for word in words)]


def _fits(row: Row, word: str) -> bool:
    first, word = row.first, word.lower()
    means = meaning(first.method, first.variant, first.setting, first.backbone)
    names = {
        first.setting,
        first.method,
        means.method,
        means.name,
        OWN if first.own_result else COPIED,
    }
    return word in names or word in first.label.lower()


def _backbones(
    every: Sequence[Row], asked: Sequence[str]
) -> Callable[[Row], list[tuple[str, str]]]:
    """A function from a row to the (backbone, what it stands in for) on which it is to be run."""
    printed = {row.first.backbone for row in every}
    here = {Path(name).name: name for name in asked if Path(name).name in printed}
    others = [name for name in asked if Path(name).name not in printed]

    def places(row: Row) -> list[tuple[str, str]]:
        mine = row.first.backbone
        if not asked:
            return [(mine, "")]
        return ([(here[mine], "")] if mine in here else []) + [(name, mine) for name in others]

    return places


def _meant(
    row: Row, backbone: str, instead_of: str, registry: Registry, released: bool
) -> WantedRun:
    first = row.first
    means = meaning(first.method, first.variant, first.setting, first.backbone)
    open_notes = [
        cell.note
        for cell in row.cells
        if cell.own_result and any(word in cell.note for word in OPEN)
    ]
    checkpoint = None if instead_of else released_for(first) if released else scored_from(first)
    if checkpoint is not None and checkpoint.ours in registry.plugins:
        doubts = tuple(dict.fromkeys(open_notes))
        return _from_checkpoint(
            WantedRun(rows=(row,), suites=(SUITES[first.metric],), doubts=doubts), checkpoint
        )
    doubts = tuple(dict.fromkeys(text for text in (means.doubt, *open_notes) if text))
    if means.why_not:
        return WantedRun(rows=(row,), why_not=means.why_not)
    if means.method not in registry.plugins:
        return WantedRun(
            rows=(row,), why_not=f"no method '{means.method}' is installed (bench methods)"
        )
    cls = registry[means.method].cls
    setting = _setting(cls, means.setting or first.setting, means.on)
    if setting is None:
        return WantedRun(
            rows=(row,),
            why_not=f"{means.method} has no {first.setting} setting here, only {', '.join(cls.settings)}",
        )
    if means.variant and means.variant not in variants_of(cls):
        return WantedRun(
            rows=(row,), why_not=f"{means.method} has no variant '{means.variant}' here"
        )
    run = WantedRun(
        rows=(row,),
        method=means.method,
        variant=means.variant,
        setting=setting,
        backbone=cls.own_backbone or backbone,
        suites=(SUITES[first.metric],),
        changes=means.set,
        doubts=doubts,
        instead_of="" if cls.own_backbone else instead_of,
    )
    key, below = next(iter(means.uses.items()), ("", means.on))
    if not below:
        return run
    if below not in registry.plugins:
        return WantedRun(
            rows=(row,), why_not=f"it stands on {below}, which is not installed (bench methods)"
        )
    return replace(
        run,
        on=WantedRun(
            rows=(),
            method=below,
            setting=means.on_setting or registry[below].cls.settings[0],
            backbone=run.backbone,
            suites=run.suites,
            instead_of=run.instead_of,
        ),
        on_as=key,
    )


def _setting(cls: type[Method], printed: str, on: str) -> str | None:
    """The harness's setting of a printed one: what is only fitted or pooled, or stands on a finished encoder, has one of its own."""
    if printed in cls.settings:
        return printed
    return (
        cls.settings[0]
        if len(cls.settings) == 1 and (cls.settings == (NOT_TRAINED,) or on)
        else None
    )


def _together(a: WantedRun, b: WantedRun) -> WantedRun:
    suites = tuple(dict.fromkeys(a.suites + b.suites))
    return replace(
        a,
        rows=a.rows + b.rows,
        suites=suites,
        doubts=tuple(dict.fromkeys(a.doubts + b.doubts)),
        on=replace(a.on, suites=suites) if a.on else None,
        instead_of=", ".join(
            dict.fromkeys(filter(None, [*a.instead_of.split(", "), *b.instead_of.split(", ")]))
        ),
    )


def check_asked(runs: Sequence[WantedRun], registry: Registry, asked: Mapping[str, str]) -> None:
    """Raises UnknownName for a recipe key that the method of none of these runs knows, BenchError for a series."""
    every = [
        run
        for wanted_run in runs
        for run in (wanted_run, wanted_run.on)
        if run is not None and run.method
    ]
    for key, text in asked.items():
        if len(series({key: text})) > 1:
            raise BenchError(
                f"--set {key}={text}: a table is run again with one value for each key",
                "bench run --set KEY=A,B,C",
            )
    if asked and every:
        classes = list({run.method: registry[run.method].cls for run in every}.values())
        check_overrides(
            asked, classes, any(learns(registry[run.method].cls, run.setting) for run in every)
        )


def with_asked(
    runs: Sequence[WantedRun], registry: Registry, asked: Mapping[str, str]
) -> tuple[WantedRun, ...]:
    """With the user's recipe values, each where the method knows its key."""

    def of(run: WantedRun) -> WantedRun:
        if not run.method or not asked:
            return run
        known = set(recipe(run, registry)[0])
        known |= set(ON_REQUEST) if "epochs" in known else set()
        fitting = {key: value for key, value in asked.items() if key in known}
        if run.on_as in fitting:  # the user has one already
            return replace(run, asked=fitting, on=None, on_as="")
        return replace(run, asked=fitting, on=of(run.on) if run.on else None)

    return tuple(of(run) for run in runs)


def recipe(run: WantedRun, registry: Registry) -> tuple[Recipe, Entry | None, str]:
    """The recipe of a run as ``bench run`` would have it, where it comes from, and a line where that is not its own backbone's."""
    plugin = registry[run.method]
    trained = learns(plugin.cls, run.setting)
    entry, line = whole_entry(
        plugin.cls,
        entries(plugin.folder, plugin.name),
        run.setting,
        run.backbone,
        run.variant,
        trained=trained,
    )
    merged = merge(plugin.cls, entry, run.variant, {**run.changes, **run.asked}, trained=trained)
    return merged, entry, line or ""


def check_rows(paper_part: Part, words: Sequence[str]) -> None:
    """Raises BenchError for a word of --rows that fits no row of the table."""
    if paper_part.how == SCORES:
        _choose(
            rows([r for r in results(paper=paper_part.paper) if r.table == paper_part.short]),
            words,
            paper_part.name,
        )
