"""Load a sentence-transformers folder with its own library."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.backbones.folder import transformer_folder
from bench.backbones.load_failures import explain_failure
from bench.backbones.model import Backbone
from bench.backbones.positions import table_length
from bench.backbones.tokenizer import FILE, contradicted_ends, differs_from_file
from bench.base.errors import BenchError
from bench.base.sides import DOCUMENT, QUERY

UNLIMITED = 1_000_000
"""More tokens than any model reads: a tokenizer without a longest text says 1e30."""


@dataclass
class LoadedSentenceTransformer:
    """A SentenceTransformer as its library loads it."""

    model: Any
    # the transformer in it; None if its first module is another one, such as word vectors
    transformer: Any
    # tokens of a text, special ones included; None if nothing limits them
    limit: int | None
    # about its token ids, for the line that reports the model; "" if they are tokenizer.json's
    token_note: str
    # lines for the user
    notes: tuple[str, ...]


def load_sentence_transformer(
    backbone: Backbone, dtype: Any, max_length: int | None = None
) -> LoadedSentenceTransformer:
    """Load the model of a sentence-transformers folder on the CPU.

    ``max_length`` replaces the folder's own longest text. Raises NotAModel if the library cannot
    load it, BenchError for a ``max_length`` that it cannot keep.
    """
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(
            str(backbone.path),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": dtype},
        )
    except Exception as error:  # the library raises many kinds for a damaged folder
        raise explain_failure(backbone.name, transformer_folder(backbone.path), error) from None
    transformer = getattr(model[0], "model", None)
    notes: list[str] = []
    limit = _limit(model)
    if max_length is not None:
        _set_limit(model, max_length, backbone.name)
        limit = max_length
    positions = None if transformer is None else table_length(transformer)
    if positions is not None and (limit is None or limit > positions):
        if max_length is not None:
            raise BenchError(
                f"max_length={max_length}: {backbone.name} has {positions} positions",
                f"--set max_length={positions}, or less",
            )
        notes.append(
            f"{backbone.name} asks for {limit} tokens per text and has {positions} positions: "
            f"longer texts are cut to {positions} tokens"
        )
        _set_limit(model, positions, backbone.name)
        limit = positions
    return LoadedSentenceTransformer(
        model, transformer, limit, _token_note(model, backbone.path), tuple(notes)
    )


def _limit(model: Any) -> int | None:
    limit = model.max_seq_length
    if limit is None or not limit < UNLIMITED:
        return None
    return int(limit)


def _set_limit(model: Any, limit: int, name: str) -> None:
    with contextlib.suppress(AttributeError):  # the length of word vectors cannot be set
        model.max_seq_length = limit
    if model.max_seq_length != limit:
        kind = type(model[0]).__name__
        raise BenchError(
            f"max_length={limit}: {name} begins with a {kind}, which has no longest text to set",
            "leave max_length out",
        )


def _token_note(model: Any, path: Path) -> str:
    tokenizer = getattr(model[0], "tokenizer", None)
    if not hasattr(tokenizer, "backend_tokenizer"):
        return ""
    folder = transformer_folder(path)
    ends = contradicted_ends(tokenizer, folder)
    lower = bool(getattr(model[0], "do_lower_case", False))
    if not differs_from_file(tokenizer, folder, lower=lower):
        return ends
    kind = type(tokenizer).__name__
    note = f"tokenised by {kind}, as sentence-transformers does, which gives other ids than {FILE}"
    return f"{note}; {ends}" if ends else note


def pooling_of(model: Any) -> str | None:
    """Return the pooling of a SentenceTransformer: "mean", "cls+max"; None if it has no Pooling."""
    for part in model:
        if type(part).__name__ == "Pooling":
            mode = getattr(part, "pooling_mode", None) or part.get_pooling_mode_str()
            return mode if isinstance(mode, str) else "+".join(mode)
    return None


DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""Names of prompts, of which the library's ``encode_document`` takes the first that is there."""


def side_prompts(model: Any) -> dict[str, str]:
    """Return the prompts that the library's ``encode_query`` and ``encode_document`` take by
    themselves."""
    named = [name for name in DOCUMENT_PROMPTS if name in model.prompts]
    chosen = {
        QUERY: QUERY if QUERY in model.prompts else model.default_prompt_name,
        DOCUMENT: named[0] if named else model.default_prompt_name,
    }
    return {side: model.prompts.get(name or "", "") or "" for side, name in chosen.items()}


def router_of(model: Any) -> Any:
    """Return the module that has a route for each side; None if the model has none."""
    return next((part for part in model if type(part).__name__ == "Router"), None)


def unused_prompts(model: Any, used: str) -> dict[str, str]:
    """Return the prompts that a folder names and that are not used: name -> text."""
    return {name: text for name, text in model.prompts.items() if text and text != used}
