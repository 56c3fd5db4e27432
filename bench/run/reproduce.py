"""A printed table or figure, run again: the runs that it means, in an order in which they can be
done, with their seeds and plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench.backbones import Reference
from bench.base.errors import BenchError
from bench.data.sets import DataFolder
from bench.method.config import RunConfig
from bench.method.plugins import Registry
from bench.method.recipe_checks import check_overrides
from bench.method.recipes import merge_recipe
from bench.records import Run, RunsFolder
from bench.run.options import combinations_of
from bench.run.plan import plan_configs
from bench.run.planned import PlannedRun, learns
from bench.run.table_run import TableRun

FIRST_SEED = 42
"""Of one run; further runs have the seeds that follow it, so that a larger number of runs includes
a smaller one.
"""


def with_set(
    runs: Sequence[TableRun], registry: Registry, overrides: Mapping[str, str]
) -> tuple[TableRun, ...]:
    """Return the runs with the user's recipe values, each with those that its method knows.

    Raises UnknownName for a key that none of them knows, BenchError for a series.
    """
    for key, text in overrides.items():
        if len(combinations_of({key: text})) > 1:
            raise BenchError(
                f"--set {key}={text}: a table is run again with one value per key",
                "bench run --set KEY=A,B,C",
            )
    every = runs_in_order(runs)
    classes = [registry[run.method].cls for run in every]
    trained = [learns(cls, run.setting) for cls, run in zip(classes, every, strict=True)]
    if overrides and every:
        check_overrides(overrides, list(dict.fromkeys(classes)), any(trained))
    for run, cls, learning in zip(every, classes, trained, strict=True):
        recipe = merge_recipe(cls, None, "", overrides, trained=learning)
        run.overrides = {key: value for key, value in overrides.items() if key in recipe}
        if run.on_as in run.overrides:  # the user has one already
            run.on, run.on_as = None, ""
    return tuple(runs)


def runs_in_order(runs: Sequence[TableRun]) -> list[TableRun]:
    """Return every run that can be done, each after the run that it needs."""
    runnable = [run for run in runs if not run.why_not]
    return sorted(
        dict.fromkeys([*(run.on for run in runnable if run.on), *runnable]),
        key=lambda run: run.on is not None,
    )


def seeds_of(run: TableRun, runs: Sequence[TableRun], chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the user's seeds, or as many as the printed numbers have.

    The numbers of the runs that need this one count, too. One seed if the paper does not say, for a
    figure, and for a trial, which is not compared with the paper.
    """
    if chosen:
        return tuple(chosen)
    count = 1
    needing = [other for other in runs if other.on is run]
    for table_run in [run, *needing]:
        for row in table_run.rows:
            if not table_run.differs_from(row.first):
                count = max(count, row.first.repeats)
    return tuple(range(FIRST_SEED, FIRST_SEED + count))


def plan_table_runs(
    runs: Sequence[TableRun],
    config: RunConfig,
    registry: Registry,
    store: RunsFolder,
    data: DataFolder,
    ready: Callable[[Reference], Reference],
) -> list[PlannedRun]:
    """Plan each of these runs, as ``bench run`` does, or note the error that prevents it.

    The seeds of ``config`` are the user's.
    """
    for run in runs:
        run.planned, run.error = (), None
        try:
            run.planned = tuple(
                plan_configs(
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
    """Return a config for each encoder that the run needs. Raises BenchError if none exists yet."""
    if run.on is None:
        return [run.config(config, seeds)]
    folders = {record.seed: str(folder) for record, folder in finished_runs_of(run.on, store)}
    if not folders:
        raise BenchError(f"it needs a finished run of {run.on.name}")
    by_folder: dict[str, list[int]] = {}
    for seed in seeds:
        folder = folders.get(seed, folders.get(None))
        if folder:
            by_folder.setdefault(folder, []).append(seed)
    return [run.config(config, some, folder) for folder, some in by_folder.items()]


def finished_runs_of(run: TableRun, store: RunsFolder) -> list[Run]:
    """Return the finished runs among the planned ones of this run."""
    finished = []
    for planned in run.planned:
        record = store.get(planned.run_id, planned.fingerprint)
        if record is not None and record.status == "finished":
            finished.append(Run(record, store.folder(planned.run_id)))
    return finished
