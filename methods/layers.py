"""An encoder's layers, one by one, for a decoder that shares them or for layers on top of it.

It knows no method.

n rows, T tokens (padded), H hidden size.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from bench.method import BenchError


def layers_of(encoder: Any) -> Any:
    """Return the encoder's layers in order.

    Raises BenchError if the model is not laid out like BERT.
    """
    layers = getattr(getattr(encoder, "encoder", None), "layer", None)
    parts = ("attention", "intermediate", "output")
    if layers is None or not all(hasattr(layers[0], part) for part in parts):
        raise BenchError(
            "this method needs BERT's layer layout, and this backbone has another",
            "take BERT or RoBERTa",
        )
    return layers


def embedding_layer(encoder: Any) -> nn.Module:
    """Return the module that feeds the first layer.

    Raises BenchError if the model has none under BERT's name.
    """
    found = getattr(encoder, "embeddings", None)
    if not isinstance(found, nn.Module):
        model = type(encoder).__name__
        raise BenchError(
            f"this method changes the embeddings, which it does not find in {model}",
            "take BERT or RoBERTa",
        )
    return found


def embedded(encoder: Any, ids_nT: Tensor) -> Tensor:
    """Return the input of the first layer, (n, T, H); ELECTRA's narrower embeddings are widened."""
    states: Tensor = encoder.embeddings(input_ids=ids_nT)
    if hasattr(encoder, "embeddings_project"):
        return encoder.embeddings_project(states)
    return states


def attention_mask(seen: Tensor, encoder: Any, dtype: torch.dtype) -> Tensor:
    """Return the mask of a layer's attention, made of ``seen``.

    ``seen`` is True if a query (dim -2) may look at a key (dim -1).
    """
    if encoder.config._attn_implementation == "sdpa":
        return seen
    open_mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
    return open_mask.masked_fill(~seen, torch.finfo(dtype).min)


def attended(layer: Any, states_nTH: Tensor, mask: Tensor) -> Tensor:
    """Return a layer's self-attention with its Add + LayerNorm, (n, T, H).

    ``mask``: see :func:`attention_mask`.
    """
    states: Tensor = layer.attention(states_nTH, mask)[0]
    return states


def fed_forward(layer: Any, states_nTH: Tensor) -> Tensor:
    """Return a layer's second half, (n, T, H)."""
    states: Tensor = layer.output(layer.intermediate(states_nTH), states_nTH)
    return states


def new_layers(encoder: Any, count: int) -> nn.ModuleList:
    """Return ``count`` layers of an encoder's kind with fresh weights.

    They start as its own did before pretraining: N(0, initializer_range).
    """
    config = copy.deepcopy(encoder.config)
    config.num_hidden_layers = count
    layers: nn.ModuleList = type(encoder)(config).encoder.layer
    return layers
