"""Finished encoders to be scored, which bench did not build: what an argument of ``bench evaluate``, or an object, means, and how it becomes a run.

A model is anything that turns a list of strings into vectors (n, d). A folder, a hub name or a run is built by an installed method.
For the others a method is made here: :mod:`objects` (an object or a function of this process), :mod:`stored` (vectors that were
computed elsewhere) and :mod:`server`. Planning, execution, the record and the scores are those of ``bench run``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.backbones import Reference
from bench.base.errors import BenchError, NotAModel, UnknownName
from bench.base.text import one_value
from bench.data.sets import DataFolder
from bench.external.external import ExternalModel
from bench.external.objects import object_plugin
from bench.external.server import ServerOptions, server_plugin
from bench.external.stored import file_plugin, table_plugin
from bench.method import prompted, task_prompt
from bench.records import RunsFolder
from bench.records.record import PRETRAINED
from bench.references import find_checkpoint
from bench.run.config import RunConfig
from bench.run.finished import backbone_of, find_run
from bench.run.plan import plan_config, plan_rescoring
from bench.run.planned import NOT_TRAINED, PlannedRun
from bench.run.plugins import Plugin, Registry, discover
from bench.score.suites import expand_suites, suite

HUB_NAME = r"\w[\w.-]*(/\w[\w.-]*)?(@[\w./-]+)?"
ADDRESSES = ("http://", "https://")


@dataclass(frozen=True)
class Model:
    """One model, not loaded yet. ``plugin`` is its method if that was made for it; ``run`` is a run's folder."""

    label: str  # as the user names it
    method: str = PRETRAINED
    backbone: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    plugin: Plugin | None = None
    run: Path | None = None

    def store(self, runs: RunsFolder) -> RunsFolder:
        """The folder of this model's record: a run's record stays in its place."""
        return runs if self.run is None else RunsFolder(self.run.resolve().parent)


def check_prompts(prompts: Mapping[str, str], suites: Sequence[str]) -> None:
    """Raises UnknownName for a prompt whose name is neither a task nor a suite that is scored."""
    chosen = [suite(name) for name in expand_suites(suites)] if prompts else []
    known = [one.name for one in chosen] + [task.name for one in chosen for task in one.tasks]
    if strange := [name for name in prompts if name not in known]:
        raise UnknownName(
            "task",
            strange[0],
            known,
            "among those to be scored",
            "bench suites NAME lists its tasks",
        )


def find_model(
    model: Any,
    *,
    runs: RunsFolder,
    name: str = "",
    prompt: str = "",
    prompts: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    server: ServerOptions | None = None,
) -> Model:
    """What an argument means. ``values`` are recipe values (``--set``) for a model that is built from a folder or the hub.

    Raises BenchError if it is not a model, or for options that do not go with it.
    """
    text = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
    by_task = json.dumps(dict(prompts or {}), sort_keys=True, ensure_ascii=False)
    overrides = {
        **(values or {}),
        **({"prompt": one_value(prompt)} if prompt else {}),
        **({"prompts": one_value(by_task)} if prompts else {}),
    }
    if server not in (None, ServerOptions()) and not text.startswith(ADDRESSES):
        raise BenchError(
            "--model, --batch, --dimensions, --key-env and --empty-text are for a server; "
            f"{text or 'an object'} is not one",
            "http://HOST:PORT/v1/embeddings --model NAME",
        )
    if isinstance(model, Mapping):
        plugin = table_plugin(model, name)
    elif not text:
        plugin = object_plugin(model, name)
    elif text.startswith("vectors:"):
        plugin = file_plugin(Path(text.removeprefix("vectors:")).expanduser())
    elif text.startswith(ADDRESSES):
        plugin = server_plugin(text, server or ServerOptions())
    else:
        return _stored_model(text, runs, overrides)
    for key in values or {}:
        raise BenchError(
            f"--set {key}=...: not for models of kind {plugin.name}, which bench does not build",
            "--set is for a folder or a model of the hub",
        )
    backbone = str(plugin.cls.own_backbone)
    return Model(text or backbone, plugin.name, backbone, overrides, plugin)


def _stored_model(text: str, runs: RunsFolder, overrides: dict[str, str]) -> Model:
    """A run, by its path or the beginning of its id; a folder; or a model of the hub. If its authors released that and no option says
    otherwise, it is scored as they do."""
    path = Path(text).expanduser()
    folder = path if (path / "run.json").is_file() else None
    if (
        os.sep not in text
        and not path.exists()
        and any(run_id.startswith(text) for run_id in runs.ids())
    ):
        folder = runs.record_file(text).parent
    if folder is not None:
        if overrides:
            raise BenchError(
                f"{text} is a run, which already has a recipe",
                "leave --prefix, --prompt and --set out",
            )
        return Model(text, run=folder)
    if path.is_file() or not (path.is_dir() or re.fullmatch(HUB_NAME, text, re.ASCII)):
        raise NotAModel(
            f"MODEL {text}: no such model",
            "a folder with config.json and model.safetensors, a hub name, a run, "
            "vectors:FILE.npz, or a server's address",
        )
    if (released := find_checkpoint(text)) and released.hub == text.partition("@")[0]:
        values = {key: one_value(value) for key, value in released.set.items()} | overrides
        if released.ours == PRETRAINED or values.keys() == released.set.keys():
            return Model(text, released.ours, text, values)
    return Model(text, PRETRAINED, text, overrides)


def plan_model(
    model: Model, config: RunConfig, data: DataFolder, ready: Callable[[Reference], Reference]
) -> list[PlannedRun]:
    """The run of one model, as :func:`bench.run.plan.plan_config` plans it, with the suites, text, names and plugins of the config."""
    config = replace(
        config,
        methods=(model.method,),
        backbones=(model.backbone,),
        setting=NOT_TRAINED,
        overrides=model.overrides,
        precision="fp32",
    )
    plugins = [Path(file) for file in config.plugins]
    if model.run is None:
        return plan_config(
            config,
            Registry({model.method: model.plugin}, ()) if model.plugin else discover(plugins),
            data,
            ready,
        )
    if config.fresh:
        raise BenchError(
            f"--fresh: {model.run} is a run, and would be trained again", "leave --fresh out"
        )
    run = find_run(str(model.run), model.store(RunsFolder(model.run)), plugins)
    backbone = backbone_of(run.record, run.plugin, run.folder.absolute().parent)
    backbone = replace(
        backbone if run.plugin.cls.own_backbone else ready(backbone),
        title="".join(config.names) or str(run.record.provenance.backbone.title or ""),
    )
    planned = plan_rescoring(run.record, run.plugin, run.recipe, backbone, config, data)
    if planned.run_id != run.record.run_id:
        raise BenchError(
            f"{model.run} was renamed: its record is {run.record.run_id}",
            "give the folder its name back",
        )
    return [planned]


def check_model(run: PlannedRun) -> str | None:
    """One line about the cost of encoding, if it has one. Raises BenchError if it is certain to fail."""
    cls = run.plugin.cls
    if not issubclass(cls, ExternalModel):
        return None
    texts: dict[str, None] = {}
    for task in run.task_data:  # tasks that load their sentences later have none here
        prompt = task_prompt(run.recipe, task.suite, task.name)
        prompt = run.recipe.get("prompt") if prompt is None else prompt
        texts |= dict.fromkeys(prompted(prompt, task.task.sentences))
    return cls.expect(list(texts))
