"""Finished encoders to be scored: what an argument of ``bench evaluate``, or an object, means, and how it becomes a run.

A model is anything that turns a list of strings into vectors (n, d). A folder, a hub name or a run is built by an installed method.
For the others a method is made here, one class each: an object or a function of this process, vectors that were computed elsewhere,
and a server. Planning, execution, the record and the scores are those of ``bench run``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import requests

from bench.backbones import Reference
from bench.base import __version__
from bench.base.contract import place_of
from bench.base.errors import BenchError, Interrupted, NotAModel, RunFailed, UnknownName, one_line
from bench.base.files import default_cache, lock
from bench.base.text import one_value
from bench.data.sets import DataFolder
from bench.method import Method, Recipe, Value, prompted, task_prompt
from bench.references import find_checkpoint
from bench.run import plan
from bench.run.config import RunConfig
from bench.run.plugins import Plugin, Registry, discover
from bench.runs import RunsFolder
from bench.runs.record import PRETRAINED, public_name
from bench.score.encoding import VectorStore
from bench.score.suites import expand_suites, suite

HUB_NAME = r"\w[\w.-]*(/\w[\w.-]*)?(@[\w./-]+)?"
ADDRESSES = ("http://", "https://")


# --- what an argument means ---


@dataclass(frozen=True)
class ServerOptions:
    """How vectors are requested from a server: ``--model``, ``--batch``, ``--dimensions`` and ``--key-env``."""

    model: str | None = None
    batch: int = 128
    dimensions: int | None = None
    key_env: str | None = None


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
            "--model, --batch, --dimensions and --key-env are for a server; "
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
) -> list[plan.PlannedRun]:
    """The run of one model, as :func:`bench.run.plan.make` plans it, with the suites, text, names and plugins of the config."""
    config = replace(
        config,
        methods=(model.method,),
        backbones=(model.backbone,),
        setting=plan.NOT_TRAINED,
        overrides=model.overrides,
        precision="fp32",
    )
    plugins = [Path(file) for file in config.plugins]
    if model.run is None:
        return plan.make(
            config,
            Registry({model.method: model.plugin}, ()) if model.plugin else discover(plugins),
            data,
            ready,
        )
    if config.fresh:
        raise BenchError(
            f"--fresh: {model.run} is a run, and would be trained again", "leave --fresh out"
        )
    run = plan.find_run(str(model.run), model.store(RunsFolder(model.run)), plugins)
    backbone = plan.backbone_of(run.record, run.plugin)
    backbone = replace(
        backbone if run.plugin.cls.own_backbone else ready(backbone),
        title="".join(config.names) or str(run.record.provenance.backbone.title or ""),
    )
    planned = plan.of_run(run.record, run.plugin, run.recipe, backbone, config, data)
    if planned.run_id != run.record.run_id:
        raise BenchError(
            f"{model.run} was renamed: its record is {run.record.run_id}",
            "give the folder its name back",
        )
    return [planned]


def check_model(run: plan.PlannedRun) -> str | None:
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


# --- what the methods of models that bench did not build have in common: prompts, a name, and vectors that are checked ---


class ExternalModel(Method):
    """The method of an encoder that somebody else built."""

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
        """One line about the cost of encoding these texts, if it has one. Raises BenchError if it is certain to fail."""
        return None

    def about(self) -> dict[str, Any]:
        """What the record says of the model."""
        return {
            "kind": self.kind,
            "prompt": self.text_prompt or "",
            "prompts": json.loads(self.recipe.get("prompts") or "{}"),
            "known": False,
            "pooling": None,
            "dtype": None,
        }


def external_plugin(base: type[ExternalModel], name: str, **attributes: Any) -> Plugin:
    """The method ``base`` of one model: a class with these attributes, whose backbone has the (shortened) name.

    Raises BenchError for the name of the backbone inside this package.
    """
    short = public_name(name).strip()[:60] or "model"
    if short == "builtin":
        raise BenchError("builtin is the name of the backbone inside this package", "another name")
    return Plugin(
        base.name,
        type(
            base.__name__,
            (base,),
            {**attributes, "__module__": base.__module__, "own_backbone": short},
        ),
        "bench",
        __version__,
        hashlib.sha256(f"bench {base.name} 1".encode()).hexdigest(),
    )


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
        raise RunFailed(
            f"{who} returned {problem}",
            "encode takes a list of n strings and returns an array (n, d) of finite floats",
        )
    return np.ascontiguousarray(array, dtype=np.float32)


def _problem(array: np.ndarray, texts: Sequence[str], dimension: int | None) -> str:
    """What is wrong with an array of vectors; "" if nothing is."""
    if array.dtype.kind not in "fiu":
        return f"{array.dtype}, not numbers"
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        return f"shape {array.shape} for {len(texts)} sentences; expected ({len(texts)}, d)"
    if dimension not in (None, array.shape[1]):
        return f"{array.shape[1]} dimensions, {dimension} before"
    bad = np.flatnonzero(~(np.abs(array) <= np.finfo(np.float32).max).all(axis=1))
    return (
        f"NaN or infinity for {len(bad)} of {len(texts)} sentences, first '{texts[bad[0]][:60]}'"
        if len(bad)
        else ""
    )


def _from_torch(value: Any) -> Any:
    return value.detach().float().cpu().numpy() if hasattr(value, "detach") else value


# --- an object or a function of this process ---

BLOCK = 2048  # sentences handed over at once: the user may stop between two blocks, and sees the progress
PROBE = (
    "A man is playing a guitar.",
    "A woman is slicing an onion.",
    "Two dogs run through the snow.",
    "The market fell sharply on Monday.",
    "No one was hurt in the accident.",
    "She did not agree with him.",
    "42 people signed the letter in 1999.",
    "Yes",
    "What is the capital of France?",
    "The quick brown fox jumps over the lazy dog .",
    "naïve café, “quoted” – and a dash",
    "a",
    "The film was long, slow and, in the end, worth every minute of it, which is more than can be said of most.",
)
"""An object that says nothing about itself is identified by its answers to these."""


def object_plugin(model: Any, name: str) -> Plugin:
    """The method of one object. Raises BenchError if it has no ``encode`` and cannot be called."""
    encodes = callable(getattr(model, "encode", None))
    if isinstance(model, type) or not (encodes or callable(model)):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise BenchError(
            f"{kind} is not a model",
            "an object with encode(list of str) -> array (n, d), a function, a folder, a hub name",
        )
    library = sys.modules.get("sentence_transformers")
    whole = library is not None and isinstance(model, library.SentenceTransformer)
    title = getattr(model, "__name__", type(model).__name__).replace("<lambda>", "function")
    return external_plugin(
        ObjectModel,
        name or (_facts_of(model)["loaded_from"] if whole else None) or title,
        model=staticmethod(model),
        kind="object" if encodes else "function",
        whole=whole,
        identity={},
    )


class ObjectModel(ExternalModel):
    """The vectors of an object. ``whole``: it is a SentenceTransformer, so everything about it is known."""

    name = "object"
    summary = "an object or a function of a Python process"
    model: ClassVar[Any]
    whole: ClassVar[bool]
    identity: ClassVar[dict[str, str]]  # empty until it is needed

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """The sha256 of its weights and settings if they are known, else of its answers to fixed sentences.

        If the answers change from call to call, every evaluation is another run.
        """
        if cls.identity:
            return cls.identity["revision"]
        if cls.whole:
            revision, by = _content(cls.model), "weights"
        else:
            first, second = (cls.ask(list(PROBE)) for _ in range(2))
            revision, by = hashlib.sha256(np.round(first, 4).tobytes()).hexdigest(), "answers"
            scale = max(1.0, float(np.abs(first).max()))
            if first.shape != second.shape or np.abs(first - second).max() > 1e-4 * scale:
                revision, by = os.urandom(32).hex(), "nothing: its answers change"
        cls.identity.update(revision=revision, by=by)
        return revision

    @classmethod
    def ask(
        cls, texts: list[str], has_prompt: bool = False, dimension: int | None = None
    ) -> np.ndarray:
        """The vectors of these texts, checked. Raises RunFailed, also for what the object's own code raises."""
        options: dict[str, Any] = (  # an empty prompt keeps its own from being put before ours
            {"prompt": "" if has_prompt else None, "show_progress_bar": False} if cls.whole else {}
        )
        encode = cls.model.encode if cls.kind == "object" else cls.model
        try:
            returned = encode(texts, **options)
        except (BenchError, KeyboardInterrupt):
            raise
        except Exception as error:  # somebody else's code
            place = f", at {line}" if (line := place_of(error)) else ""
            raise RunFailed(
                f"{cls.own_backbone} raised {one_line(error)} for {len(texts)} sentences, "
                f"the first is '{texts[0][:60]}'{place}",
                "it takes a list of strings and returns an array (n, d)",
            ) from error
        return as_vectors(returned, texts, str(cls.own_backbone), dimension)

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        texts = prompted(self.text_prompt, sentences)
        parts = [np.zeros((0, 0), dtype=np.float32)] if not texts else []
        for start in range(0, len(texts), BLOCK):
            if self.context.should_stop():
                raise Interrupted("stopped while encoding; the same command continues")
            block = texts[start : start + BLOCK]
            parts.append(self.ask(block, self.text_prompt is not None, self.dimension))
            self.dimension = parts[0].shape[1]
            self.context.reporter.advance(start + len(block), total=len(texts))
        return np.concatenate(parts)

    def about(self) -> dict[str, Any]:
        return {
            **super().about(),
            "class": f"{type(self.model).__module__}.{type(self.model).__qualname__}",
            "known": self.whole,
            "identity": self.identity["by"],
            **(_facts_of(self.model) if self.whole else {}),
        }


