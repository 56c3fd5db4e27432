"""Score an object or a function of this process, as a method."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench.base.errors import BenchError, Interrupted, RunFailed, one_line
from bench.base.sides import SIDES
from bench.base.user_code import place_of
from bench.method import Recipe
from bench.method.answers import ask_probe, hash_answers
from bench.method.finished import FinishedEncoder
from bench.method.own_vectors import OwnVectors
from bench.method.plugins import Plugin
from bench.method.prompts import prompted
from bench.method.smaller import FLOAT32
from bench.records.record import public_name
from bench.run.external.external import as_vectors, external_plugin

BLOCK = 2048
"""Sentences that are handed over at once; between two blocks the user sees progress or stops."""
WEIGHTS = "weights"
ANSWERS = "answers"
CHANGES = "nothing: its answers change"
"""The identity of an object that gives other vectors at each call."""
UNLIMITED = 1_000_000
"""More tokens than any model reads."""


@dataclass(frozen=True)
class Identity:
    """The proof that an object is the same as before, and whether a sentence has one vector."""

    # sha256; random if the object's answers change, so that every evaluation is another run
    revision: str
    # the things that were hashed: WEIGHTS, ANSWERS, "vectors", or CHANGES
    by: str
    # False: the same call gives other vectors each time
    repeats: bool = True
    # False: the vector of a sentence depends on the other sentences of the call
    independent: bool = True
    # the numbers of a vector
    dimension: int | None = None


def object_plugin(model: Any, name: str) -> Plugin:
    """Make the method of one object.

    Raises BenchError if it has no ``encode`` and cannot be called.
    """
    hint = "an object with encode(list of str) -> array (n, d), a function, a folder, a hub name"
    if isinstance(model, type):
        raise BenchError(f"the class {model.__name__} is not a model", hint)
    encodes = callable(getattr(model, "encode", None))
    if not encodes and not callable(model):
        raise BenchError(f"{type(model).__name__} is not a model", hint)
    library = sys.modules.get("sentence_transformers")
    whole = library is not None and isinstance(model, library.SentenceTransformer)
    if not name and whole:
        name = facts_of_library(model)["loaded_from"] or ""
    if not name:
        name = getattr(model, "__name__", type(model).__name__).replace("<lambda>", "function")
    return external_plugin(
        ObjectModel,
        name,
        model=staticmethod(model),
        kind="object" if encodes else "function",
        whole=whole,
        identity=None,
        tells_sides=all(callable(getattr(model, f"encode_{side}", None)) for side in SIDES),
    )


class ObjectModel(FinishedEncoder, OwnVectors):
    """The vectors of an object."""

    name = "object"
    summary = "an object or a function of a Python process"
    settings = ("none",)
    deterministic = ("none",)
    optional = {
        **dict.fromkeys(("prompt", "prompts", "prompt_query", "prompt_document"), ""),
        "dimensions": None,
        "vector_precision": FLOAT32,
    }
    kind = ""
    model: ClassVar[Any]
    # it is a SentenceTransformer, so everything about it is known
    whole: ClassVar[bool] = False
    # None until it is needed
    identity: ClassVar[Identity | None]

    def build(self, backbone: Any, recipe: Any) -> None:
        super().build(backbone, recipe)
        self.text_prompt = recipe.get("prompt")
        self.dimension = self.identify().dimension

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """Return the revision of its identity, see :meth:`identify`."""
        return cls.identify().revision

    @classmethod
    def identify(cls) -> Identity:
        """Return the identity of the object; fixed sentences are encoded the first time.

        The revision is the sha256 of its weights and settings if they are known, else of its
        answers.
        """
        if cls.identity is None:
            answers = ask_probe(cls.ask)
            if not answers.repeat:
                revision, by = os.urandom(32).hex(), CHANGES
            elif cls.whole:
                revision, by = hash_of_library(cls.model), WEIGHTS
            else:
                revision, by = hash_answers(answers.vectors), ANSWERS
            width = answers.vectors.shape[1]
            cls.identity = Identity(revision, by, answers.repeat, answers.independent, width)
        return cls.identity

    @classmethod
    def doubt(cls) -> str | None:
        """Return one line if a sentence has several vectors, else None."""
        identity = cls.identify()
        if not identity.repeats:
            return (
                f"{cls.own_backbone}: the same sentences get other vectors at each call, "
                "so its scores will not repeat; if it is a torch model, call its .eval() first"
            )
        if not identity.independent:
            return (
                f"{cls.own_backbone}: the vector of a sentence depends on the other sentences "
                "of the call, so its scores depend on how they are batched; "
                "if it is a torch model, call its .eval() and mask the padding"
            )
        return None

    @classmethod
    def ask(
        cls,
        texts: list[str],
        has_prompt: bool = False,
        dimension: int | None = None,
        side: str | None = None,
    ) -> np.ndarray:
        """Return the checked vectors of these texts, as queries or documents if it tells them
        apart.

        Raises RunFailed, also for its own errors.
        """
        options: dict[str, Any] = {}
        if cls.whole:
            # an empty prompt keeps the library from putting the model's own before ours
            options = {"prompt": "" if has_prompt else None, "show_progress_bar": False}
        encode = cls.model
        if cls.kind == "object":
            encode = getattr(cls.model, "encode" if side is None else f"encode_{side}")
        try:
            returned = encode(texts, **options)
        except (BenchError, KeyboardInterrupt):
            raise
        except Exception as error:  # somebody else's code
            message = (
                f"{cls.own_backbone} raised {one_line(error)} for {len(texts)} sentences, "
                f"the first is '{texts[0][:60]}'"
            )
            line = place_of(error)
            if line:
                message += f", at {line}"
            raise RunFailed(
                message,
                "it takes a list of strings and returns an array (n, d)",
            ) from error
        return as_vectors(returned, texts, str(cls.own_backbone), dimension)

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        texts = prompted(self.text_prompt, sentences)
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        parts: list[np.ndarray] = []
        for start in range(0, len(texts), BLOCK):
            if self.context.should_stop():
                raise Interrupted("stopped while encoding; the same command continues")
            block = texts[start : start + BLOCK]
            has_prompt = self.text_prompt is not None
            parts.append(self.ask(block, has_prompt, self.dimension, self.side))
            self.dimension = parts[0].shape[1]
            self.context.reporter.advance(start + len(block), total=len(texts))
        return np.concatenate(parts)

    def facts_of_sides(self) -> dict[str, Any]:
        if self.whole and self.text_prompt is None:
            from bench.backbones.sentence_transformer import side_prompts  # it loads torch

            self.side_prompts = side_prompts(self.model)
        return super().facts_of_sides()

    def about(self) -> dict[str, Any]:
        """Return the facts that the record keeps about the model."""
        identity = self.identify()
        facts = self.common_facts()
        facts["class"] = f"{type(self.model).__module__}.{type(self.model).__qualname__}"
        facts["known"] = self.whole
        facts["identity"] = identity.by
        if not identity.independent:
            facts["independent"] = False
        if self.whole:
            facts |= facts_of_library(self.model)
        return facts

    def common_facts(self) -> dict[str, Any]:
        """Return the facts about any model that bench did not build."""
        return {
            "kind": self.kind,
            "prompt": self.text_prompt or "",
            "prompts": json.loads(self.recipe.get("prompts") or "{}"),
            **self.facts_of_sides(),
            "known": False,
            "pooling": None,
            "dtype": None,
        }


def hash_of_library(model: Any) -> str:
    """Return the sha256 of the weights and all settings of a SentenceTransformer."""
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
    # an object that is not cut keeps the identity that it had before this setting was hashed
    if model.truncate_dim is not None:
        settings.append(model.truncate_dim)
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def facts_of_library(model: Any) -> dict[str, Any]:
    """Return the facts that a record keeps about a SentenceTransformer."""
    from bench.backbones.sentence_transformer import pooling_of  # it loads torch

    encoder = getattr(model[0], "model", None) or getattr(model[0], "auto_model", None)
    config = getattr(encoder, "config", None)
    source = str(getattr(config, "_name_or_path", "") or "")
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    short = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    return {
        "modules": [type(part).__name__ for part in model],
        "pooling": pooling_of(model),
        "dtype": short.get(dtype, dtype),
        "max_tokens": _longest_text(model.max_seq_length),
        "own_prompt": model.prompts.get(model.default_prompt_name or "", "") or "",
        "loaded_from": public_name(source) if source else None,
        "loaded_revision": getattr(config, "_commit_hash", None),
    }


def _longest_text(tokens: float | None) -> int | None:
    """Return the tokens of the longest text; None without a limit.

    Word vectors have an infinite one, and some tokenizers say 1e30.
    """
    if tokens is None or not tokens < UNLIMITED:
        return None
    return int(tokens)
