"""The files of a trained method's checkpoint: ``trained.safetensors`` and ``method.json``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError
from bench.method.json_files import write_json

if TYPE_CHECKING:
    from torch import Tensor

TENSORS = "trained.safetensors"


def write_checkpoint(folder: Path, tensors: dict[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors of main memory, and the facts about them.

    Raises OSError or SafetensorError.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    if tensors:
        save_file(tensors, folder / TENSORS, metadata={"format": "pt"})
    write_json(folder / "method.json", {**facts, "tensors": len(tensors)})


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint. Raises BenchError if they cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = folder / TENSORS
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise BenchError(
            f"{file} cannot be read: {' '.join(str(error).split())}", _reading_hint(file)
        ) from None


def _reading_hint(file: Path) -> str:
    """Return a hint for weights that cannot be read; training again would overwrite somebody else's
    run.
    """
    if os.access(file, os.R_OK):
        return "bench run with --fresh trains it again"
    return f"ask its owner: chmod -R a+rX {file.parent}"
