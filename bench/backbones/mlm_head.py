"""The masked-language-modelling head of a pretrained model.

Shapes: n rows, T tokens, H hidden size, E size of the word embeddings (H except for small ELECTRA
models), V vocabulary.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torch import Tensor, nn

from bench.base.errors import BenchError


class MaskedLM(nn.Module):
    """A frozen masked language model: ids and mask (n, T) -> logits (n, T, V)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.requires_grad_(False)

    def forward(self, ids_nT: Tensor, mask_nT: Tensor) -> Tensor:
        logits_nTV: Tensor = self.model(input_ids=ids_nT, attention_mask=mask_nT).logits
        return logits_nTV


def head_of(model: Any, family: str) -> Any:
    """Cut the head out of a masked language model: states (..., H) -> logits (..., V).

    The result has a linear ``decoder``. Raises BenchError if the family's head is not known.
    """
    if family == "distilbert":
        transform: Any = nn.Sequential(
            model.vocab_transform, model.activation, model.vocab_layer_norm
        )
        decoder = model.vocab_projector
    elif family == "modernbert":
        transform, decoder = model.head, model.decoder
    elif family == "eurobert":
        transform, decoder = nn.Identity(), model.lm_head
    elif family == "electra":
        transform, decoder = model.generator_predictions, model.generator_lm_head
    else:
        head = getattr(model, "lm_head", None)
        if hasattr(model, "cls"):
            head = model.cls.predictions
        elif family == "albert":
            head = model.predictions
        if isinstance(getattr(head, "decoder", None), nn.Linear):
            return head
        raise BenchError(
            f"the MLM head of the family '{family}' is not known",
            "take a BERT or RoBERTa backbone",
        )
    return nn.Sequential(OrderedDict(transform=transform, decoder=decoder))
