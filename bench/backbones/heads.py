"""Heads: parts of a checkpoint that belong to the task of its training, not to the encoder.

They are left out, not refused.
"""

from __future__ import annotations

from typing import Any

HEADS = (
    "cls.",
    "lm_head.",
    "classifier.",
    "pooler.",
    "vocab_",
    "generator_",
    "discriminator_",
    "mask_predictions.",
    "lm_predictions.",
    "predictions.",
    "embed_out.",
    "head.",
    "decoder.",
    "qa_outputs.",
    "pre_classifier.",
    "score.",
    "mlp.",
    "aux_bert.",
    "generator.",
    "discriminator.",
    "electra_head.",
)
"""The first parts of the names of tensors in heads and pooling layers. The last four are networks
that DiffCSE trains next to the encoder.
"""


def is_head(tensor: str, config: Any) -> bool:
    """Tell whether a tensor, named without the encoder's own prefix, is part of a head.

    The classes of transformers that ``config`` names show which tensors they have outside of the
    encoder.
    """
    if tensor.startswith(HEADS):
        return True
    architectures = getattr(config, "architectures", None) or ()
    return any(tensor in beside_encoder(name, config) for name in architectures)


def beside_encoder(architecture: str, config: Any) -> frozenset[str]:
    """Return the tensors that a class of transformers has outside of its encoder.

    The set is empty for a class that transformers does not know. The class is made without memory
    for its weights.
    """
    import torch
    import transformers

    cls = getattr(transformers, architecture, None)
    if not isinstance(cls, type) or not issubclass(cls, transformers.PreTrainedModel):
        return frozenset()
    try:
        with torch.device("meta"):
            model = cls(config)
    except Exception:  # a config of another class: then nothing is known of it
        return frozenset()
    encoder = f"{model.base_model_prefix}."
    return frozenset(name for name in model.state_dict() if not name.startswith(encoder))
