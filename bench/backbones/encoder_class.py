"""The class of transformers that reads a model as an encoder, without a pooling layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def encoder_class(config: Any) -> Any:
    """Return the class of transformers that reads a model as an encoder: T5 without its decoder."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES

    kind = MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.get(config.model_type, "")
    if kind.endswith("EncoderModel"):
        return transformers.AutoModelForTextEncoding
    return transformers.AutoModel


def without_pooling_layer(make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function of transformers that makes an encoder, and leave its pooling layer out."""
    try:
        return make(*args, add_pooling_layer=False, **options)
    except TypeError:  # families without a pooling layer do not know the argument
        return make(*args, **options)
