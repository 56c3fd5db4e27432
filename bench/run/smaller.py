"""Runs with smaller vectors: made of the whole ones, which another run has stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from bench.base.errors import BenchError, UnknownName
from bench.compare.statistics.table import Table
from bench.compare.tables import make_tables
from bench.method.finished import FinishedEncoder
from bench.method.recipe import Recipe, Value
from bench.method.smaller import FLOAT32, PRECISIONS, Smaller
from bench.records.names import VECTORS
from bench.records.record import SMALLER, RunRecord
from bench.records.run import Run
from bench.records.store import RunsFolder
from bench.run.planned import PlannedRun, with_fingerprint


@dataclass(frozen=True)
class Sizes:
    """The dimensions and precisions that a user asks for, each with each; false if none."""

    dimensions: tuple[int, ...] = ()
    precisions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.dimensions or self.precisions)

    @classmethod
    def read(cls, dimensions: Sequence[str | int], precisions: Sequence[str]) -> Sizes:
        """Read what was typed. Raises BenchError for anything but numbers from 1 and names of
        precisions.
        """
        counts = []
        for one in dimensions:
            if not str(one).isdecimal() or int(one) < 1:
                raise BenchError(f"--dimensions {one}: expected whole numbers from 1, such as 64")
            counts.append(int(one))
        for name in precisions:
            if name not in PRECISIONS:
                raise UnknownName("precision of vectors", name, PRECISIONS)
        return cls(tuple(dict.fromkeys(counts)), tuple(dict.fromkeys(precisions)))


def with_sizes(run: PlannedRun, sizes: Sizes) -> PlannedRun:
    """Return the run of the whole vectors that smaller ones are made of.

    Raises BenchError if a run's vectors cannot be made smaller: the run of a method, which has its
    own recipe, or a run with smaller vectors.
    """
    if not sizes:
        return run
    if not issubclass(run.plugin.cls, FinishedEncoder) or SMALLER & run.recipe.keys():
        raise BenchError(
            f"{run.run_id}: smaller vectors are for ready-made encoders",
            "in Python bench.evaluate(bench.load_run(RUN), dimensions=[64]) scores its encoder",
        )
    return replace(run, dimensions_needed=max(sizes.dimensions, default=0))


def check_width(needed: int, dimension: object, name: str) -> None:
    """Raise BenchError if vectors have fewer numbers than are needed. ``dimension``: None if it is
    not known.
    """
    if isinstance(dimension, int) and needed > dimension:
        raise BenchError(
            f"--dimensions {needed}: vectors of {name} have {dimension}",
            f"--dimensions {dimension}, or less",
        )


def smaller_runs(run: PlannedRun, record: RunRecord, sizes: Sizes) -> list[PlannedRun]:
    """Return the runs of a ready-made encoder with vectors of these sizes, without the run of whole
    vectors.

    ``run``, ``record``: with the whole vectors. Raises BenchError for more dimensions than they
    have.
    """
    dimension = (record.provenance.backbone.model or {}).get("dimension")
    check_width(max(sizes.dimensions, default=0), dimension, record.backbone_name)
    runs = []
    for count, precision in product(sizes.dimensions or (None,), sizes.precisions or (FLOAT32,)):
        values = Smaller(None if count == dimension else count, precision).values()
        if not values:
            continue
        given = {key: Value(value, f"--set {key}={value}") for key, value in values.items()}
        recipe = Recipe({**run.recipe.values_with_source(), **given})
        runs.append(with_fingerprint(replace(run, recipe=recipe, fingerprint="")))
    return runs


def tables_of_sizes(
    run: PlannedRun, whole: RunRecord, smaller: Sequence[RunRecord], store: RunsFolder
) -> list[Table]:
    """Return the tables of what was asked for: the whole vectors of an encoder, and what smaller
    ones cost.
    """
    runs = [Run(record, store.folder(record.run_id)) for record in (whole, *smaller)]
    wanted = {(task.suite, task.protocol) for task in run.tasks}
    made = make_tables(runs, baseline=whole.run_id)
    return [table for table in made if (table.suite, table.protocol) in wanted]


def find_vectors(run: PlannedRun, store: RunsFolder) -> tuple[Path, str]:
    """Return the folder and the first part of the key of a run's stored vectors: its own, or those
    of the run with the whole ones, if there is one.
    """
    if Smaller.of(run.recipe) is not None:
        kept = run.recipe.values_with_source()
        for key in SMALLER:
            kept.pop(key, None)
        whole = with_fingerprint(replace(run, recipe=Recipe(kept), fingerprint=""))
        if store.get(whole.run_id, whole.fingerprint) is not None:
            run = whole
    return store.folder(run.run_id) / VECTORS, run.fingerprint[:16]
