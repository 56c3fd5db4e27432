"""The runs of a table, in the order in which they can be done: their seeds, their plans, their records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.backbones import Reference
from bench.base.errors import BenchError
from bench.data.sets import DataFolder
from bench.run import plan
from bench.run.config import RunConfig
from bench.run.plugins import Registry
from bench.run.reproduce.table import TableRun
from bench.runs import Run, RunsFolder

FIRST_SEED = 42
"""That of one run, as everywhere; more runs have the seeds that follow it, so that those of fewer are done already."""


def in_order(runs: Sequence[TableRun]) -> list[TableRun]:
    """Every run that can be done, those that others stand on before them."""
    runnable = [run for run in runs if not run.why_not]
    below = [run.on for run in runnable if run.on]
    return list(dict.fromkeys([*below, *(run for run in runnable if not run.on), *runnable]))


def seeds_of(run: TableRun, runs: Sequence[TableRun], chosen: Sequence[int]) -> tuple[int, ...]:
    """The user's, or as many as the printed numbers are of, also those of the runs that stand on this one. One where the print does
    not say, of a figure, and of a trial, which is not compared with the print."""
    if chosen:
        return tuple(chosen)
    above = [run, *(one for one in runs if one.on is run)]
    rows = [(one, row.first) for one in above for row in one.rows]
    meant = [first.repeats for one, first in rows if not one.differs_from(first)]
    return tuple(range(FIRST_SEED, FIRST_SEED + max(meant, default=1)))


def plan_runs(
    runs: Sequence[TableRun],
    config: RunConfig,
    registry: Registry,
    store: RunsFolder,
    data: DataFolder,
    ready: Callable[[Reference], Reference],
) -> list[plan.PlannedRun]:
    """Plan each of these runs, as ``bench run`` does, or note the error for which it is left out. The seeds of ``config`` are those
    that the user chose."""
    for run in runs:
        run.planned, run.error = (), None
        try:
            configs = _configs(run, seeds_of(run, runs, config.seeds), config, store)
            run.planned = tuple(plan.make_all(configs, registry, data, ready))
        except BenchError as error:
            run.error = error
    return [planned for run in runs for planned in run.planned]


def _configs(
    run: TableRun, seeds: Sequence[int], config: RunConfig, store: RunsFolder
) -> list[RunConfig]:
    """One for each encoder that the run stands on. Raises BenchError where there is none yet."""
    if run.on is None:
        return [run.config(config, seeds)]
    folders = {record.seed: str(folder) for record, folder in finished(run.on, store)}
    if not folders:
        raise BenchError(f"it stands on {run.on.name}, which has no finished run")
    by_folder: dict[str, list[int]] = {}
    for seed in seeds:
        if folder := folders.get(seed, folders.get(None)):
            by_folder.setdefault(folder, []).append(seed)
    return [run.config(config, some, folder) for folder, some in by_folder.items()]


def finished(run: TableRun, store: RunsFolder) -> list[Run]:
    """The finished runs of a planned one, with their folders."""
    stored = [(store.get(one.run_id, one.fingerprint), one.run_id) for one in run.planned]
    return [
        Run(record, store.folder(run_id))
        for record, run_id in stored
        if record is not None and record.status == "finished"
    ]
