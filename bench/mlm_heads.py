"""The masked-language-modelling head of a pretrained model, cut out: one face for the heads of all families.

Shapes: n rows, T tokens, H hidden size, E size of the word embeddings (H but for small ELECTRA models), V vocabulary.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class MLMHead(nn.Module):
    """States (..., H) -> logits (..., V): ``transform`` (dense, activation, layer norm) and ``decoder``."""

    def __init__(self, transform: nn.Module, decoder: nn.Linear) -> None:
        super().__init__()
        self.transform, self.decoder = transform, decoder

    def forward(self, states: Tensor) -> Tensor:
        logits: Tensor = self.decoder(self.transform(states))
        return logits


class Activation(nn.Module):
    """A library's activation as a module, whatever it is there."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        activated: Tensor = self.function(x)
        return activated


def head_of(model: Any, family: str) -> nn.Module | None:
    """The head of transformers' masked language model of a family; None for one that is not known here."""
    if family == "distilbert":
        dense = nn.Sequential(model.vocab_transform, Activation(model.activation), model.vocab_layer_norm)
        return MLMHead(dense, model.vocab_projector)
    if family == "modernbert":
        return MLMHead(model.head, model.decoder)
    if family == "electra":
        return MLMHead(model.generator_predictions, model.generator_lm_head)
    head = model.cls.predictions if hasattr(model, "cls") else getattr(model, "lm_head", None)
    return head if isinstance(getattr(head, "decoder", None), nn.Linear) else None
