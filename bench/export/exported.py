"""The facts about a finished export."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exported:
    """What was written: of which run, and the largest difference from the method's own vectors,
    relative to their size.
    """

    form: str
    run_id: str
    difference: float
    dimensions: int
    module_files: tuple[str, ...] = ()  # source files in it; who loads the folder has to allow them
