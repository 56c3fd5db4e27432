"""The entry points that installed packages register methods with."""

from __future__ import annotations

import importlib.metadata
from functools import lru_cache

GROUP = "bench.methods"
"""The entry points of methods."""
BUILT_IN = "sentence-bench"
"""The distribution of this package's methods."""


def method_points() -> list[importlib.metadata.EntryPoint]:
    """Return the entry points of methods, our own first: the first with a name counts."""
    return sorted(
        importlib.metadata.entry_points(group=GROUP),
        key=lambda point: (distribution_of(point) != BUILT_IN, distribution_of(point)),
    )


def distribution_of(point: importlib.metadata.EntryPoint) -> str:
    """Return the name of the distribution that registers an entry point."""
    return distribution_and_version(point)[0]


def distribution_and_version(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """Return name and version of the distribution that registers an entry point."""
    if point.dist is None:
        return "?", ""
    return _name_and_version(point.dist)


# each question for a name parses a file, and a distribution may have 40 entry points
@lru_cache(maxsize=32)
def _name_and_version(distribution: importlib.metadata.Distribution) -> tuple[str, str]:
    return distribution.name, distribution.version
