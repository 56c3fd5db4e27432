"""Find the model that an argument means, plan its run, and look at it before encoding."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.backbones import Reference
from bench.base.errors import BenchError, NotAModel, UnknownName
from bench.base.files import expand_home
from bench.base.sides import SIDES
from bench.base.text import looks_like_a_run, one_value
from bench.data.sets import DataFolder
from bench.method.config import RunConfig
from bench.method.own_vectors import own_backbone
from bench.method.plugins import Plugin, Registry, discover
from bench.method.prompts import prompted
from bench.papers import find_checkpoint
from bench.records import RunsFolder
from bench.records.record import PRETRAINED
from bench.run.external.objects import ObjectModel, object_plugin
from bench.run.external.stored import VectorsModel, file_plugin, table_plugin
from bench.run.finished import backbone_of, find_run
from bench.run.plan import plan_configs, plan_rescoring
from bench.run.planned import NOT_TRAINED, PlannedRun
from bench.run.vectors import sentences_by_way
from bench.score.suites import expand_suites, suite

HUB_NAME = r"\w[\w.-]*(/\w[\w.-]*)?(@[\w./-]+)?"


@dataclass(frozen=True)
class Model:
    """One model, not loaded yet."""

    # the name that the user gave
    label: str
    method: str = PRETRAINED
    backbone: str = ""
    # recipe values, as ``--set`` takes them
    overrides: Mapping[str, str] = field(default_factory=dict)
    # its method, if that was made for this model
    plugin: Plugin | None = None
    # the folder of the run that it is
    run: Path | None = None

    def store(self, runs: RunsFolder) -> RunsFolder:
        """Return the folder of this model's record; a run's record stays in its place."""
        if self.run is None or self.run.resolve().parent == runs.path.resolve():
            return runs
        return RunsFolder(self.run.resolve().parent)


def check_prompts(prompts: Mapping[str, str], suites: Sequence[str]) -> None:
    """Raise UnknownName for a prompt with a name that is not a task or a suite to score."""
    if not prompts:
        return
    scored = [suite(name) for name in expand_suites(suites)]
    known = [scored_suite.name for scored_suite in scored]
    for scored_suite in scored:
        known += [task.name for task in scored_suite.tasks]
    for name in prompts:
        if name not in known:
            raise UnknownName(
                "task",
                name,
                known,
                "among those to be scored",
                "bench suites NAME lists its tasks",
            )


def find_model(
    model: Any,
    *,
    runs: RunsFolder,
    name: str = "",
    prompt: str | None = None,
    prompts: Mapping[str, str] | None = None,
    sides: Mapping[str, str | None] | None = None,
    values: Mapping[str, str] | None = None,
) -> Model:
    """Find the model that an argument means.

    ``prompt`` is for all sentences, ``prompts`` for the sentences of a task or suite, ``sides`` for
    queries and documents. ``values`` are recipe values (``--set``) for a model that is built from a
    folder or the hub. Raises BenchError if it is not a model, or for options that do not go with
    it.
    """
    text = ""
    if isinstance(model, str | os.PathLike):
        text = os.fspath(model)
        if not text:
            raise NotAModel("the name of the model is empty", "bench evaluate MODEL --suite sts")
    overrides = dict(values or {})
    if prompt is not None:
        overrides["prompt"] = one_value(prompt)
    if prompts:
        by_task = json.dumps(dict(prompts), sort_keys=True, ensure_ascii=False)
        overrides["prompts"] = one_value(by_task)
    for side, side_prompt in (sides or {}).items():
        if side_prompt is not None:
            overrides[f"prompt_{side}"] = one_value(side_prompt)
    if isinstance(model, Mapping):
        plugin = table_plugin(model, name)
    elif not text:
        plugin = object_plugin(model, name)
    elif text.startswith("vectors:"):
        plugin = file_plugin(expand_home(text.removeprefix("vectors:")))
    else:
        return _stored_model(text, runs, overrides)
    if values:
        key = next(iter(values))
        raise BenchError(
            f"--set {key}=...: not for models of kind {plugin.name}, which bench does not build",
            f"leave --set {key}=... out",
        )
    backbone = str(own_backbone(plugin.cls))
    return Model(text or backbone, plugin.name, backbone, overrides, plugin)


def _stored_model(text: str, runs: RunsFolder, overrides: dict[str, str]) -> Model:
    """Find a run, by its path or the beginning of its id; a folder; or a model of the hub.

    A model that its authors released is scored as they do, unless an option says otherwise.
    """
    path = expand_home(text)
    folder = _run_folder(text, path, runs)
    if folder is not None:
        if overrides:
            raise BenchError(
                f"{text} is a run, which already has a recipe",
                "leave --prefix, --prompt, --prompt-query, --prompt-document and --set out",
            )
        return Model(text, run=folder)
    if not path.exists() and looks_like_a_run(text):
        raise runs.unknown(text)
    if not path.exists() and text in discover():
        raise NotAModel(
            f"MODEL {text}: that is a method, and no model", f"bench run {text} scores a method"
        )
    if path.is_file() or not (path.is_dir() or re.fullmatch(HUB_NAME, text, re.ASCII)):
        raise NotAModel(
            f"MODEL {text}: no such model",
            "a folder with config.json and model.safetensors, a hub name, a run or "
            "vectors:FILE.npz; in Python bench.evaluate takes a function",
        )
    released = find_checkpoint(text)
    if released is not None and released.hub == text.partition("@")[0]:
        values = {key: one_value(value) for key, value in released.set.items()} | overrides
        if released.ours == PRETRAINED or values.keys() == released.set.keys():
            return Model(text, released.ours, text, values)
    return Model(text, PRETRAINED, text, overrides)


def _run_folder(text: str, path: Path, runs: RunsFolder) -> Path | None:
    """Return the folder of the run with this path or beginning of an id; None without one."""
    if (path / "run.json").is_file():
        return path
    if os.sep in text or path.exists():
        return None
    if any(run_id.startswith(text) for run_id in runs.ids()):
        return runs.record_file(text).parent
    return None


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
    runs = plan_configs([config], methods, data, ready)
    for run in runs:
        check_side_prompts(run)
    return runs


def check_side_prompts(run: PlannedRun) -> None:
    """Raise BenchError for a prompt of queries or documents if no task tells them apart.

    Nothing is said while a task is missing: it may be the one.
    """
    given = [side for side in SIDES if run.recipe.get(f"prompt_{side}") is not None]
    if not given or run.missing or run.provisional:
        return
    if not any(known.task.sides for known in run.task_data):
        raise BenchError(
            f"--prompt-{given[0]}: no task that is scored has queries and documents",
            "leave it out, or score retrieval or pairs that say which column is which",
        )


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
