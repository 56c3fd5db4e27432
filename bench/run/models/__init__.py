"""Finished encoders to be scored: what an argument of ``bench evaluate``, or an object, means, and how it becomes a run.

A model is anything that turns a list of strings into vectors (n, d). One that lies in a folder, on the hub or in a run is built by the
methods that are installed. Of all others a method is made here, one class each: an object, a function, or vectors that somebody else
computed (:mod:`.objects`), and a server (:mod:`.server`). Planning, execution, the record and the scores are those of ``bench run``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.base.errors import BenchError, NotAModel, RunFailed
from bench.base.package import __version__
from bench.base.text import one_value
from bench.method import Method, prompted, task_prompt
from bench.references.checkpoints import find_checkpoint
from bench.runs.record import PRETRAINED, public_name

if TYPE_CHECKING:
    from bench.run.plan import PlannedRun
    from bench.run.plugins import Plugin
    from bench.runs import RunRecord, RunsFolder


ADDRESSES = ("http://", "https://")
MODELS = "a folder with config.json and model.safetensors, a hub name, a run, vectors:FILE.npz, or a server's address"


@dataclass(frozen=True)
class ServerOptions:
    """How vectors are requested from a server: ``--model``, ``--batch``, ``--dimensions`` and ``--key-env``."""

    model: str | None = None
    batch: int = 128
    dimensions: int | None = None
    key_env: str | None = None

    @property
    def requested(self) -> bool:
        return bool(self.model or self.dimensions or self.key_env)


@dataclass(frozen=True)
class Model:
    """One model that was found, not loaded yet. ``plugin`` is its method where that was made for it; ``run`` is a run's folder."""

    given: str  # as the user names it
    method: str = PRETRAINED
    backbone: str = ""
    title: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    plugin: Plugin | None = None
    run: Path | None = None


def find_model(
    model: Any,
    *,
    runs: RunsFolder,
    name: str,
    prompt: str,
    prompts: Mapping[str, str] | None,
    values: Mapping[str, str],
    server: ServerOptions | None,
) -> Model:
    """What an argument means. ``values`` are recipe values (``--set``) of what is built from a folder or the hub.

    Raises BenchError for what is no model, or for options that do not go with it.
    """
    text = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
    label = text or "an object"
    overrides = {**values, **({"prompt": one_value(prompt)} if prompt else {})}
    if prompts:
        by_task = json.dumps(dict(prompts), sort_keys=True, ensure_ascii=False)
        overrides["prompts"] = one_value(by_task)
    if server and server.requested and not text.startswith(ADDRESSES):
        raise BenchError(
            f"--model, --batch, --dimensions and --key-env are for a server, and {label} is none",
            "http://HOST:PORT/v1/embeddings --model NAME",
        )
    plugin = _plugin_of(model, text, name, server or ServerOptions())
    if plugin is not None:
        for key in values:
            raise BenchError(
                f"--set {key}=...: {label} is not built here",
                "--set is for a folder or a model of the hub",
            )
        label = text or name or plugin.cls.__name__
        return Model(label, plugin.name, str(plugin.cls.own_backbone), name, overrides, plugin)
    if (folder := _run_folder(text, runs)) is not None:
        if overrides:
            raise BenchError(
                f"{text} is a run: it has its recipe already",
                "leave --prefix, --prompt and --set out",
            )
        return Model(text, run=folder, title=name)
    path = Path(text).expanduser()
    looks_like_path = text.startswith((".", "/", "~")) or text.partition("@")[0].count("/") > 1
    if path.is_file() or (looks_like_path and not path.is_dir()):
        reason = "is a file" if path.is_file() else "no such folder"
        raise NotAModel(f"MODEL {text}: {reason}", MODELS)
    method, of_checkpoint = _as_released(text, overrides)
    return Model(text, method, text, title=name, overrides=of_checkpoint)


def _plugin_of(model: Any, text: str, name: str, server: ServerOptions) -> Plugin | None:
    """The method that is made for one object, file or server; None for what lies in a folder, on the hub or in a run."""
    from bench.run.models import objects

    if not text:
        is_table = isinstance(model, Mapping)
        return objects.table_plugin(model, name) if is_table else objects.object_plugin(model, name)
    if text.startswith("vectors:"):
        return objects.file_plugin(Path(text.removeprefix("vectors:")).expanduser())
    if text.startswith(ADDRESSES):
        from bench.run.models.server import server_plugin

        return server_plugin(text, server)
    return None


