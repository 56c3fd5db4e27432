"""An encoder as the decoder of its own kind, by hooks: for layers that cannot be taken apart as
BERT's can.

One pass through the encoder, in which a token attends to earlier ones only. Behind the attention of
each layer a cross-attention to ONE vector s is added. Its softmax is 1 whatever query and key are,
so that output(value(s)) is left of it:

* layers that normalise first (ModernBERT, EuroBERT): h + attention(norm(h)) + output(value(s));
* layers that normalise last (NomicBERT): norm'(h + output(value(s))) of the normalised h, as BERT.

n rows, T tokens (padded), H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from bench.backbones.families import find_family


class AddedAttention(nn.Module):
    """Attention to one vector, added to the states of every position.

    Weights start as N(0, 0.02), biases as 0. ``normed``: Add is followed by a LayerNorm.
    """

    def __init__(self, hidden: int, dropout: float, eps: float, *, normed: bool) -> None:
        super().__init__()
        self.value = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, hidden)
        for layer in (self.value, self.output):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        self.norm = nn.LayerNorm(hidden, eps=eps) if normed else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def forward(self, states_nTH: Tensor, vectors_nH: Tensor) -> Tensor:
        output_n1H = self.output(self.value(vectors_nH)).unsqueeze(1)
        added = self.dropout(output_n1H.expand_as(states_nTH))
        states: Tensor = self.norm(states_nTH + added)
        return states


def place_of_attention(encoder: Any) -> str:
    """Return the module of each layer behind which a cross-attention is added; "" if BERT's layers
    are taken apart instead.
    """
    family = find_family(encoder.config.model_type)
    return "" if family is None else family.cross


def added_attentions(encoder: Any) -> nn.ModuleList:
    """Return a new cross-attention for each layer."""
    config = encoder.config
    normed = "norm" in place_of_attention(encoder)
    dropout = 0.0
    for key in ("hidden_dropout_prob", "mlp_dropout", "attention_dropout"):
        if hasattr(config, key):
            dropout = float(getattr(config, key))
            break
    eps = float(getattr(config, "layer_norm_eps", 1e-5))
    made = nn.ModuleList()
    for _ in encoder.layers:
        made.append(AddedAttention(config.hidden_size, dropout, eps, normed=normed))
    return made


def decoded(
    encoder: Any, ids_nT: Tensor, crosses: Sequence[Callable[..., Tensor]], vectors_nH: Tensor
) -> Tensor:
    """Return the states behind each token, (n, T, H), from earlier tokens and the row's vector."""
    place = place_of_attention(encoder)
    with ExitStack() as hooks:
        for layer, cross in zip(encoder.layers, crosses, strict=True):
            handle = getattr(layer, place).register_forward_hook(adding(cross, vectors_nH))
            hooks.callback(handle.remove)
        states: Tensor = encoder(
            input_ids=ids_nT, attention_mask=earlier_masks(encoder, ids_nT.shape[1])
        ).last_hidden_state
    return states


def adding(cross: Callable[..., Tensor], vectors_nH: Tensor) -> Callable[..., Any]:
    """Return a forward hook that adds a cross-attention to a module's output."""

    def add(module: nn.Module, inputs: Any, returned: Any) -> Any:
        if isinstance(returned, tuple):  # an attention returns its weights, too
            return (cross(returned[0], vectors_nH), *returned[1:])
        return cross(returned, vectors_nH)

    return add


def earlier_masks(encoder: Any, T: int) -> Any:
    """Return masks with which a token attends to itself and earlier ones, as the encoder takes
    them.

    ModernBERT takes one for each kind of layer; its local layers see a part of the earlier tokens.
    """
    weight = encoder.get_input_embeddings().weight
    numbers = torch.arange(T, device=weight.device)
    distance_TT = numbers[:, None] - numbers[None, :]
    earlier = mask_of(distance_TT >= 0, encoder, weight.dtype)
    if encoder.config.model_type != "modernbert":
        return earlier
    near = (distance_TT >= 0) & (distance_TT <= encoder.config.sliding_window)
    return {
        "full_attention": earlier,
        "sliding_attention": mask_of(near, encoder, weight.dtype),
    }


def mask_of(seen_TT: Tensor, encoder: Any, dtype: torch.dtype) -> Tensor:
    """Return the (1, 1, T, T) mask of a kernel: True or 0 if a query may look at a key."""
    if encoder.config._attn_implementation == "sdpa":
        return seen_TT[None, None]
    open_mask = torch.zeros(seen_TT.shape, dtype=dtype, device=seen_TT.device)
    return open_mask.masked_fill(~seen_TT, torch.finfo(dtype).min)[None, None]
