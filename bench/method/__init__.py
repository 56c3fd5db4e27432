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

from bench.base.errors import BenchError, Interrupted
from bench.method.context import Context, Reporter, TrainReport, rng_for, seed_for
from bench.method.context import SilentReporter as SilentReporter
from bench.method.contract import Method
from bench.method.json_files import read_json, write_json
from bench.method.portable import Affine, ModuleFile, Portable
from bench.method.prompts import PLACE, prompted, task_prompt
from bench.method.recipe import Recipe, Value, check_choice, check_positive

if TYPE_CHECKING:
    from bench.backbones import Reference, load_backbone, load_without_encoder
    from bench.backbones.direction import check_not_causal
    from bench.backbones.families import (
        check_decoder,
        check_layers,
        check_mlm_head,
        check_placed,
        check_prefix,
        find_family,
    )
    from bench.backbones.folder import has_transformer, read_transformer_config
    from bench.backbones.model import Backbone
    from bench.backbones.positions import check_max_length
    from bench.backbones.refusals import check_one_vector
    from bench.backbones.sentence_transformer import (
        load_sentence_transformer,
        pooling_of,
        unused_prompts,
    )
    from bench.method.answers import COMPANY, ask_probe
    from bench.method.batch import Batch, Loss
    from bench.method.features import Features, Ids, constant, join, pad, widened
    from bench.method.optimizer import UncorrectedAdamW
    from bench.method.torch_method import TorchMethod, adamw
    from bench.method.whole_texts import encode_whole

__all__ = [
    "PLACE",
    "COMPANY",
    "Affine",
    "Backbone",
    "Batch",
    "BenchError",
    "Context",
    "Features",
    "Ids",
    "Interrupted",
    "Loss",
    "Method",
    "ModuleFile",
    "Portable",
    "Recipe",
    "Reference",
    "Reporter",
    "TorchMethod",
    "TrainReport",
    "UncorrectedAdamW",
    "Value",
    "adamw",
    "ask_probe",
    "check_choice",
    "check_decoder",
    "check_layers",
    "check_max_length",
    "check_mlm_head",
    "check_not_causal",
    "check_one_vector",
    "check_placed",
    "check_positive",
    "check_prefix",
    "constant",
    "encode_whole",
    "find_family",
    "has_transformer",
    "join",
    "load_backbone",
    "load_sentence_transformer",
    "load_without_encoder",
    "pad",
    "pooling_of",
    "prompted",
    "read_json",
    "read_transformer_config",
    "rng_for",
    "seed_for",
    "task_prompt",
    "unused_prompts",
    "widened",
    "write_json",
]

LAZY = {
    "bench.backbones.model": ("Backbone",),
    "bench.backbones": ("Reference", "load_backbone", "load_without_encoder"),
    "bench.backbones.direction": ("check_not_causal",),
    "bench.backbones.families": (
        "check_decoder",
        "check_layers",
        "check_mlm_head",
        "check_placed",
        "check_prefix",
        "find_family",
    ),
    "bench.backbones.folder": ("has_transformer", "read_transformer_config"),
    "bench.backbones.positions": ("check_max_length",),
    "bench.backbones.refusals": ("check_one_vector",),
    "bench.backbones.sentence_transformer": (
        "load_sentence_transformer",
        "pooling_of",
        "unused_prompts",
    ),
    "bench.method.answers": ("COMPANY", "ask_probe"),
    "bench.method.batch": ("Batch", "Loss"),
    "bench.method.features": ("Features", "Ids", "constant", "join", "pad", "widened"),
    "bench.method.optimizer": ("UncorrectedAdamW",),
    "bench.method.torch_method": ("TorchMethod", "adamw"),
    "bench.method.whole_texts": ("encode_whole",),
}


def __getattr__(name: str) -> Any:
    for module, names in LAZY.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'bench.method' has no attribute '{name}'")
