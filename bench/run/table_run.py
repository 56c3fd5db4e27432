"""The run that a printed row means: its method, values and backbone, or the reason why it cannot be
run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace as replace_config

from bench.base.errors import BenchError
from bench.base.text import one_value
from bench.compare.consistency import printed_runs
from bench.compare.words.names import setting_words
from bench.method.config import RunConfig
from bench.papers import Checkpoint, PrintedRow, ReferenceResult
from bench.run.planned import PlannedRun


@dataclass(kw_only=True, eq=False)
class TableRun:
    """One run, with every seed, and the printed rows that it repeats."""

    rows: tuple[PrintedRow, ...]
    method: str = ""
    variant: str = ""
    setting: str = ""
    backbone: str = ""  # as bench run takes it: a hub name, a folder, builtin
    suites: tuple[str, ...] = ()
    changes: Mapping[str, str] = field(default_factory=dict)  # recipe values that the paper names
    overrides: Mapping[str, str] = field(default_factory=dict)  # the user's recipe values
    # the run that gives its encoder as the backbone or as a recipe value
    on: TableRun | None = None
    on_as: str = ""  # the key of that value ("teacher"); "": its backbone
    instead_of: tuple[str, ...] = ()  # the printed backbones that this one replaces
    checkpoint: Checkpoint | None = None  # of the authors, which is scored and not trained
    why_not: str = ""  # the reason it is not run; then the rest may be empty
    # questions that the paper leaves open; and a line if a checkpoint is scored
    notes: tuple[str, ...] = ()
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
        """Say why this run cannot be compared with a printed number; "" if it can."""
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
        """Return the run with these seeds.

        ``options``: device, data and the like; ``below``: the folder of the run that it needs.
        """
        value = {self.on_as: below} if self.on_as and below else {}
        values = {**self.changes, **value, **self.overrides}
        return replace_config(
            options,
            methods=(self.method,),
            backbones=(self.backbone if value else below or self.backbone,),
            setting=self.setting,
            variant=self.variant,
            seeds=tuple(seeds),
            suites=self.suites,
            overrides={key: one_value(text) for key, text in values.items()},
        )
