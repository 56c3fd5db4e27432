"""Pretrained encoders by name: ``builtin``, a folder, a run, or a model of the Hugging Face hub.

Not here: a loss, pooling or prompt; the method decides how it uses an encoder.
:func:`resolve` finds the files and the revision of a name without importing torch (a plan needs no
more); :func:`load` reads the encoder and the tokenizer.

    backbone = load(resolve("bert-base-uncased"))
    backbone.encoder, backbone.tokenizer, backbone.revision
"""

from bench.backbones.fetching import fetch_backbone
from bench.backbones.hub import describe_pending, look_up
from bench.backbones.loading import (
    check_stored_prefix,
    load,
    load_backbone,
    load_without_encoder,
    silence_transformers,
)
from bench.backbones.reference import Reference, builtin_folder, resolve, resolve_recorded

__all__ = [
    "Reference",
    "builtin_folder",
    "check_stored_prefix",
    "describe_pending",
    "fetch_backbone",
    "load",
    "load_backbone",
    "load_without_encoder",
    "look_up",
    "silence_transformers",
    "resolve",
    "resolve_recorded",
]
