"""Explain why transformers could not load a folder.

The explanation is in its own words, or names the damaged file if those say too little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.backbones.folder import stored_as, weight_files
from bench.backbones.refusals import SCORE_THE_OBJECT
from bench.backbones.tensors import PICKLE, checkpoint_names, tensor_names
from bench.base.errors import NotAModel, one_line

OTHER_SIZES = "ignore_mismatched_sizes"  # in transformers' message about weights of other shapes
"""Part of transformers' message about weights of other shapes."""

WRAPPERS = {"_orig_mod.": "torch.compile", "module.": "DistributedDataParallel"}
"""The first part of all names in a checkpoint, by what wrapped the model when it was saved."""


def explain_failure(
    name: str, folder: Path, error: Exception, read_again: Callable[..., Any] | None = None
) -> NotAModel:
    """Return the error for a folder that could not be loaded.

    ``read_again`` loads it with more options, as transformers' from_pretrained does.
    """
    if isinstance(error, NotAModel):
        return error
    if "trust_remote_code" in str(error):
        return NotAModel(
            f"{name} needs code from its own repository, which bench does not run", SCORE_THE_OBJECT
        )
    damage = damaged_weights(folder)
    if damage is not None:
        return damage
    if OTHER_SIZES in str(error) and read_again is not None:
        return _other_sizes(name, read_again)
    return NotAModel(f"{name} cannot be loaded as an encoder: {one_line(error)}")


def damaged_weights(folder: Path) -> NotAModel | None:
    """Return the error about the first missing or damaged weight file; None if all are sound."""
    names = stored_as(folder)
    if not any((folder / file).exists() for file in names):
        return None
    for file in weight_files(folder):
        if not file.is_file():
            return NotAModel(
                f"{file} is missing, which {names[1]} names", "download the model again"
            )
        try:
            tensor_names(file)
        except NotAModel as error:
            return error
    return None


def lacking_weights(name: str, folder: Path, missing: Sequence[str]) -> NotAModel:
    """Return the error for a checkpoint without these weights of its encoder."""
    stored = checkpoint_names(folder)
    for prefix, wrapper in WRAPPERS.items():
        if not all(tensor.startswith(prefix) for tensor in stored):
            continue
        file = weight_files(folder)[0]
        hint = (
            'take it off: python -c "from safetensors.torch import load_file, save_file; '
            f"names = load_file('{file}'); save_file({{name.removeprefix('{prefix}'): tensor "
            f"for name, tensor in names.items()}}, '{file}', {{'format': 'pt'}})\""
        )
        if len(weight_files(folder)) > 1 or file.suffix == PICKLE:
            hint = f"save the model within: model.{prefix}save_pretrained(FOLDER)"
        return NotAModel(
            f"{name}: every name in its weights begins with {prefix}, as {wrapper} saves them", hint
        )
    return NotAModel(
        f"{name} lacks {len(missing)} weights of its encoder, the first is {missing[0]}",
        "the file is damaged, or its weights are for another architecture",
    )


def _other_sizes(name: str, read_again: Callable[..., Any]) -> NotAModel:
    """Return the error for weights with other shapes than the config's, naming the first."""
    _, info = read_again(ignore_mismatched_sizes=True, output_loading_info=True)
    different = sorted(info["mismatched_keys"], key=str)
    if not different:
        return NotAModel(f"{name}: its weights have other shapes than its config.json says")
    tensor, stored, wanted = different[0]
    more = ""
    if len(different) > 1:
        more = f" (and {len(different) - 1} more)"
    return NotAModel(
        f"{name}: {tensor} has shape {tuple(stored)} in its weights, and {tuple(wanted)} by its "
        f"config.json{more}",
        "take the config.json that belongs to these weights",
    )