def _as_released(text: str, overrides: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
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
    is_id = bool(text) and "/" not in text and os.sep not in text and not path.exists()
    if is_id and any(run_id.startswith(text) for run_id in runs.ids()):
        return runs.record_file(text).parent
    return None


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


def not_kept(record: RunRecord) -> NotAModel | None:
    """Why the model of a run cannot be had from its folder; None where it can, or where nothing speaks against it."""
    kind = record.provenance.backbone.model.get("kind")
    if kind not in ("object", "function", "vectors", "server") or not record.model_name:
        return None
    return NotAModel(
        f"{record.run_id} scored a model of kind '{kind}': its predictions are stored, the model is not",
        "bench verify computes its scores again",
    )


class ExternalModel(Method):
    """What the three methods here share: prompts, and vectors that are checked."""

    settings = ("none",)
    deterministic = ("none",)
    optional = {"prompt": "", "prompts": ""}
    kind = ""

    def build(self, backbone: Any, recipe: Any) -> None:
        super().build(backbone, recipe)
        self.text_prompt = recipe.get("prompt")
        self.dimension: int | None = None

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """As :func:`check_model`, of these texts."""
        return None

    def about(self) -> dict[str, Any]:
        """What the record says of the model."""
        prompts = json.loads(self.recipe.get("prompts") or "{}")
        return {"kind": self.kind, "prompt": self.text_prompt or "", "prompts": prompts}


def external_plugin(base: type[ExternalModel], **attributes: Any) -> Plugin:
    """The method ``base`` of one model: a class of its own with these attributes."""
    from bench.run.plugins import Plugin

    sha256 = hashlib.sha256(f"bench {base.name} 1".encode()).hexdigest()
    cls = type(base.__name__, (base,), {"__module__": base.__module__, **attributes})
    return Plugin(base.name, cls, "bench", __version__, sha256)


def short_name(text: str) -> str:
    """A name that can stand in a table and in a run's id. Raises BenchError for that of the backbone inside this package."""
    name = public_name(text).strip()[:60] or "model"
    if name == "builtin":
        raise BenchError(
            "builtin is the name of the backbone inside this package, and this is another model",
            "a name of its own",
        )
    return name


# --- What somebody else's code returned, as vectors; or one line that says what is wrong with it ---


def as_vectors(
    returned: Any, texts: Sequence[str], who: str, dimension: int | None = None
) -> np.ndarray:
    """(n, d) float32, row i for text i. ``dimension``: what d was before.

    Raises RunFailed for anything but n rows of d finite numbers, naming ``who`` and the first text that is wrong.
    """
    if isinstance(returned, list | tuple):
        returned = [_from_torch(row) for row in returned]
    try:
        array = np.asarray(_from_torch(returned))
        problem = _problem(array, texts, dimension)
    except (TypeError, ValueError):  # rows of different lengths
        problem = "vectors of different dimensions"
    if problem:
        hint = "encode takes a list of n strings and returns an array (n, d) of finite floats"
        raise RunFailed(f"{who} returned {problem}", hint)
    return np.ascontiguousarray(array, dtype=np.float32)


def _problem(array: np.ndarray, texts: Sequence[str], dimension: int | None) -> str:
    """What is wrong with an array of vectors; "" where nothing is."""
    if array.dtype.kind not in "fiu":
        return f"{array.dtype}, not numbers"
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        return f"shape {array.shape} for {len(texts)} sentences; expected ({len(texts)}, d)"
    if dimension not in (None, array.shape[1]):
        return f"{array.shape[1]} dimensions, before {dimension}"
    bad = np.flatnonzero(~(np.abs(array) <= np.finfo(np.float32).max).all(axis=1))
    if not len(bad):
        return ""
    return f"NaN or infinity for {len(bad)} of {len(texts)} sentences, first '{texts[bad[0]][:60]}'"


def _from_torch(value: Any) -> Any:
    return value.detach().float().cpu().numpy() if hasattr(value, "detach") else value
