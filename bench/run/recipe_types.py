"""The types of recipe values: the values that a key may hold, and text as a value of that type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from msgspec import Meta, ValidationError, convert

from bench.base.errors import BenchError

WHOLE: Mapping[str, Any] = {
    "batch_size": Annotated[int, Meta(ge=1)],
    "max_steps": Annotated[int, Meta(ge=1)] | None,
    "max_seq_length": Annotated[int, Meta(ge=3)],
    "eval_steps": Annotated[int, Meta(ge=1)],
    "warmup_steps": Annotated[int, Meta(ge=0)],
    "max_length": Annotated[int, Meta(ge=3)] | None,
    "patience": Annotated[int, Meta(ge=1)] | None,
    "schedule_steps": Annotated[int, Meta(ge=1)] | None,
    "lora_rank": Annotated[int, Meta(ge=1)],
}
FRACTIONS: Mapping[str, Any] = {
    "learning_rate": Annotated[float, Meta(ge=0)],
    "epochs": Annotated[float, Meta(ge=0)],
    "weight_decay": Annotated[float, Meta(ge=0)],
    "max_grad_norm": Annotated[float, Meta(ge=0)] | None,
    "dropout": Annotated[float, Meta(ge=0, lt=1)] | None,
    "warmup_ratio": Annotated[float, Meta(ge=0, lt=1)],
    "lora_alpha": Annotated[float, Meta(gt=0)] | None,
    "lora_dropout": Annotated[float, Meta(ge=0, lt=1)],
}
TEXTS: Mapping[str, Any] = dict.fromkeys(
    ("budget", "adapter", "base_dtype", "attention", "duplicates"), str | None
)
KINDS: Mapping[str, Any] = {**WHOLE, **FRACTIONS, **TEXTS, "lora_targets": str, "prompt": str}
"""Types for msgspec; any other key has the type of its default."""
IN_ENGLISH = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
}


def _kind(key: str, like: Any) -> Any:
    """Return the type of a key's values.

    ``like``: a value that it has; it decides for keys of a method.
    """
    if key in KINDS:
        return KINDS[key]
    if like is None:
        return Any
    if isinstance(like, str):
        return str | None
    return type(like)


def parse_value(key: str, text: str, like: Any) -> Any:
    """Return the value of ``text``, with the type of ``like``, the value that it replaces.

    Raises BenchError if it has another type.
    """
    kind = _kind(key, like)
    if text.lower() in {"none", "null", ""} and not _wrong(None, kind):
        return None
    if kind is Any:
        with suppress(ValueError):
            return convert(text, int | float, strict=False)
        return text
    if wrong := _wrong(text, kind, strict=False):
        raise BenchError(
            f"--set {key}={text}: {wrong}",
            None if like is None else f"for example --set {key}={like}",
        )
    return convert(text, kind, strict=False)


def wrong_kind(key: str, value: Any, like: Any) -> str:
    """Describe the fault of a value from a file; "" if it fits the default ``like``."""
    wrong = _wrong(value, _kind(key, like))
    return f"{wrong}, found {value!r}" if wrong else ""


def _wrong(value: Any, kind: Any, *, strict: bool = True) -> str:
    try:
        converted = convert(value, kind, strict=strict)
    except ValidationError as error:
        expected = str(error).partition(", got")[0].replace(" | null", "").replace("`", "")
        return re.sub(r"\w+", lambda word: IN_ENGLISH.get(word[0], word[0].lower()), expected)
    return (
        "expected a number" if isinstance(converted, float) and not math.isfinite(converted) else ""
    )
