"""Weights in pickles, which are read only if ``--allow-pickle`` is given.

A pickle can hold code that runs when it is read. transformers and sentence-transformers read it
with torch's reader for weights (``weights_only``), which takes tensors and runs nothing; without
the option no pickle is opened. What was allowed once, and holds only tensors, needs no leave
again: a run on it is exported or scored again by commands without the option.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from bench.backbones.folder import find_pickles, hash_files
from bench.base.cache import default_cache
from bench.base.errors import NotAModel

ALLOW = "--allow-pickle reads the tensors in it and runs nothing"
DENSE = "save the model with save_pretrained"


def is_allowed(path: Path) -> bool:
    """Tell whether the pickles of a model folder were allowed before; True without pickles."""
    pickles = find_pickles(path)
    return not pickles or _mark(path, pickles).is_file()


def check_pickles(path: Path, *, allow: bool) -> None:
    """Raise NotAModel if a model folder has pickles that may not be read.

    They may if ``allow`` is given now or was given before for the same bytes, if torch reads them
    safely, and if they hold only tensors.
    """
    pickles = find_pickles(path)
    if not pickles:
        return
    mark = _mark(path, pickles)
    if not allow and not mark.is_file():
        raise NotAModel(
            f"{path}: {pickles[0].relative_to(path)} is a pickle, which could run code", ALLOW
        )
    if mark.is_file():
        return
    for file in pickles:
        read_pickle(file)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise NotAModel(
            f"{mark} cannot be written: {error.strerror or error}",
            "set BENCH_CACHE to a folder with space",
        ) from None


def _mark(path: Path, pickles: list[Path]) -> Path:
    """Return the empty file that says that these pickles were allowed."""
    return default_cache() / "allowed-pickles" / hash_files(path, pickles)


def read_pickle(file: Path) -> dict[str, Any]:
    """Read the tensors in a pickle that is allowed.

    Raises NotAModel if it is damaged or holds anything else.
    """
    import torch

    try:
        is_archive = zipfile.is_zipfile(file)
        if is_archive:
            _check_archive(file)
        state = torch.load(file, weights_only=True, map_location="cpu", mmap=is_archive)
    except NotAModel:
        raise
    except Exception as error:  # the bytes of a damaged or hostile file can raise anything
        reason = " ".join(str(error).split())[:120]
        raise NotAModel(
            f"{file} is not read: it holds more than tensors, or is damaged "
            f"({type(error).__name__}: {reason})",
            "ask the model's owner for safetensors",
        ) from None
    if not isinstance(state, dict) or not state:
        raise NotAModel(f"{file} holds no tensors", "ask the model's owner for safetensors")
    for name, tensor in state.items():
        _check_tensor(file, str(name), tensor)
    return state


def _check_archive(file: Path) -> None:
    """Raise NotAModel for an archive that unpacks to more than its size."""
    with zipfile.ZipFile(file) as archive:
        sizes = [part.file_size for part in archive.infolist()]
    if sum(sizes) > file.stat().st_size:
        raise NotAModel(f"{file} unpacks to {sum(sizes):,} bytes, and its file has fewer", DENSE)


def _check_tensor(file: Path, name: str, tensor: Any) -> None:
    """Raise NotAModel for anything but a tensor that is dense and no larger than its file."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise NotAModel(
            f"{file} is not read: it holds more than tensors ({name[:80]!r} is a "
            f"{type(tensor).__name__})",
            DENSE,
        )
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        kind = f"{tensor.layout}, {tensor.dtype}, {tensor.device}"
        raise NotAModel(f"{file}: the tensor {name[:80]!r} is not dense ({kind})", DENSE)
    size = tensor.numel() * tensor.element_size()
    if size > file.stat().st_size:
        raise NotAModel(
            f"{file}: the tensor {name[:80]!r} has {size:,} bytes, its file less", DENSE
        )
