"""Finished encoders to be scored: what an argument of ``bench evaluate``, or an object, means, and how it becomes a run.

A model is anything that turns a list of strings into vectors (n, d). One that lies in a folder, on the hub or in a run is built by the
methods that are installed. Of all others a method is made here, one class each: an object, a function, or vectors that somebody else
computed (:mod:`.objects`), and a server (:mod:`.server`). Planning, execution, the record and the scores are those of ``bench run``.
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
from bench.method import prompted, task_prompt
from bench.references import find_checkpoint
from bench.run import plan
from bench.run.config import RunConfig
from bench.run.models.objects import ExternalModel, file_plugin, object_plugin, table_plugin
from bench.run.models.server import ServerOptions, server_plugin
from bench.run.plan import PlannedRun, backbone_of, find_run
from bench.run.plugins import Plugin, Registry, discover
from bench.runs import RunsFolder
from bench.runs.record import PRETRAINED
from bench.score.suites import expand_suites, suite

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?(@[\w./-]+)?", re.ASCII)
ADDRESSES = ("http://", "https://")
MODELS = "a folder with config.json and model.safetensors, a hub name, a run, vectors:FILE.npz, or a server's address"


@dataclass(frozen=True)
class Model:
    """One model, not loaded yet. ``plugin`` is its method where that was made for it; ``run`` is a run's folder."""

    label: str  # as the user names it
    method: str = PRETRAINED
    backbone: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    plugin: Plugin | None = None
    run: Path | None = None

    def store(self, runs: RunsFolder) -> RunsFolder:
        """Where the record of this model stands: that of a run stays where it is."""
        return runs if self.run is None else RunsFolder(self.run.resolve().parent)


def check_prompts(prompts: Mapping[str, str], suites: Sequence[str]) -> None:
    """Raises UnknownName for a prompt of what is neither a task nor a suite that is scored."""
    if not prompts:
        return
    chosen = [suite(name) for name in expand_suites(suites)]
    known = [one.name for one in chosen] + [task.name for one in chosen for task in one.tasks]
    for name in prompts:
        if name not in known:
            hint = "bench suites NAME lists its tasks"
            raise UnknownName("task", name, known, "among what is scored", hint)


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
    """What an argument means. ``values`` are recipe values (``--set``) of what is built from a folder or the hub.

    Raises BenchError for what is no model, or for options that do not go with it.
    """
    text = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
    overrides = {**(values or {}), **({"prompt": one_value(prompt)} if prompt else {})}
    if prompts:
        by_task = json.dumps(dict(prompts), sort_keys=True, ensure_ascii=False)
        overrides["prompts"] = one_value(by_task)
    if server not in (None, ServerOptions()) and not text.startswith(ADDRESSES):
        raise BenchError(
            f"--model, --batch, --dimensions and --key-env are for a server, and {text or 'an object'} is none",
            "http://HOST:PORT/v1/embeddings --model NAME",
        )
    plugin = _plugin_of(model, text, name, server or ServerOptions())
    if plugin is not None:
        for key in values or {}:
            raise BenchError(
                f"--set {key}=...: {plugin.name} models are not built here",
                "--set is for a folder or a model of the hub",
            )
        own_name = str(plugin.cls.own_backbone)
        return Model(text or own_name, plugin.name, own_name, overrides, plugin)
    if (folder := _run_folder(text, runs)) is not None:
        if overrides:
            raise BenchError(
                f"{text} is a run: it has its recipe already",
                "leave --prefix, --prompt and --set out",
            )
        return Model(text, run=folder)
    path = Path(text).expanduser()
    if path.is_file() or not (path.is_dir() or HUB_NAME.fullmatch(text)):
        raise NotAModel(f"MODEL {text}: no such model", MODELS)
    method, overrides = _as_released(text, overrides)
    return Model(text, method, text, overrides)


def _plugin_of(model: Any, text: str, name: str, server: ServerOptions) -> Plugin | None:
    """The method that is made for one object, file or server; None for what lies in a folder, on the hub or in a run."""
    if isinstance(model, Mapping):
        return table_plugin(model, name)
    if not text:
        return object_plugin(model, name)
    if text.startswith("vectors:"):
        return file_plugin(Path(text.removeprefix("vectors:")).expanduser())
    return server_plugin(text, server) if text.startswith(ADDRESSES) else None


def _as_released(text: str, overrides: dict[str, str]) -> tuple[str, dict[str, str]]:
    """(method, recipe values) of a model of the hub: for one that its authors released, as they score it where no option says otherwise."""
    checkpoint = find_checkpoint(text)
    if checkpoint is None or checkpoint.hub != text.partition("@")[0]:
        return PRETRAINED, overrides
    merged = {**{key: one_value(value) for key, value in checkpoint.set.items()}, **overrides}
    if checkpoint.ours == PRETRAINED or merged.keys() == checkpoint.set.keys():
        return checkpoint.ours, merged
    return PRETRAINED, overrides


def _run_folder(text: str, runs: RunsFolder) -> Path | None:
    """The folder of the run that a path or an id (or its beginning) means; None where it means none."""
    path = Path(text).expanduser()
    if (path / "run.json").is_file():
        return path
    is_id = bool(text) and os.sep not in text and not path.exists()
    if is_id and any(run_id.startswith(text) for run_id in runs.ids()):
        return runs.record_file(text).parent
    return None


def plan_model(
    model: Model, config: RunConfig, data: DataFolder, ready: Callable[[Reference], Reference]
) -> list[PlannedRun]:
    """The run of one model, as :func:`bench.run.plan.make` plans it; of the config the suites, the text, names and plugins count."""
    config = replace(
        config,
        methods=(model.method,),
        backbones=(model.backbone,),
        setting=plan.NOT_TRAINED,
        overrides=model.overrides,
        precision="fp32",
    )
    if model.run is not None:
        return [_scored_further(model.run, config, data, ready)]
    made = {model.plugin.name: model.plugin} if model.plugin else None
    registry = Registry(made, ()) if made else discover([Path(file) for file in config.plugins])
    return plan.make(config, registry, data, ready)


def _scored_further(
    folder: Path, config: RunConfig, data: DataFolder, ready: Callable[[Reference], Reference]
) -> PlannedRun:
    """A finished run, with the suites of the config; its record stays where it is."""
    if config.fresh:
        raise BenchError(
            f"--fresh: {folder} is a run, which would be trained anew", "leave --fresh out"
        )
    run = find_run(
        str(folder), RunsFolder(folder.resolve().parent), list(map(Path, config.plugins))
    )
    backbone = backbone_of(run.record, run.plugin)
    backbone = backbone if run.plugin.cls.own_backbone else ready(backbone)
    title = "".join(config.names) or str(run.record.provenance.backbone.title or "")
    titled = replace(backbone, title=title)
    planned = plan.of_run(run.record, run.plugin, run.recipe, titled, config, data)
    if planned.run_id != run.record.run_id:
        raise BenchError(
            f"{folder} was renamed: its record says {run.record.run_id}",
            "give the folder its name back",
        )
    return planned


def check_model(run: PlannedRun) -> str | None:
    """One line that says what encoding will cost, where it does. Raises BenchError where it is known that it cannot be done."""
    cls = run.plugin.cls
    if not issubclass(cls, ExternalModel):
        return None
    texts: dict[str, None] = {}
    for task in run.task_data:  # tasks that load their sentences later have none here
        prompt = task_prompt(run.recipe, task.suite, task.name)
        prompt = run.recipe.get("prompt") if prompt is None else prompt
        texts |= dict.fromkeys(prompted(prompt, task.task.sentences))
    return cls.expect(list(texts))