def _content(model: Any) -> str:
    """sha256 over the weights of a SentenceTransformer and everything that it says about itself."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        content = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        digest.update(content.numpy().tobytes())
    settings = [
        [type(part).__name__ for part in model],
        [getattr(part, "get_config_dict", dict)() for part in model],
        model.prompts,
        model.default_prompt_name,
        model.max_seq_length,
    ]
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _facts_of(model: Any) -> dict[str, Any]:
    encoder = getattr(model[0], "model", None) or getattr(model[0], "auto_model", None)
    config = getattr(encoder, "config", None)
    source = str(getattr(config, "_name_or_path", "") or "")
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    short = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    pooling = next((part for part in model if type(part).__name__ == "Pooling"), None)
    mode = pooling and (getattr(pooling, "pooling_mode", None) or pooling.get_pooling_mode_str())
    return {
        "modules": [type(part).__name__ for part in model],
        "pooling": mode if mode is None or isinstance(mode, str) else "+".join(mode),
        "dtype": short.get(dtype, dtype),
        "max_tokens": model.max_seq_length,
        "own_prompt": model.prompts.get(model.default_prompt_name or "", "") or "",
        "loaded_from": public_name(source) if source else None,
        "loaded_revision": getattr(config, "_commit_hash", None),
    }


# --- vectors that were computed elsewhere: a file, or a mapping of sentences to vectors ---

FORMS = (
    "an .npz with 'sentences' (n strings) and 'vectors' (n, d), "
    "or a .parquet as bench encode --to writes"
)


def file_plugin(file: Path) -> Plugin:
    """The method of one file. Raises BenchError, naming the file, if it holds no vectors."""
    try:
        if file.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            table = pq.read_table(file, columns=["sentence", "vector"])
            sentences, vectors = table["sentence"].to_pylist(), table["vector"].to_pylist()
        else:
            with np.load(file, allow_pickle=False) as arrays:
                sentences, vectors = list(map(str, arrays["sentences"])), arrays["vectors"]
    except Exception as error:  # whatever the bytes of a damaged file lead to
        raise BenchError(f"vectors:{file} cannot be read: {one_line(error)[:160]}", FORMS) from None
    return _vectors_plugin(sentences, vectors, f"vectors:{file}", file.stem)


def table_plugin(table: Mapping[str, Any], name: str) -> Plugin:
    """The method of a mapping from sentences to vectors."""
    if not table or not all(isinstance(sentence, str) for sentence in table):
        raise BenchError(
            "a mapping of sentences to vectors needs at least one key, and strings as keys",
            "{'a sentence': [0.1, 0.2, ...], ...}",
        )
    return _vectors_plugin(
        list(table), list(table.values()), name or "the mapping", name or "vectors"
    )


def _vectors_plugin(sentences: list[str], rows: Any, who: str, name: str) -> Plugin:
    try:
        vectors = as_vectors(rows, sentences, who)
    except RunFailed as error:
        raise BenchError(error.message.replace(" returned ", " holds "), FORMS) from None
    row_of: dict[str, int] = {}
    for i, sentence in enumerate(sentences):
        before = row_of.setdefault(sentence, i)
        if not np.array_equal(vectors[before], vectors[i]):
            raise BenchError(
                f"{who}: two different vectors for '{sentence[:60]}', rows {before} and {i}",
                "one vector for each sentence",
            )
    digest = hashlib.sha256(vectors.tobytes())
    digest.update("\0".join(sentences).encode("utf-8", "surrogatepass"))
    return external_plugin(
        VectorsModel,
        name,
        vectors=vectors,
        row_of=row_of,
        who=who,
        identity={"revision": digest.hexdigest(), "by": "vectors"},
    )


class VectorsModel(ObjectModel):
    """Looks sentences up. A prompt is part of the text that is looked up."""

    name = "vectors"
    kind = "vectors"
    summary = "vectors that were computed elsewhere"
    vectors: ClassVar[np.ndarray]
    row_of: ClassVar[Mapping[str, int]]
    who: ClassVar[str]

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """Raises BenchError for missing texts: which, and how many."""
        if lacking := [text for text in texts if text not in cls.row_of]:
            raise BenchError(
                f"{cls.who} lacks {len(lacking):,} of {len(texts):,} sentences: "
                + ", ".join(repr(text[:60]) for text in lacking[:3]),
                "bench evaluate --list-sentences FILE writes every sentence that these suites need",
            )
        return None

    @classmethod
    def ask(
        cls, texts: list[str], has_prompt: bool = False, dimension: int | None = None
    ) -> np.ndarray:
        cls.expect(texts)
        return cls.vectors[[cls.row_of[text] for text in texts]]

    def about(self) -> dict[str, Any]:
        return ExternalModel.about(self) | {"identity": "vectors", "sentences": len(self.row_of)}


# --- a server with OpenAI's embeddings interface ---
#
#     POST {"model": ..., "input": [...]}   ->   {"data": [{"index": i, "embedding": [...]}]}
#
# Its answers go into the cache, sentence by sentence, as soon as they come: nothing is paid twice, even after a kill. The key
# comes from the environment, goes into one header and nowhere else.

TRIES = 6  # of one request
SECONDS = 120.0  # without a byte, after which a connection counts as dead
LONGEST_WAIT = 120.0  # seconds: a Retry-After beyond this is an error
PASSING = (408, 425, 429, 500, 502, 503, 504)  # statuses after which the same request may succeed
SAME = 0.999  # cosine of a sentence's stored and new vector, from which it is the same model
STORED = "the vectors received so far are stored: the same command requests only the rest"
EXAMPLE = (
    "http://HOST:PORT/v1/embeddings --model NAME; "
    "the key is in $BENCH_API_KEY, or in the variable of --key-env NAME"
)


def server_plugin(address: str, options: ServerOptions) -> Plugin:
    """The method of one server and model. Raises BenchError for an address with a secret in it, or without a model's name."""
    parts = urllib.parse.urlsplit(address)
    if not parts.hostname or parts.username or parts.password or parts.query or parts.fragment:
        raise BenchError(
            f"the address at {parts.hostname} has more than a host and a path, and is stored in records",
            EXAMPLE,
        )
    if not options.model:
        raise BenchError(f"{address}: --model is missing", EXAMPLE)
    if options.key_env and not os.environ.get(options.key_env):
        raise BenchError(
            f"--key-env {options.key_env}: the environment has no such variable",
            f"export {options.key_env}=...",
        )
    values = {"address": address, "model": options.model, "dimensions": options.dimensions}
    return external_plugin(
        ServerModel,
        options.model,
        batch=options.batch,
        key_env=options.key_env
        or ("OPENAI_API_KEY" if parts.hostname == "api.openai.com" else "BENCH_API_KEY"),
        defaults={key: Value(value, "given") for key, value in values.items() if value},
    )


