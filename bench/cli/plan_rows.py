"""Runs of a plan in rows, one for all seeds, with steps, trained parameters and memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bench.method.contract import how_fitted
from bench.papers import PrintedRow
from bench.records import RunsFolder
from bench.run.done import is_finished
from bench.run.length import known_steps
from bench.run.memory import Held, fitting_chunk, held_by, memory_of, usable_memory
from bench.run.planned import PlannedRun


@dataclass(frozen=True)
class PlanRow:
    """Runs that differ only in the seed."""

    runs: tuple[PlannedRun, ...]

    pending: tuple[PlannedRun, ...]
    """The runs that are not trained."""

    unscored: tuple[PlannedRun, ...]
    """The runs that are trained, but lack the score of a task."""

    steps: int | None = None
    """Optimiser steps of each run; None: nothing is trained in steps, or tokens or a clock decide.
    """

    held: Held | None = None
    """What each run trains and holds; None: not known."""

    memory_bytes: int | None = None
    """Memory of each run; None: not known."""

    chunk: int | None = None
    """The --chunk with which the runs fit into memory. 0: none does; None: they fit as they are."""

    printed: tuple[PrintedRow, ...] = ()
    """The rows of a printed table that the runs make again, if the plan is of one."""

    @property
    def first(self) -> PlannedRun:
        """Any run of the row."""
        return self.runs[0]

    @property
    def in_steps(self) -> bool:
        """True if the runs are trained, and not in one pass of the method's own."""
        return self.first.corpus is not None and how_fitted(self.first.plugin.cls) != "pass"


def plan_rows(
    planned: Sequence[PlannedRun], store: RunsFolder, device: str, chunk: int | None = None
) -> list[PlanRow]:
    """Group runs by everything except the seed, with the memory of each on a device.

    ``chunk``: rows of a batch that are held in memory at a time.
    """
    groups: dict[str, list[PlannedRun]] = {}
    for run in planned:
        corpus = None if run.corpus is None else run.corpus.name
        identity = (*name_of(run), run.backbone.revision, corpus)
        groups.setdefault(json.dumps([identity, dict(run.recipe)], default=str), []).append(run)
    return [_plan_row(runs, store, device, chunk) for runs in groups.values()]


def _plan_row(
    runs: Sequence[PlannedRun], store: RunsFolder, device: str, chunk: int | None
) -> PlanRow:
    run = runs[0]
    steps = None
    if run.corpus is not None and how_fitted(run.plugin.cls) != "pass":
        steps = known_steps(run.recipe, len(run.corpus))
    held = held_by(run)
    memory = None
    fitting = None
    if held is not None:
        memory = memory_of(run, held, chunk)
        room = usable_memory(device)
        if memory > room:
            fitting = fitting_chunk(run, held, room) or 0
    return PlanRow(
        tuple(runs),
        pending=tuple(run for run in runs if not is_trained(run, store)),
        unscored=tuple(run for run in runs if lacks_scores(run, store)),
        steps=steps,
        held=held,
        memory_bytes=memory,
        chunk=fitting,
    )


def is_trained(run: PlannedRun, store: RunsFolder) -> bool:
    """Say if there is a finished record, with any suites."""
    record = store.get(run.run_id, run.fingerprint)
    return record is not None and record.status == "finished"


def lacks_scores(run: PlannedRun, store: RunsFolder) -> bool:
    """Say if a run is trained, but has no score yet of a task that is to be scored."""
    if not is_trained(run, store):
        return False
    # data is still to be fetched, or to be scored
    return len(run.task_data) < len(run.tasks) or not is_finished(run, store)


def name_of(run: PlannedRun) -> tuple[str, str, str, str]:
    return run.method, run.setting, run.variant, run.backbone.name
