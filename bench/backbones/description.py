"""Describe a loaded backbone from its family's entry and from its own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from bench.backbones.dropout import is_dropout, own_dropout
from bench.backbones.families import FAMILIES, Family, check_mlm_head
from bench.backbones.model import Backbone
from bench.base.errors import BenchError

UNLISTED = "not listed: what it cannot do shows when a method is built"


def describe_family(backbone: Backbone, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts about direction, ends, padding, positions, dropout, heads and room for prompts.

    Everything is read from the model's files or measured; only the kind of positions, the head's
    tensors and the deep prompt come from the family's entry.
    """
    family = FAMILIES.get(backbone.family)
    before, after = backbone.special_tokens()
    reads = "both ways"
    if not backbone.reads_ahead:
        reads = "earlier tokens only (causal): its first token has seen none of the others"
    room = backbone.max_tokens - len(before) - len(after)
    entry = UNLISTED
    if family is not None:
        entry = family.title
    dropout_keys = "none"
    if _dropout_keys(backbone):
        dropout_keys = ", ".join(_dropout_keys(backbone))
    return {
        "reads": reads,
        "before a text": _tokens(backbone, before),
        "after a text": _tokens(backbone, after),
        "padding": _padding(backbone),
        "position ids": _positions(backbone, family),
        "local attention": _window(config, family),
        "dropout": own_dropout(config),
        "dropout keys": dropout_keys,
        "MLM head": _mlm_head(backbone),
        "LM head": _lm_head(backbone, family),
        "prompt room": f"{room} tokens for a prompt and its sentence",
        "deep prompt": _deep_prompt(family),
        "entry": entry,
    }


def _tokens(backbone: Backbone, ids: Sequence[int]) -> str:
    """Return the tokens of these ids with blanks between them; "nothing" if there are none."""
    if not ids:
        return "nothing"
    return " ".join(backbone.tokenizer.convert_ids_to_tokens(ids))


def _padding(backbone: Backbone) -> str:
    """Describe the token and the side of padding."""
    tokenizer = backbone.tokenizer
    token = "id 0, for its tokenizer names none"
    if tokenizer.pad_token is not None:
        token = str(tokenizer.pad_token)
    side = f"its makers pad on the {tokenizer.padding_side}"
    return f"{token}; {side}; here it is on the right, which gives the same vectors"


def _positions(backbone: Backbone, family: Family | None) -> str:
    """Describe the kind of positions, and the first one."""
    kind = "kind not known" if family is None else family.positions
    return f"{kind}, from {backbone.first_position}"


def _window(config: Mapping[str, Any], family: Family | None) -> str:
    """Describe local attention, if the config sets its width."""
    if family is None:
        return "not known"
    width = config.get(family.window) if family.window else None
    if width is None:
        return "none"
    return f"{family.window} = {width}"


def _dropout_keys(backbone: Backbone) -> list[str]:
    """Return the keys of the config that set dropout inside the encoder, in order."""
    settings = backbone.encoder.config.to_dict()
    return sorted(key for key, value in settings.items() if is_dropout(key, value))


def _mlm_head(backbone: Backbone) -> str:
    """Return "yes" if the checkpoint has a masked-language-modelling head."""
    with suppress(BenchError):
        check_mlm_head(backbone.weights or backbone.path)
        return "yes"
    return "no"


def _lm_head(backbone: Backbone, family: Family | None) -> str:
    """Describe a decoder's head: tensors of its own, or the word embeddings."""
    if family is None or not family.lm_head:
        return "no"
    if backbone.stored(family.lm_head):
        return f"{family.lm_head}weight"
    return "the word embeddings"


def _deep_prompt(family: Family | None) -> str:
    """Say if the layers take keys and values from outside."""
    if family is None:
        return "unknown"
    return "yes" if family.prefix else "no"
