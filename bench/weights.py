"""What a safetensors checkpoint holds, read from its header; and the encoder weights of a run put in the place of pretrained ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.errors import NotAModel


def tensor_names(file: Path) -> list[str]:
    """The names in a safetensors file, from its header alone. Raises NotAModel where it is none."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= 1 << 27:
                raise ValueError(f"a header of {length} bytes")
            return [name for name in json.loads(stream.read(length)) if name != "__metadata__"]
    except (OSError, ValueError) as error:
        raise NotAModel(f"{file} is no safetensors file: {error}") from None


def checkpoint_names(folder: Path) -> list[str]:
    """The names of the tensors of a model folder, in one file or several. Raises NotAModel where it is damaged."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return tensor_names(folder / "model.safetensors")
    try:
        return list(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    except (ValueError, KeyError, TypeError) as error:
        raise NotAModel(f"{index} is damaged: {error}") from None


def take_trained(encoder: Any, file: Path) -> None:
    """The ``encoder.*`` tensors of a run's checkpoint into an encoder. Raises NotAModel where one is lacking."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        state = {name.removeprefix("encoder."): t for name, t in load_file(file).items() if name.startswith("encoder.")}
    except (OSError, SafetensorError) as error:
        raise NotAModel(f"{file} cannot be read: {error}") from None
    lacking = sorted(dict(encoder.named_parameters()).keys() - state.keys())
    if lacking:
        raise NotAModel(
            f"{file.parent.parent} did not train the whole encoder ({lacking[0]} is not in its checkpoint)",
            "a prompt method's run is no backbone; take one that fine-tuned all of it",
        )
    encoder.load_state_dict(state, strict=False)
