"""Build a method on its backbone, as a run does."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from bench.backbones import Reference
from bench.backbones.direction import reads_ahead
from bench.backbones.model import Backbone
from bench.method.checks import check_beyond_first_token, check_direction, reads_first_token
from bench.method.context import Context, seed_for
from bench.method.contract import Method
from bench.method.encoder_values import check_values_arrived, load_encoder, prepare_encoder
from bench.method.finished import FinishedEncoder
from bench.method.own_vectors import OwnVectors
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
    loaded = read_backbone(cls, backbone, recipe, context)
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
    if isinstance(method, TorchMethod) and (learns or reads_first_token(cls, recipe)):
        check_reading(method, recipe)
    return method


def read_backbone(cls: type[Method], reference: Reference, recipe: Recipe, context: Context) -> Any:
    """Return the base of a method: a ``Backbone``, or the reference itself for a method that brings
    its own vectors.

    Raises NotAModel if the backbone is not available.
    """
    if issubclass(cls, OwnVectors):
        return reference
    if issubclass(cls, FinishedEncoder):
        return cls.read_backbone(reference, recipe, context)
    return load_encoder(reference, recipe, context)


def check_reading(method: TorchMethod, recipe: Recipe) -> None:
    """Raise BenchError if a method takes the first token of a causal encoder for the sentence.

    The encoder itself is tested; its config does not count. One that reads no token ids is not
    checked.
    """
    try:
        causal = not reads_ahead(method.encoder)
    except Exception:
        return
    check_direction(type(method), recipe, method.backbone.name, causal=causal)
    if causal:
        check_beyond_first_token(method)
