"""Encoders that are not ours, as methods: an object with ``encode``, or a function, of this very process; and vectors that somebody
else computed. What they share with a server (:mod:`.server`): prompts, a name, and vectors that are checked."""

from __future__ import annotations

import hashlib
import json
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.base import __version__
from bench.base.contract import place_of
from bench.base.errors import BenchError, Interrupted, RunFailed, one_line
from bench.method import Method, Recipe, prompted
from bench.run.plugins import Plugin
from bench.runs.record import public_name

BLOCK = 2048  # sentences handed over at once: between two of them the user may stop, and sees how far it is
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
"""What an object that says nothing of itself is told apart by: its answers to these."""
DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


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
        """One line that says what encoding these texts will cost, where it does. Raises BenchError where it is known to fail."""
        return None

    def about(self) -> dict[str, Any]:
        """What the record says of the model."""
        prompts = json.loads(self.recipe.get("prompts") or "{}")
        about = {"kind": self.kind, "prompt": self.text_prompt or "", "prompts": prompts}
        return about | {"known": False, "pooling": None, "dtype": None}


def external_plugin(base: type[ExternalModel], name: str, **attributes: Any) -> Plugin:
    """The method ``base`` of one model: a class with these attributes, whose backbone has the (shortened) name.

    Raises BenchError for the name of the backbone inside this package.
    """
    short = public_name(name).strip()[:60] or "model"
    if short == "builtin":
        raise BenchError("builtin is the name of the backbone inside this package", "another name")
    sha256 = hashlib.sha256(f"bench {base.name} 1".encode()).hexdigest()
    attributes |= {"__module__": base.__module__, "own_backbone": short}
    return Plugin(base.name, type(base.__name__, (base,), attributes), "bench", __version__, sha256)


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


# --- an object or a function ---


def object_plugin(model: Any, name: str) -> Plugin:
    """The method of one object. Raises BenchError where it has no ``encode`` and cannot be called."""
    encodes = callable(getattr(model, "encode", None))
    if isinstance(model, type) or not (encodes or callable(model)):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise BenchError(
            f"{kind} is no model",
            "an object with encode(list of str) -> array (n, d), a function, a folder, a hub name",
        )
    library = sys.modules.get("sentence_transformers")
    whole = library is not None and isinstance(model, library.SentenceTransformer)
    title = getattr(model, "__name__", type(model).__name__).replace("<lambda>", "function")
    return external_plugin(
        ObjectModel,
        name or (_facts_of(model)["loaded_from"] if whole else None) or title,
        source=staticmethod(lambda: model),
        kind="object" if encodes else "function",
        whole=whole,
        identity={},
    )


class ObjectModel(ExternalModel):
    """The vectors of an object. ``source()`` is it; ``whole``: a SentenceTransformer, of which everything is known."""

    name = "object"
    summary = "an object or a function of a Python process"
    source: ClassVar[Callable[[], Any]]
    whole: ClassVar[bool]
    identity: ClassVar[dict[str, str]]  # empty until it is needed

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """The sha256 of its weights and settings where they are known, else of its answers to fixed sentences.

        What answers differently each time is told apart from itself: every evaluation of it is another run.
        """
        if not cls.identity:
            revision, how = _identity_of(cls)
            cls.identity.update(revision=revision, by=how)
        return cls.identity["revision"]

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        texts = prompted(self.text_prompt, sentences)
        parts = []
        for start in range(0, len(texts), BLOCK):
            if self.context.should_stop():
                raise Interrupted("stopped while encoding; the same command goes on")
            block, has_prompt = texts[start : start + BLOCK], self.text_prompt is not None
            part = ask(type(self), block, has_prompt, self.dimension)
            self.dimension = part.shape[1]
            parts.append(part)
            self.context.reporter.advance(min(start + BLOCK, len(texts)), total=len(texts))
        return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)

    def about(self) -> dict[str, Any]:
        model = type(self).source()
        about = super().about() | {
            "class": f"{type(model).__module__}.{type(model).__qualname__}",
            "known": self.whole,
            "identity": self.identity["by"],
        }
        return about | (_facts_of(model) if self.whole else {})


