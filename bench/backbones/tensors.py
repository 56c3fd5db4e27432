"""The tensors of a safetensors checkpoint, and the trained weights that replace pretrained ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.backbones.folder import WEIGHTS, readable, weight_map
from bench.base.errors import NotAModel


def tensor_names(file: Path) -> list[str]:
    """Return the tensor names in the header of a safetensors file.

    Raises NotAModel for any other file.
    """
    with readable(file, "is not a safetensors file"), file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= 1 << 27:
            raise ValueError(f"a header of {length} bytes")
        return [name for name in dict(json.loads(stream.read(length))) if name != "__metadata__"]


def checkpoint_names(folder: Path) -> list[str]:
    """Return the tensor names of a model folder, in one file or several.

    Raises NotAModel if a file is damaged.
    """
    single, index = (folder / name for name in WEIGHTS)
    if index.exists():
        return list(weight_map(index))
    return tensor_names(single)


def tensors_of(file: Path, beginning: str) -> dict[str, Any]:
    """Read the tensors with names that begin with ``beginning``, keyed by the rest of the name.

    Raises NotAModel if the file cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as tensors:
            names = [name for name in tensors.keys() if name.startswith(beginning)]  # noqa: SIM118
            return {name.removeprefix(beginning): tensors.get_tensor(name) for name in names}
    except (OSError, SafetensorError) as error:
        raise NotAModel(f"{file} cannot be read: {error}") from None


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
