"""Convert pickled weights to safetensors, once, if ``--allow-pickle`` is given.

A pickle can hold code that runs when it is read. torch's reader for weights takes only the tensors
and runs nothing; without ``--allow-pickle`` no pickle is opened.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

from bench.backbones.folder import PICKLES, SETTINGS, WEIGHTS, weight_files
from bench.base.cache import build_folder, default_cache
from bench.base.errors import NotAModel
from bench.base.hashes import files_sha256

SAFE_TORCH = (2, 10)
"""The first torch that reads pickled weights safely."""
DENSE = "save the model with save_pretrained"


def convert_pickles(folder: Path, *, make: bool) -> Path | None:
    """Return the safetensors copy of a folder with pickled weights; None if there is none yet.

    ``make``: convert now. The copy is named after the content, so other weights get another copy.
    Raises NotAModel if the file is damaged or holds more than tensors.
    """
    copy = default_cache() / "converted" / _content(folder)[:32]
    config = copy / "config.json"
    if make and not config.is_file():
        try:
            build_folder(copy, lambda aside: _convert(folder, aside), config.is_file)
        except OSError as error:
            raise NotAModel(
                f"{folder}: the converted weights cannot be written to {copy}: "
                f"{error.strerror or error}",
                "set BENCH_CACHE to a folder with space",
            ) from None
    if not config.is_file():
        return None
    return copy


@cache
def _content(folder: Path) -> str:
    """Return the sha256 of everything that the copy is made from."""
    return files_sha256([*weight_files(folder, PICKLES), *_settings(folder)], folder)


def _settings(folder: Path) -> list[Path]:
    """Return the configs and vocabularies of a model folder."""
    return [file for file in folder.iterdir() if file.is_file() and file.suffix in SETTINGS]


def _convert(folder: Path, to: Path) -> None:
    """Write the safetensors copy of a model folder into the folder ``to``."""
    from safetensors.torch import save_file

    for file in _settings(folder):
        if file.name not in PICKLES:
            shutil.copyfile(file, to / file.name)
    tensors: dict[str, Any] = {}
    for file in weight_files(folder, PICKLES):
        for name, tensor in read_pickled_tensors(file).items():
            tensors[name] = tensor.clone().contiguous()
    save_file(tensors, to / WEIGHTS[0], metadata={"format": "pt"})


def read_pickled_tensors(file: Path) -> dict[str, Any]:
    """Read the tensors in a pickle. Raises NotAModel if it is damaged or holds anything else."""
    import torch

    major, minor = torch.__version__.split(".")[:2]
    if (int(major), int(minor)) < SAFE_TORCH:
        raise NotAModel(
            f"{file} is not read: a pickle can corrupt the memory of torch {torch.__version__} "
            "(CVE-2026-24747)",
            "pip install 'torch>=2.10', or ask the model's owner for safetensors",
        )
    try:
        state = torch.load(file, weights_only=True, map_location="cpu")
        if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
            state = state["state_dict"]
        tensors = {
            str(name): value for name, value in state.items() if isinstance(value, torch.Tensor)
        }
    except Exception as error:  # the bytes of a damaged or hostile file can raise anything
        reason = " ".join(str(error).split())[:120]
        raise NotAModel(
            f"{file} is not read: it holds more than tensors, or is damaged "
            f"({type(error).__name__}: {reason})",
            "ask the model's owner for safetensors",
        ) from None
    if not tensors:
        raise NotAModel(f"{file} holds no tensors")
    for name, tensor in tensors.items():
        _check_tensor(file, name, tensor)
    return tensors


def _check_tensor(file: Path, name: str, tensor: Any) -> None:
    """Raise NotAModel for a tensor that is sparse, quantised, without values, or too large."""
    import torch

    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        kind = f"{tensor.layout}, {tensor.dtype}, {tensor.device}"
        raise NotAModel(f"{file}: the tensor {name[:80]!r} is not dense ({kind})", DENSE)
    size = tensor.numel() * tensor.element_size()
    if size > file.stat().st_size:
        raise NotAModel(
            f"{file}: the tensor {name[:80]!r} has {size:,} bytes, its file less", DENSE
        )
