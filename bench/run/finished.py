"""A finished run, found again: its method on its backbone, with the trained weights, ready to
encode.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.backbones import Reference, resolve_recorded
from bench.base.errors import BenchError, NotAModel
from bench.base.paths import find_path
from bench.base.places import recall_place
from bench.method.config import RunConfig
from bench.method.context import Context
from bench.method.contract import Method
from bench.method.own_vectors import own_backbone
from bench.method.plugins import Plugin, discover
from bench.method.recipe import Recipe, Value
from bench.records.damage import AGAIN, AGAIN_FRESH, UNREADABLE, checkpoint_problem
from bench.records.names import CHECKPOINT
from bench.records.record import RunRecord, read_record
from bench.records.store import RunsFolder
from bench.run.planned import learns


@dataclass(frozen=True)
class TrainedRun:
    """A finished run, as :func:`find_run` returns it: described, but not loaded yet."""

    record: RunRecord
    folder: Path
    plugin: Plugin
    recipe: Recipe
    notes: tuple[str, ...] = ()  # for the user, such as that the method's code has changed since

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT


def find_run(reference: str, runs: RunsFolder, plugins: Sequence[Path] = ()) -> TrainedRun:
    """Return the run that an id, the beginning of an id, or a path names.

    ``plugins`` are files given with --plugin. Raises UnknownName for an unknown run or method,
    RecordDamaged, and NotAModel if the run has no finished checkpoint.
    """
    file = runs.record_file(reference)
    record, folder = read_record(file), file.parent
    kind = record.provenance.backbone.model.get("kind")
    if kind in ("object", "function", "vectors") and record.model_name:
        raise NotAModel(
            f"{record.run_id} scored a model of kind '{kind}': its predictions are stored, the "
            "model is not",
            "bench verify computes its scores again",
        )
    made_by = record.provenance.plugin
    registry = discover(plugins)
    plugin = registry.of_run(record.run_id, record.method, made_by)
    trains = learns(plugin.cls, record.setting)
    if trains and record.training is None:
        problem: str | None = f"it has no finished checkpoint (status {record.status})"
    else:
        problem = checkpoint_problem(record, folder)
    if problem is not None:
        hint = AGAIN
        if UNREADABLE in problem:  # it may be somebody else's run
            hint = f"ask its owner: chmod -R a+rX {shlex.quote(str(folder))}"
        elif trains and record.training is not None:
            hint = AGAIN_FRESH
        raise NotAModel(f"{record.run_id}: {problem}", hint)
    changed = made_by.identity != plugin.code.identity
    note = f"the code of {plugin.name} has changed since this run was made; its vectors may differ"
    return TrainedRun(
        record,
        folder,
        plugin,
        recipe_of_record(record, plugin, folder.absolute().parent),
        registry.warnings + ((note,) if changed else ()),
    )


def recipe_of_record(record: RunRecord, plugin: Plugin, runs: Path) -> Recipe:
    """Return the recipe of a finished run with the paths that its files and folders have on this
    machine, as the runs folder notes them.
    """
    contents = (record.provenance.determines or {}).get("places") or {}
    values = {key: Value(one.value, one.source, one.note) for key, one in record.recipe.items()}
    for key in plugin.cls.places:
        known = values.get(key)
        if known is None or not isinstance(known.value, str) or find_path(known.value):
            continue  # records of an earlier bench hold absolute paths
        place = recall_place(runs, contents.get(key))
        if place is not None:
            values[key] = replace(values[key], value=str(place))
    return Recipe(values)


def backbone_of(record: RunRecord, plugin: Plugin, runs: Path | None = None) -> Reference:
    """Return the backbone that a run was made with; from the hub, the same commit.

    ``runs``: the folder of the run's folder, which knows where this machine has it. Raises
    NotAModel if a folder has changed since, or is not here.
    """
    known = record.provenance.backbone
    name, revision = known.name or record.backbone, str(known.revision)
    if own_backbone(plugin.cls) is not None:
        return Reference(name=name, revision=revision, path=None)
    reference = resolve_recorded(name, known.revision, runs)
    if reference.path is not None and known.revision not in (None, reference.revision):
        raise NotAModel(
            f"{record.run_id} was made with {name} revision {revision[:12]}; here it is "
            f"{reference.revision[:12]}",
            "restore that revision of the backbone",
        )
    return reference


def load_finished_run(
    run: TrainedRun,
    *,
    device: str = "cpu",
    offline: bool = False,
) -> Method:
    """Return the run's method, in evaluation mode on ``device``, ready to ``encode``.

    Nothing is written to the run's folder.

    Raises NotAModel if the backbone is not available, BenchError if checkpoint, backbone and recipe
    do not fit together.
    """
    from bench.method.building import build_method

    record, cls = run.record, run.plugin.cls
    context = Context(
        config=RunConfig(device=device, offline=offline),
        seed=record.seed or 0,
        folder=run.folder,
    )
    backbone = backbone_of(record, run.plugin, run.folder.absolute().parent)
    trains = learns(cls, record.setting)
    try:
        method = build_method(cls, backbone, run.recipe, context, learns=trains)
    except (KeyError, AttributeError) as error:  # a recipe of an older version of the method
        if not set(cls.defaults) - set(run.recipe):
            raise
        raise BenchError(
            f"{record.run_id}: its recipe lacks a value that {record.method} needs now: {error}",
            "its command makes a new run, with today's recipe",
        ) from error
    method.load(run.checkpoint)
    return method
