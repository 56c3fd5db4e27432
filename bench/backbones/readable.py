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
from bench.backbones.pickles import check_pickles
from bench.backbones.refusals import (
    ADAPTER,
    check_no_adapter,
    check_no_own_code,
    check_pointers,
)
from bench.base.errors import NotAModel


def check_readable(path: Path, *, allow_pickle: bool, name: str = "") -> None:
    """Raise NotAModel if a folder holds no model that can be read.

    Weights in a pickle can be read if ``allow_pickle`` is given or was given before.
    """
    folder = transformer_folder(path)
    check_pointers({path, *module_folders(path)})
    if (path / "modules.json").is_file() and (folder / ADAPTER).is_file():
        check_adapter_of_library(folder)  # it loads the base, and the adapter on it
    elif has_transformer(path):
        check_no_adapter(folder)
        check_no_own_code(folder, name or str(path))
        if not any((folder / file).exists() for file in (*WEIGHTS, *PICKLES)):
            raise NotAModel(
                f"{path} has no model.safetensors", "save the model with save_pretrained"
            )
    elif not (path / "modules.json").is_file():
        raise NotAModel(
            f"{path} is not a model folder: it has no config.json",
            "give a folder that save_pretrained wrote",
        )
    check_pickles(path, allow=allow_pickle)
