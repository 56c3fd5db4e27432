"""Runs of a plan in rows, one for all seeds, with estimates of time and memory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.records import RunsFolder
from bench.run.cards import memory_here
from bench.run.done import is_scored
from bench.run.estimates import (
    USABLE,
    Estimate,
    estimate,
    fitting_chunk,
    is_trained,
    speeds_of_earlier_runs,
)
from bench.run.planned import PlannedRun


@dataclass(frozen=True)
class PlanRow:
    """Runs that differ only in the seed."""

    runs: tuple[PlannedRun, ...]

    guess: Estimate
    """Time and memory of each of the runs."""

    pending: tuple[PlannedRun, ...]
    """The runs that are not trained."""

    unscored: tuple[PlannedRun, ...]
    """The runs that are trained, but lack the score of a task."""

    chunk: int | None
    """The --chunk with which the runs fit into memory. 0: none does; None: they fit as they are."""

    @property
    def first(self) -> PlannedRun:
        """Any run of the row."""
        return self.runs[0]


def plan_rows(
    planned: Sequence[PlannedRun], store: RunsFolder, device: str, chunk: int | None = None
) -> list[PlanRow]:
    """Group runs by everything except the seed, and estimate time and memory on a device or card.

    ``chunk``: rows of a batch that are held in memory at a time.
    """
    earlier: Mapping[tuple[str, str, str], float] = {}
    if any(run.corpus is not None for run in planned):
        earlier = speeds_of_earlier_runs(store, device)
    groups: dict[str, list[PlannedRun]] = {}
    for run in planned:
        corpus = None if run.corpus is None else run.corpus.name
        identity = (*name_of(run), run.backbone.revision, corpus)
        groups.setdefault(json.dumps([identity, dict(run.recipe)], default=str), []).append(run)
    return [_plan_row(runs, store, device, earlier, chunk) for runs in groups.values()]


def _plan_row(
    runs: Sequence[PlannedRun],
    store: RunsFolder,
    device: str,
    earlier: Mapping[tuple[str, str, str], float],
    chunk: int | None,
) -> PlanRow:
    guess = estimate(runs[0], earlier, device, chunk)
    fitting = None
    if (guess.memory_bytes or 0) > USABLE * memory_here(device):
        fitting = fitting_chunk(runs[0], device) or 0
    return PlanRow(
        tuple(runs),
        guess,
        pending=tuple(run for run in runs if not is_trained(run, store)),
        unscored=tuple(run for run in runs if lacks_scores(run, store)),
        chunk=fitting,
    )


def lacks_scores(run: PlannedRun, store: RunsFolder) -> bool:
    """Say if a run is trained, but has no score yet of a task that is to be scored."""
    record = store.get(run.run_id, run.fingerprint)
    if record is None or record.status != "finished":
        return False
    if len(run.task_data) < len(run.tasks):  # data is still to be fetched
        return True
    tasks = zip(run.tasks, run.task_data, strict=True)
    return any(not is_scored(record, task, known) for task, known in tasks)


def name_of(run: PlannedRun) -> tuple[str, str, str, str]:
    return run.method, run.setting, run.variant, run.backbone.name
