"""Check a model folder before anything of it is loaded."""

from __future__ import annotations

from pathlib import Path

from bench.backbones.adapter_folder import check_adapter_of_library
from bench.backbones.folder import (
    PICKLES,
    WEIGHTS,
    has_transformer,
    module_folders,
    transformer_folder,
)
from bench.backbones.pickles import convert_pickles
from bench.backbones.refusals import (
    ADAPTER,
    check_no_adapter,
    check_no_own_code,
    check_pointers,
)
from bench.base.errors import NotAModel


def readable_model(path: Path, *, allow_pickle: bool, name: str = "") -> Path:
    """Return the folder, or its safetensors copy if its weights are a pickle.

    A pickle is converted if ``allow_pickle`` is given or a copy is there. Raises NotAModel if the
    folder holds no model that can be read.
    """
    folder = transformer_folder(path)
    check_pointers({path, *module_folders(path)})
    if (path / "modules.json").is_file() and (folder / ADAPTER).is_file():
        check_adapter_of_library(folder)
        return path  # sentence-transformers loads its base, and the adapter on it
    check_no_adapter(folder)
    if not has_transformer(path):
        # such as word vectors, which sentence-transformers reads
        if (path / "modules.json").is_file():
            return path
        raise NotAModel(
            f"{path} is not a model folder: it has no config.json",
            "give a folder that save_pretrained wrote",
        )
    check_no_own_code(folder, name or str(path))
    if any((folder / file).exists() for file in WEIGHTS):
        return path
    if not any((folder / file).is_file() for file in PICKLES):
        raise NotAModel(f"{path} has no model.safetensors", "save the model with save_pretrained")
    copy = convert_pickles(folder, make=allow_pickle)
    if copy is None:
        raise NotAModel(
            f"{path} has no model.safetensors: its weights are a pickle, which could run code",
            "--allow-pickle reads only the tensors in it and stores them as safetensors",
        )
    return copy
