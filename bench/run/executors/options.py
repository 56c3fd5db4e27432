"""How runs are executed, as opposed to what they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.method.ranks import Alone


@dataclass(frozen=True)
class Options:
    """None of it changes what a run is: its fingerprint knows nothing of them."""

    device: str = "cpu"
    offline: bool = False
    fresh: bool = False
    cache: Path | None = None
    wait_seconds: float = 0.0
    save_seconds: float = 60.0
    chunk: int | None = None  # rows of a batch whose activations are held at once while training
    auto_batch: bool = False  # hold fewer rows at once where a batch does not fit into memory
    ranks: Alone | None = None  # the processes that train together
