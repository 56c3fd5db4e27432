"""Finished encoders that somebody wants scored: what an argument of ``bench evaluate``, or an object, is, and how it becomes a run.

A model is anything that turns a list of strings into vectors (n, d). One that lies in a folder, on the hub or in a run is built by the
methods that are there. Of all others a method is made here, one class each: an object or a function (:mod:`.objects`), vectors that
somebody else computed (:mod:`.vectors`), a server that is asked (:mod:`.server`). Planning, execution, the record and the scores are
those of ``bench run``.
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


MODELS = "a folder with config.json and model.safetensors, a hub name, a run, vectors:FILE.npz, or a server's address"


@dataclass(frozen=True)
class ServerOptions:
    """How a server is asked: what ``--model``, ``--batch``, ``--dimensions`` and ``--key-env`` say."""

    model: str | None = None
    batch: int = 128
    dimensions: int | None = None
    key_env: str | None = None


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
    given: Any,
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
    server = server or ServerOptions()
    overrides = {**values, **({"prompt": one_value(prompt)} if prompt else {})}
    if prompts:
        overrides["prompts"] = one_value(
            json.dumps(dict(prompts), sort_keys=True, ensure_ascii=False)
        )

    def made(called: str, plugin: Plugin) -> Model:
        return Model(called, plugin.name, str(plugin.cls.own_backbone), name, overrides, plugin)

    if not isinstance(given, str | os.PathLike):
        from bench.run.models.objects import object_plugin, table_plugin

        _refuse("an object", values, server)
        plugin = (
            table_plugin(given, name) if isinstance(given, Mapping) else object_plugin(given, name)
        )
        return made(name or plugin.cls.__name__, plugin)
    text = os.fspath(given)
    if text.startswith("vectors:"):
        from bench.run.models.objects import file_plugin

        _refuse(text, values, server)
        return made(text, file_plugin(Path(text.removeprefix("vectors:")).expanduser()))
    if text.startswith(("http://", "https://")):
        from bench.run.models.server import server_plugin

        _refuse(text, values, ServerOptions())
        return made(text, server_plugin(text, server))
    if server != ServerOptions():
        raise BenchError(
            f"--model, --batch, --dimensions and --key-env are for a server, and {text} is none",
            "http://HOST:PORT/v1/embeddings --model NAME",
        )
    folder = _run_folder(text, runs)
    if folder is not None:
        if overrides:
            raise BenchError(
                f"{text} is a run: it has its recipe already",
                "leave --prefix, --prompt and --set out",
            )
        return Model(text, run=folder, title=name)
    path = Path(text).expanduser()
    if path.is_file() or (
        not path.is_dir()
        and (text.startswith((".", "/", "~")) or text.partition("@")[0].count("/") > 1)
    ):
        what = "is a file" if path.is_file() else "no such folder"
        raise NotAModel(f"MODEL {text}: {what}", MODELS)
    method, of_checkpoint = _as_released(text, overrides)
    return Model(text, method, text, title=name, overrides=of_checkpoint)


def _as_released(text: str, overrides: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """(method, recipe values) of a model of the hub: for one that its authors released, as they score it where nothing else is given."""
    checkpoint = find_checkpoint(text)
    if checkpoint is None or checkpoint.hub != text.partition("@")[0]:
        return PRETRAINED, overrides
    merged = {**{key: one_value(value) for key, value in checkpoint.set.items()}, **overrides}
    return (
        (checkpoint.ours, merged)
        if checkpoint.ours == PRETRAINED or merged.keys() == checkpoint.set.keys()
        else (PRETRAINED, overrides)
    )


def _refuse(what: str, values: Mapping[str, str], server: ServerOptions) -> None:
    if values:
        raise BenchError(
            f"--set {next(iter(values))}=...: {what} is not built here",
            "--set is for a folder or a model of the hub",
        )
    if server != ServerOptions():
        raise BenchError(
            f"--model, --batch, --dimensions and --key-env are for a server, and {what} is none",
            "leave them out",
        )


def _run_folder(text: str, runs: RunsFolder) -> Path | None:
    """The folder of the run that a path or an id (or its beginning) means; None where it means none."""
    if (Path(text).expanduser() / "run.json").is_file():
        return Path(text).expanduser()
    if (
        "/" in text
        or os.sep in text
        or not text
        or Path(text).exists()
        or not any(id_.startswith(text) for id_ in runs.ids())
    ):
        return None
    return runs.record_file(text).parent


def texts_of(run: PlannedRun) -> list[str]:
    """The distinct texts that scoring a run will ask for, each in its prompt. Tasks that ask as they go are not known beforehand."""
    texts: dict[str, None] = {}
    for task in run.task_data:
        prompt = task_prompt(run.recipe, task.suite, task.name)
        prompt = run.recipe.get("prompt") if prompt is None else prompt
        texts |= dict.fromkeys(
            prompted(prompt, task.task.sentences)
        )  # of one that asks as it goes: none
    return list(texts)


def check_model(run: PlannedRun) -> str | None:
    """One line that says what encoding will cost, where it does. Raises BenchError where it is known that it cannot be done."""
    cls = run.plugin.cls
    return cls.expect(texts_of(run)) if issubclass(cls, GivenModel) else None


def not_kept(record: RunRecord) -> NotAModel | None:
    """Why the model of a run cannot be had from its folder; None where it can, or where nothing speaks against it."""
    kind = record.provenance.backbone.model.get("kind")
    words = {
        "object": "an object of a Python process",
        "function": "a function of a Python process",
        "vectors": "vectors that were given",
        "server": "a server",
    }.get(str(kind))
    if words is None or not record.model_name:
        return None
    return NotAModel(
        f"{record.run_id} scored {words}: its predictions are kept, the model is not",
        "bench verify computes its scores again",
    )


class GivenModel(Method):
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


def given_plugin(base: type[GivenModel], **attributes: Any) -> Plugin:
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
    if hasattr(returned, "detach"):
        returned = returned.detach().float().cpu().numpy()
    elif (
        isinstance(returned, Sequence)
        and not isinstance(returned, str)
        and any(hasattr(one, "detach") for one in returned)
    ):
        returned = [
            one.detach().float().cpu().numpy() if hasattr(one, "detach") else one
            for one in returned
        ]
    try:
        array = np.asarray(returned)
    except (TypeError, ValueError):  # rows of different lengths
        lengths = sorted({len(row) for row in returned if hasattr(row, "__len__")})
        raise RunFailed(
            f"{who} returned vectors of different dimensions: {', '.join(map(str, lengths[:4]))}",
            "one dimension for all sentences",
        ) from None
    if array.dtype.kind not in "fiu":
        what = {
            "U": "text",
            "S": "bytes",
            "O": f"objects ({type(returned).__name__})",
            "b": "true and false",
            "c": "complex numbers",
        }
        raise RunFailed(
            f"{who} returned {what.get(array.dtype.kind, str(array.dtype))}, not numbers",
            "an array (n, d) of floats",
        )
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        raise RunFailed(
            f"{who} returned shape {array.shape} for {len(texts)} sentences; expected ({len(texts)}, d)",
            "encode takes a list of n strings and returns n vectors",
        )
    if dimension not in (None, array.shape[1]):
        raise RunFailed(
            f"{who} returned {array.shape[1]} dimensions, before {dimension}",
            "one dimension for all sentences",
        )
    with np.errstate(over="ignore"):  # of float64: what float32 cannot hold is told of below
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise RunFailed(
            f"{who} returned NaN or infinity for {len(bad)} of {len(texts)} sentences, first '{texts[bad[0]][:60]}'",
            "finite numbers for every sentence",
        )
    return vectors
