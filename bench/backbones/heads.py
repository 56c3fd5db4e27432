"""The parts of a checkpoint that belong to no encoder: the head of the task that it was trained
for. They are left out, not refused.
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
"""How the names of tensors begin that belong to heads (or the pooling layer), not to the encoder;
the last four are the networks that DiffCSE trains with it.
"""


def is_head(tensor: str, config: Any) -> bool:
    """Say if a tensor, named without the encoder's own prefix, is part of a head.

    The classes of transformers that ``config`` names say which tensors they have beside their
    encoder.
    """
    if tensor.startswith(HEADS):
        return True
    architectures = getattr(config, "architectures", None) or ()
    return any(tensor in beside_encoder(name, config) for name in architectures)


def beside_encoder(architecture: str, config: Any) -> frozenset[str]:
    """The tensors that a class of transformers has beside its encoder; none for a class that
    transformers does not know.

    The class is made without memory for its weights.
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