class ServerModel(ExternalModel):
    """The vectors of a server. Its weights cannot be identified from outside."""

    name = "server"
    kind = "server"
    summary = "a server with OpenAI's embeddings interface"
    batch: ClassVar[int]
    key_env: ClassVar[str]

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """The sha256 of address, model and dimensions, which also names the cache."""
        return hashlib.sha256(
            json.dumps([recipe["address"], recipe["model"], recipe.get("dimensions")]).encode()
        ).hexdigest()

    @classmethod
    def cache_folder(cls) -> Path:
        values: Any = {key: value.value for key, value in cls.defaults.items()}
        return default_cache() / "server" / cls.own_revision(values)[:32]

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """Sentences, characters and requests that are still to be paid."""
        new = VectorStore(cls.cache_folder()).missing(texts)
        return (
            f"{cls.defaults['address'].value}: {len(new):,} sentences, "
            f"{sum(map(len, new)):,} characters, {-(-len(new) // cls.batch):,} requests; "
            f"{len(texts) - len(new):,} sentences are in the cache"
        )

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        texts, folder = prompted(self.text_prompt, sentences), self.cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / ".lock"):  # else two processes would request the same sentences
            store = VectorStore(folder)
            new = store.missing(texts)
            if new and not self.dimension:
                self.dimension = self._check_same(store, texts)
            for start in range(0, len(new), self.batch):
                part = new[start : start + self.batch]
                store.add(part, self.request)
                self.dimension = int(store.first(1).shape[1])
                self.context.reporter.advance(
                    len(texts) - len(new) + start + len(part), total=len(texts)
                )
            return store(texts)

    def _check_same(self, store: VectorStore, texts: Sequence[str]) -> int | None:
        """The dimension of the stored vectors. Requests one stored sentence again: raises RunFailed if the server's weights are not those
        that filled the cache."""
        missing = set(store.missing(texts))
        known = next((text for text in texts if text not in missing), None)
        if known is None:
            return int(store.first(1).shape[1]) or None
        (now,), (before,) = self.request([known]), store([known])
        if now.shape != before.shape or now @ before < SAME * (
            np.linalg.norm(now) * np.linalg.norm(before)
        ):
            raise RunFailed(
                f"{self.recipe['address']} now returns another vector for '{known[:60]}' "
                "than the one in the cache: has its model changed?",
                f"remove {self.cache_folder()}, and pay again, or give the model another name",
            )
        return len(before)

    def request(self, texts: list[str]) -> np.ndarray:
        """(n, d) float32, requested again if that may help. Raises RunFailed, which names the server and never the key, and Interrupted."""
        who = f"{self.recipe['model']} at {urllib.parse.urlsplit(self.recipe['address']).netloc}"
        for attempt in range(TRIES):
            wait = 2.0**attempt
            try:
                response = self._post(texts)
            except requests.RequestException as error:
                problem = f"the connection failed ({self._clean(str(error))})"
            else:
                rows = rows_of(response, len(texts)) if response.status_code == 200 else None
                if rows is not None:
                    return as_vectors(rows, texts, who, self.dimension)
                problem = (
                    f"answered {response.status_code} without embeddings of {len(texts)} sentences "
                    f"({self._clean(response.text)})"
                )
                seconds = response.headers.get("Retry-After", "")
                wait = float(seconds) if seconds.isdigit() else wait
                if response.status_code not in PASSING or wait > LONGEST_WAIT:
                    after = f"; Retry-After: {seconds}" if seconds else ""
                    raise RunFailed(f"{who}: {problem}{after}", EXAMPLE)
            if attempt < TRIES - 1:
                self.context.reporter.note(f"{who}: {problem}; trying again in {wait:.0f} s")
                self._sleep(wait)
        raise RunFailed(f"{who}: {problem}, {TRIES} times", STORED)

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0:
            if self.context.should_stop():
                raise Interrupted(f"stopped while waiting for the server; {STORED}")
            time.sleep(min(remaining, 0.2))

    def _post(self, texts: list[str]) -> Any:
        dimensions = self.recipe.get("dimensions")
        return requests.post(
            self.recipe["address"],
            json={
                "model": self.recipe["model"],
                "input": texts,
                "encoding_format": "float",
                **({"dimensions": dimensions} if dimensions else {}),
            },
            headers={"User-Agent": "sentence-bench"},
            auth=self._authorise,  # without it a .netrc would replace the key
            timeout=SECONDS,
            allow_redirects=False,  # the key is for this host only
        )

    def _authorise(self, request: Any) -> Any:
        if key := os.environ.get(self.key_env):
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    def _clean(self, text: str) -> str:
        """A server's answer, on one line and without the key."""
        line = " ".join(text[:2000].split())
        key = os.environ.get(self.key_env)
        return (line.replace(key, "***") if key else line)[:160]

    def about(self) -> dict[str, Any]:
        return {
            **super().about(),
            "address": self.recipe["address"],
            "model": self.recipe["model"],
            "identity": "address and name",
        }


def rows_of(response: Any, count: int) -> list[Any] | None:
    """The vectors of an answer, in the order of the texts; None if some are missing."""
    try:
        by_index = {row["index"]: row["embedding"] for row in response.json()["data"]}
        return [by_index[i] for i in range(count)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
