"""Build a method on its backbone, as a run does."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from bench.backbones import Reference
from bench.backbones.direction import reads_ahead
from bench.backbones.model import Backbone
from bench.method.checks import check_beyond_first_token, check_direction
from bench.method.context import Context, seed_for
from bench.method.contract import Method
from bench.method.encoder_values import check_values_arrived, prepare_encoder
from bench.method.recipe import Recipe
from bench.method.torch_method import TorchMethod


def build_method(
    cls: type[Method], backbone: Reference, recipe: Recipe, context: Context, *, learns: bool
) -> Method:
    """Build a method on its backbone, in evaluation mode on the context's device.

    The context's seed fixes the initial weights. ``learns``: it is trained or fitted; otherwise its
    weights are frozen, because a checkpoint holds what trains. A method that brings its own vectors
    gets the reference itself. Raises NotAModel if the backbone is not available.
    """
    method = cls()
    method.context = context
    loaded: Any = backbone
    if cls.own_backbone is None:
        loaded = cls.read_backbone(backbone, recipe, context)
    encoder = None
    if isinstance(loaded, Backbone) and loaded.encoder is not None:
        encoder = loaded.encoder
        prepare_encoder(loaded, recipe, context.seed)
    torch.manual_seed(seed_for(context.seed, "init"))
    method.build(loaded, recipe)
    if encoder is not None:
        check_values_arrived(method, encoder, learns=learns)
    if isinstance(method, nn.Module):
        if not learns:
            method.requires_grad_(False)
        method.to(context.device).eval()
    if isinstance(method, TorchMethod) and (learns or cls.reads_first_token(recipe)):
        check_reading(method, recipe)
    return method


def check_reading(method: TorchMethod, recipe: Recipe) -> None:
    """Raise BenchError if a method takes the first token of a causal encoder for the sentence.

    The encoder itself is asked, whatever its config says. One that reads no token ids is not
    checked.
    """
    try:
        causal = not reads_ahead(method.encoder)
    except Exception:
        return
    check_direction(type(method), recipe, method.backbone.name, causal=causal)
    if causal:
        check_beyond_first_token(method)
