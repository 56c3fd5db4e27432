"""The facts about a finished export."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exported:
    """A written model, compared with its method."""

    run_id: str
    # the largest difference from the method's own vectors, relative to their size
    difference: float
    dimensions: int
    # source files in the folder, which the user has to allow when loading it
    module_files: tuple[str, ...] = ()
    # its decoder attends to both sides, which old versions of transformers ignore
    bidirectional: bool = False
    # the public name of the model that it is an adapter of; "": it is a whole model
    base: str = ""
