"""The contract of a method: the only module of ``bench`` that a plugin imports.

Not here: a method (``methods/``), a suite, or the loop; recipes and plugins are found here.

A method is anything that turns sentences into vectors. Two layers:

* :class:`Method` needs a name and ``encode``; it may use torch or not.
* :class:`TorchMethod` (a ``torch.nn.Module``) is for trained ones: ``views(batch)`` returns the
  tensors that the loss needs of each row, ``loss(views, batch)`` the loss of one batch, and
  ``embed(features)`` the vectors that are scored; training, precision, large batches on small
  devices, checkpoints, resume and progress come with it.

Importing this module does not import torch; naming ``TorchMethod`` does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.method.context import Context, TrainReport, rng_for, seed_for
from bench.method.contract import Method
from bench.method.portable import Affine, ModuleFile, Portable
from bench.method.recipe import Recipe, Value, check_choice, check_positive

if TYPE_CHECKING:
    from bench.backbones import load_backbone
    from bench.backbones.families import check_mlm_head, check_placed
    from bench.backbones.model import Backbone
    from bench.method.batch import Batch, Loss
    from bench.method.features import Features, Ids, join, pad
    from bench.method.torch_method import TorchMethod, adamw

__all__ = [
    "Affine",
    "Backbone",
    "Batch",
    "BenchError",
    "Context",
    "Features",
    "Ids",
    "Loss",
    "Method",
    "ModuleFile",
    "Portable",
    "Recipe",
    "TorchMethod",
    "TrainReport",
    "Value",
    "adamw",
    "check_choice",
    "check_mlm_head",
    "check_placed",
    "check_positive",
    "join",
    "load_backbone",
    "pad",
    "rng_for",
    "seed_for",
]

LAZY = {
    "bench.backbones": ("load_backbone",),
    "bench.backbones.families": ("check_mlm_head", "check_placed"),
    "bench.backbones.model": ("Backbone",),
    "bench.method.batch": ("Batch", "Loss"),
    "bench.method.features": ("Features", "Ids", "join", "pad"),
    "bench.method.torch_method": ("TorchMethod", "adamw"),
}


def __getattr__(name: str) -> Any:
    for module, names in LAZY.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'bench.method' has no attribute '{name}'")
