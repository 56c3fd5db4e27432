"""Settings, and the values of recipes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SETTINGS = ("unsupervised", "supervised", "none")


@dataclass(frozen=True)
class Value:
    """One recipe value with the place it comes from; ``note`` keeps what another source says."""

    value: Any
    source: str
    note: str | None = None
