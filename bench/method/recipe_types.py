"""The types of recipe values: the values that a key may hold, and text as a value of that type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from bench.base.errors import BenchError
from bench.base.typed import convert_typed

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
    "dimensions": Annotated[int, Meta(ge=1)] | None,
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
PLAIN: Mapping[str, Any] = dict.fromkeys(
    ("lora_targets", "prompt", "prompt_query", "prompt_document", "vector_precision"), str
)
KINDS: Mapping[str, Any] = {**WHOLE, **FRACTIONS, **TEXTS, **PLAIN}
"""Types for msgspec; any other key has the type of its default."""


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
    if text.lower() in {"none", "null", ""} and _accepts_none(kind):
        return None
    if kind is Any:  # a number or a text
        try:
            float(text)
        except ValueError:
            return text
        kind = int | float
    try:
        return convert_typed(text, kind, strict=False)
    except ValueError as error:
        example = None if like is None else f"for example --set {key}={like}"
        raise BenchError(f"--set {key}={text}: {error}", example) from None


def wrong_kind(key: str, value: Any, like: Any) -> str:
    """Describe the fault of a value from a file; "" if it fits the default ``like``."""
    try:
        convert_typed(value, _kind(key, like))
    except ValueError as error:
        return f"{error}, found {value!r}"
    return ""


def _accepts_none(kind: Any) -> bool:
    try:
        convert_typed(None, kind)
    except ValueError:
        return False
    return True
