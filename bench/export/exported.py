"""What an export was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Exported:
    """What was written: where, of which run, and the largest difference from the method's own vectors, relative to their size."""

    folder: Path
    form: str
    run_id: str
    difference: float
    dimensions: int
    module_files: tuple[str, ...] = ()  # source files in it; who loads the folder has to allow them
