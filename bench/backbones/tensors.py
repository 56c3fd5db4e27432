"""The tensors of a checkpoint, and the trained weights that replace pretrained ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.backbones.folder import stored_as, weight_map
from bench.backbones.pickles import read_pickle
from bench.base.errors import NotAModel, one_line

PICKLE = ".bin"
"""The suffix of weights in a pickle."""


@contextmanager
def _opened(file: Path, framework: str) -> Iterator[Any]:
    """Open a safetensors file. Raises NotAModel for any other file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework) as tensors:
            yield tensors
    except (OSError, SafetensorError) as error:
        size = file.stat().st_size if file.is_file() else 0
        raise NotAModel(
            f"{file} is damaged or cut off ({size:,} bytes): {one_line(error)[:120]}",
            "download the model again, or save it with save_pretrained",
        ) from None


def tensor_names(file: Path) -> list[str]:
    """Return the names of the tensors in a safetensors file, or in a pickle that is allowed.

    Raises NotAModel for any other file.
    """
    if file.suffix == PICKLE:
        return list(read_pickle(file))
    with _opened(file, "np") as tensors:  # "pt" would import torch
        return list(tensors.keys())


def checkpoint_names(folder: Path) -> list[str]:
    """Return the tensor names of a model folder, in one file or several.

    Raises NotAModel if a file is damaged.
    """
    single, index = (folder / name for name in stored_as(folder))
    if index.exists():
        return list(weight_map(index))
    return tensor_names(single)


def tensors_of(file: Path, beginning: str) -> dict[str, Any]:
    """Read the tensors with names that begin with ``beginning``, keyed by the rest of the name.

    Raises NotAModel if the file cannot be read.
    """
    if file.suffix == PICKLE:
        state = read_pickle(file)
        names = [name for name in state if name.startswith(beginning)]
        return {name.removeprefix(beginning): state[name] for name in names}
    with _opened(file, "pt") as tensors:
        names = [name for name in tensors.keys() if name.startswith(beginning)]  # noqa: SIM118
        return {name.removeprefix(beginning): tensors.get_tensor(name) for name in names}


def take_trained(encoder: Any, file: Path) -> None:
    """Load the ``encoder.*`` tensors of a run's checkpoint into an encoder.

    Raises NotAModel if one is missing.
    """
    state = tensors_of(file, "encoder.")
    missing = sorted(dict(encoder.named_parameters()).keys() - state.keys())
    if missing:
        raise NotAModel(
            f"{file.parent.parent} did not train the whole encoder ({missing[0]} is not in its "
            "checkpoint)",
            "a prompt method's run cannot be a backbone; take a run that fine-tuned the whole "
            "encoder",
        )
    encoder.load_state_dict(state, strict=False)
