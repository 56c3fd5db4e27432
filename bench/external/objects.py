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
from bench.base.user_code import place_of
from bench.external.answers import ask_probe, hash_answers
from bench.external.external import ExternalModel, as_vectors, external_plugin
from bench.method import Recipe, prompted
from bench.records.record import public_name
from bench.run.plugins import Plugin

# sentences handed over at once: the user may stop between two blocks, and sees the progress
BLOCK = 2048
UNLIMITED = 1_000_000  # tokens: no model reads so many

CHANGES = "nothing: its answers change"
"""The identity of an object that gives other vectors at each call."""


@dataclass(frozen=True)
class Identity:
    """The proof that an object is the same as before, and whether a sentence has one vector."""

    # sha256; random for an object whose answers change, so that every evaluation is another run
    revision: str
    # what the revision is made of: "weights", "answers", "vectors", or CHANGES
    by: str
    # False: the same call gives other vectors each time
    repeats: bool = True
    # False: the vector of a sentence depends on the other sentences of the call
    independent: bool = True


def object_plugin(model: Any, name: str) -> Plugin:
    """Make the method of one object.

    Raises BenchError if it has no ``encode`` and cannot be called.
    """
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
        identity=None,
    )


class ObjectModel(ExternalModel):
    """The vectors of an object."""

    name = "object"
    summary = "an object or a function of a Python process"
    model: ClassVar[Any]
    whole: ClassVar[bool]
    identity: ClassVar[Identity | None]  # None until it is needed

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """Return the revision of its identity, see :meth:`identify`."""
        return cls.identify().revision

    @classmethod
    def identify(cls) -> Identity:
        """Return what identifies the object; fixed sentences are encoded the first time.

        The revision is the sha256 of its weights and settings if they are known, else of its
        answers.
        """
        if cls.identity is None:
            answers = ask_probe(cls.ask)
            if not answers.repeat:
                cls.identity = Identity(os.urandom(32).hex(), CHANGES, False, False)
            elif cls.whole:
                cls.identity = Identity(_content(cls.model), "weights", True, answers.independent)
            else:
                revision = hash_answers(answers.vectors)
                cls.identity = Identity(revision, "answers", True, answers.independent)
        return cls.identity

    @classmethod
    def doubt(cls) -> str | None:
        """Return one line if a sentence has several vectors, else None."""
        identity = cls.identify()
        if not identity.repeats:
            return (
                f"{cls.own_backbone}: the same sentences get other vectors at each call, so its "
                "scores will not repeat; "
                "if it is a torch model, call its .eval() first"
            )
        if not identity.independent:
            return (
                f"{cls.own_backbone}: the vector of a sentence depends on the other sentences of "
                "the call, "
                "so its scores depend on how they are batched; "
                "if it is a torch model, call its .eval() and mask the padding"
            )
        return None

    @classmethod
    def ask(
        cls, texts: list[str], has_prompt: bool = False, dimension: int | None = None
    ) -> np.ndarray:
        """Return the checked vectors of these texts. Raises RunFailed, also for errors in the
        object.
        """
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
        identity = self.identify()
        return {
            **super().about(),
            "class": f"{type(self.model).__module__}.{type(self.model).__qualname__}",
            "known": self.whole,
            "identity": identity.by,
            **({} if identity.independent else {"independent": False}),
            **(_facts_of(self.model) if self.whole else {}),
        }


def _content(model: Any) -> str:
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
    if (
        model.truncate_dim is not None
    ):  # else an object that is not cut keeps the identity that it had
        settings.append(model.truncate_dim)
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _facts_of(model: Any) -> dict[str, Any]:
    """Return the facts that a record keeps about a SentenceTransformer."""
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