def ask(
    cls: type[ObjectModel], texts: list[str], has_prompt: bool = False, dimension: int | None = None
) -> np.ndarray:
    """The object's vectors of these texts, checked. Raises RunFailed, also for what its own code raises."""
    model, who = cls.source(), str(cls.own_backbone)
    options: dict[str, Any] = {}
    if cls.whole:  # an empty prompt: that of its own is not put before ours
        options = {"prompt": "" if has_prompt else None, "show_progress_bar": False}
    try:
        returned = model.encode(texts, **options) if cls.kind == "object" else model(texts)
    except (BenchError, KeyboardInterrupt):
        raise
    except Exception as error:  # somebody else's code
        place = f", at {line}" if (line := place_of(error)) else ""
        raise RunFailed(
            f"{who} raised {one_line(error)} for {len(texts)} sentences, the first is '{texts[0][:60]}'{place}",
            "it takes a list of strings and returns an array (n, d)",
        ) from error
    return as_vectors(returned, texts, who, dimension)


def _identity_of(cls: type[ObjectModel]) -> tuple[str, str]:
    """(sha256, what it is of)."""
    if cls.whole:
        return _content(cls.source()), "weights"
    first, second = (ask(cls, list(PROBE)) for _ in range(2))
    scale = max(1.0, float(np.abs(first).max()))
    if first.shape != second.shape or np.abs(first - second).max() > 1e-4 * scale:
        return hashlib.sha256(uuid.uuid4().bytes).hexdigest(), "nothing: its answers change"
    return hashlib.sha256(np.round(first, 4).tobytes()).hexdigest(), "answers"


def _content(model: Any) -> str:
    """sha256 over the weights of a SentenceTransformer and everything that it says of itself."""
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
    return {
        "modules": [type(part).__name__ for part in model],
        "pooling": pooling_of(model),
        "dtype": DTYPES.get(dtype, dtype),
        "max_tokens": model.max_seq_length,
        "own_prompt": model.prompts.get(model.default_prompt_name or "", "") or "",
        "loaded_from": public_name(source) if source else None,
        "loaded_revision": getattr(config, "_commit_hash", None),
    }


def pooling_of(model: Any) -> str | None:
    """ "mean", "cls" ... of a SentenceTransformer's pooling module; None where it has none."""
    for part in model:
        if type(part).__name__ == "Pooling":
            mode = getattr(part, "pooling_mode", None) or part.get_pooling_mode_str()
            return mode if isinstance(mode, str) else "+".join(mode)
    return None


# --- vectors that somebody else computed: a file, or a mapping of sentences to vectors ---


FORMS = "an .npz with 'sentences' (n strings) and 'vectors' (n, d), or a .parquet as bench encode --to writes"


def file_plugin(file: Path) -> Plugin:
    """The method of one file. Raises BenchError, naming the file, where it holds no vectors."""
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
    return _plugin(sentences, vectors, f"vectors:{file}", file.stem)


def table_plugin(table: Mapping[str, Any], name: str) -> Plugin:
    """The method of a mapping from sentences to vectors."""
    if not table or not all(isinstance(sentence, str) for sentence in table):
        raise BenchError(
            "a mapping of sentences to vectors needs strings as keys, and some",
            "{'a sentence': [0.1, 0.2, ...], ...}",
        )
    return _plugin(list(table), list(table.values()), name or "the mapping", name or "vectors")


def _plugin(sentences: list[str], rows: Any, who: str, name: str) -> Plugin:
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

    def look_up(texts: list[str]) -> np.ndarray:
        return vectors[[row_of[text] for text in texts]]

    return external_plugin(
        VectorsModel,
        name,
        source=staticmethod(lambda: look_up),
        kind="vectors",
        whole=False,
        identity={"revision": digest.hexdigest(), "by": "vectors"},
        row_of=row_of,
        who=who,
    )


class VectorsModel(ObjectModel):
    """Looks sentences up. A prompt is part of the text that is looked up."""

    name = "vectors"
    summary = "vectors that somebody else computed"
    row_of: ClassVar[Mapping[str, int]]
    who: ClassVar[str]

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """Raises BenchError where a text is not there: which, and how many."""
        lacking = [text for text in texts if text not in cls.row_of]
        if lacking:
            shown = ", ".join(repr(text[:60]) for text in lacking[:3])
            raise BenchError(
                f"{cls.who} lacks {len(lacking):,} of {len(texts):,} sentences: {shown}",
                "bench evaluate --list-sentences FILE writes every sentence that these suites ask for",
            )
        return None

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        self.expect(prompted(self.text_prompt, sentences))
        return super().encode(sentences)

    def about(self) -> dict[str, Any]:
        return ExternalModel.about(self) | {"identity": "vectors", "sentences": len(self.row_of)}
