"""Poolers: (hidden states of all layers, mask) -> one vector a sentence.

n sentences, T tokens, H hidden size.  states[0] is the embedding layer's output, states[l] the
output of layer l, states[-1] the last. Special tokens count in every mean. A sentence without a
token, which is an empty text if the tokenizer adds none, is the zero vector in every pooler, as in
sentence-transformers. "First-last" has two meanings in the literature, and so two names here:
``avg_emb_last`` is the old one (the 56.70 that the papers print for BERT), ``avg_first_last`` the
one in SimCSE's code since January 2022 (about 4 points higher).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from bench.method import Affine, Backbone, Features, ModuleFile, Portable, TorchMethod

Pooler = Callable[[Sequence[Tensor], Tensor], Tensor]


def masked_mean(states_nTH: Tensor, mask_nT: Tensor) -> Tensor:
    """Return the mean over the tokens with mask 1, (n, H); 0 for a row without one."""
    weights = mask_nT.unsqueeze(-1).to(states_nTH.dtype)
    return (states_nTH * weights).sum(1) / weights.sum(1).clamp_min(1)


def first_token(states_nTH: Tensor, mask_nT: Tensor) -> Tensor:
    """Return the state of each row's first token, (n, H), in rows padded on the right; 0 for an
    empty row.
    """
    return states_nTH[:, 0] * mask_nT[:, :1].to(states_nTH.dtype)


def last_token(states_nTH: Tensor, mask_nT: Tensor) -> Tensor:
    """Return the state of each row's last token, (n, H), with padding on either side; else 0."""
    positions = torch.arange(1, mask_nT.shape[1] + 1, device=mask_nT.device)
    rows = torch.arange(len(mask_nT), device=mask_nT.device)
    states = states_nTH[rows, (mask_nT * positions).argmax(1)]
    return states * mask_nT.amax(1, keepdim=True).to(states.dtype)


POOLERS: dict[str, Pooler] = {
    "cls": lambda states, mask: first_token(states[-1], mask),
    "avg": lambda states, mask: masked_mean(states[-1], mask),
    "avg_top2": lambda states, mask: masked_mean((states[-1] + states[-2]) / 2, mask),
    "avg_first_last": lambda states, mask: masked_mean((states[1] + states[-1]) / 2, mask),
    "avg_emb_last": lambda states, mask: masked_mean((states[0] + states[-1]) / 2, mask),
}

LAST_LAYER_ALONE = {"cls", "avg"}  # poolers that look at no other layer


def pooled(method: TorchMethod, features: Features, pooler: str) -> Tensor:
    """Return the vectors, (n, H), that the named pooler makes of a method's encoder."""
    if pooler in LAST_LAYER_ALONE:
        return POOLERS[pooler]([method.hidden(features)], features["attention_mask"])
    # L + 1 of (n, T, H)
    states = method.encoder(**features, output_hidden_states=True).hidden_states
    return POOLERS[pooler](states, features["attention_mask"])


# the same in the words of an export: how tokens are pooled, and the mean of which hidden states
IN_PARTS: dict[str, tuple[str, tuple[int, ...]]] = {
    "cls": ("cls", (-1,)),
    "avg": ("mean", (-1,)),
    "avg_top2": ("mean", (-2, -1)),
    "avg_first_last": ("mean", (1, -1)),
    "avg_emb_last": ("mean", (0, -1)),
}


def portable_of(
    method: TorchMethod,
    pooler: str,
    *layers: Affine | ModuleFile | Head | None,
    max_tokens: int | None = None,
) -> Portable:
    """Return the parts of a method that pools its encoder's states.

    ``layers`` are applied to the pooled vector; None is left out.
    """
    pooling, states = IN_PARTS[pooler]
    behind = tuple(
        layer.portable() if isinstance(layer, Head) else layer
        for layer in layers
        if layer is not None
    )
    limit = (
        method.backbone.max_tokens
        if max_tokens is None
        else min(max_tokens, method.backbone.max_tokens)
    )
    return Portable(method.encoder, method.backbone.tokenizer, limit, pooling, states, behind)


class ScoredFirstToken(TorchMethod):
    """A method that scores CLS of the last layer, through its ``head`` if ``head_at_test``."""

    first_token = True
    head: nn.Module

    def cls(self, features: Features) -> Tensor:
        return self.hidden(features)[:, 0]  # (n, H)

    def embed(self, features: Features) -> Tensor:
        vectors = self.cls(features)
        return self.head(vectors) if self.recipe.get("head_at_test") else vectors

    def portable(self) -> Portable:
        head: Any = self.head if self.recipe.get("head_at_test") else None
        return portable_of(self, "cls", head)


class ScoredMean(TorchMethod):
    """A method that scores the mean over the tokens of the last layer."""

    def embed(self, features: Features) -> Tensor:
        return masked_mean(self.hidden(features), features["attention_mask"])  # (n, H)

    def portable(self) -> Portable:
        return portable_of(self, "avg")


class Head(nn.Module):
    """A dense layer with tanh on the pooled vector: Linear(H, H), weights N(0, 0.02), bias 0.

    It is SimCSE's "MLP layer".
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden, hidden)
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    @classmethod
    def kept_by(cls, backbone: Backbone) -> Head | None:
        """Return the pooling layer or SimCSE's head that a checkpoint keeps, or None."""
        kept = backbone.pooling_layer()
        if kept is None:
            return None
        head = cls(len(kept[1]))
        head.dense.load_state_dict({"weight": kept[0], "bias": kept[1]})
        return head

    def forward(self, pooled_nH: Tensor) -> Tensor:
        return self.dense(pooled_nH).tanh()

    def portable(self) -> Affine:
        return Affine(self.dense.weight, self.dense.bias, tanh=True)
