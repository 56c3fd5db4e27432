"""Plan the run of a model that bench did not build, and look at it before anything is encoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from bench.backbones import Reference
from bench.base.errors import BenchError
from bench.data.sets import DataFolder
from bench.method.config import RunConfig
from bench.method.own_vectors import own_backbone
from bench.method.plugins import Registry, discover
from bench.method.prompts import prompted
from bench.records import RunsFolder
from bench.run.external.find import Model
from bench.run.external.objects import ObjectModel
from bench.run.external.stored import VectorsModel
from bench.run.finished import backbone_of, find_run
from bench.run.plan import plan_configs, plan_rescoring
from bench.run.planned import NOT_TRAINED, PlannedRun
from bench.run.vectors import sentences_by_way


def plan_model(
    model: Model, config: RunConfig, data: DataFolder, ready: Callable[[Reference], Reference]
) -> list[PlannedRun]:
    """Plan the run of one model, as :func:`bench.run.plan.plan_configs` does.

    The config decides about suites, text, names and plugins.
    """
    config = replace(
        config,
        methods=(model.method,),
        backbones=(model.backbone,),
        setting=NOT_TRAINED,
        overrides=model.overrides,
        precision="fp32",
    )
    plugins = [Path(file) for file in config.plugins]
    if model.run is not None:
        return [_plan_run_again(model, model.run, config, data, ready)]
    if model.plugin is None:
        methods = discover(plugins)
    else:
        methods = Registry({model.method: model.plugin}, ())
    return plan_configs([config], methods, data, ready)


def _plan_run_again(
    model: Model,
    folder: Path,
    config: RunConfig,
    data: DataFolder,
    ready: Callable[[Reference], Reference],
) -> PlannedRun:
    """Plan a finished run, to be scored on more suites in its own record."""
    plugins = [Path(file) for file in config.plugins]
    if config.fresh:
        raise BenchError(
            f"--fresh: {folder} is a run, and would be trained again", "leave --fresh out"
        )
    run = find_run(str(folder), model.store(RunsFolder(folder)), plugins)
    backbone = backbone_of(run.record, run.plugin, run.folder.absolute().parent)
    if not own_backbone(run.plugin.cls):
        backbone = ready(backbone)
    title = "".join(config.names) or str(run.record.provenance.backbone.title or "")
    backbone = dataclasses.replace(backbone, title=title)
    planned = plan_rescoring(run.record, run.plugin, run.recipe, backbone, config, data)
    if planned.run_id != run.record.run_id:
        raise BenchError(
            f"{folder} was renamed: its record is {run.record.run_id}",
            "give the folder its name back",
        )
    return planned


def check_model(run: PlannedRun) -> None:
    """Raise BenchError for stored vectors that lack a sentence to score."""
    cls = run.plugin.cls
    if not issubclass(cls, VectorsModel):
        return
    texts: dict[str, None] = {}
    # tasks that load their sentences later have none here
    ways = sentences_by_way(run.recipe, run.task_data, tells_sides=cls.tells_sides)
    for way, sentences in ways.items():
        prompt = run.recipe.get("prompt") if way.prompt is None else way.prompt
        texts |= dict.fromkeys(prompted(prompt, sentences))
    cls.check_texts(list(texts))


def doubt_about(run: PlannedRun) -> str | None:
    """Return one line if a sentence has several vectors (chance, or its batch mates), else None."""
    cls = run.plugin.cls
    return cls.doubt() if issubclass(cls, ObjectModel) else None
