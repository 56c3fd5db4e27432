"""A backbone without its weights: the modules of its config on torch's meta device. There a
parameter has a shape and no numbers. Plans count with it, also for a model that was not fetched.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

from bench.backbones.direction import is_causal
from bench.backbones.encoder_class import encoder_class, without_pooling_layer
from bench.backbones.folder import read_config, transformer_folder
from bench.backbones.known_models import SHAPES
from bench.backbones.loading import silence_transformers
from bench.backbones.model import Backbone
from bench.backbones.reference import Reference, builtin_folder
from bench.backbones.sizes import check_sizes
from bench.backbones.tensors import checkpoint_names
from bench.backbones.tokenizer import read_tokenizer
from bench.base.errors import NotAModel


class Outline(Backbone):
    """A backbone with an encoder without weights."""

    @property
    def reads_ahead(self) -> bool:  # type: ignore[override]
        """False for a causal model; its config says so, because nothing can be computed."""
        return not is_causal(self.encoder.config.to_dict())

    def _masked_lm(self) -> Any:
        import torch
        from transformers import AutoModelForMaskedLM

        with torch.device("meta"):
            return AutoModelForMaskedLM.from_config(self.encoder.config)


def outline(reference: Reference) -> Outline:
    """Return the outline of a backbone that was fetched, or has known sizes.

    A model that was not fetched gets the package's tokenizer, which decides how many tokens a
    template has, and no other count. Raises NotAModel if the sizes are not known, or if the config
    does not fit the files.
    """
    shared = _outline(reference)
    # a method freezes and changes its encoder
    return Outline(**{**vars(shared), "encoder": copy.deepcopy(shared.encoder)})


@lru_cache(maxsize=8)
def _outline(reference: Reference) -> Outline:
    silence_transformers()
    folder = builtin_folder()
    if reference.path is not None:
        folder = transformer_folder(reference.path)
    config = _config_of(reference)
    return Outline(
        name=reference.name,
        revision=reference.revision,
        family=config.model_type,
        encoder=_encoder_of(config),
        tokenizer=read_tokenizer(folder).tokenizer,
        path=folder,
    )


def _config_of(reference: Reference) -> Any:
    import transformers

    if reference.path is None:
        sizes = SHAPES.get(reference.model.rpartition("/")[2])
        if sizes is None:
            raise NotAModel(f"{reference.name} is not on this machine, and its sizes are not known")
        return transformers.AutoConfig.for_model(**sizes)
    folder = transformer_folder(reference.path)
    # a forged number of layers would be built
    check_sizes(reference.name, folder, read_config(folder), len(checkpoint_names(folder)))
    return transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)


def _encoder_of(config: Any) -> Any:
    import torch

    with torch.device("meta"):
        return without_pooling_layer(encoder_class(config).from_config, config)
