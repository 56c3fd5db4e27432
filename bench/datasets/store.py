"""Where fetched data is kept, and what can fill it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bench.datasets.manifest import DataSet


class Gets(Protocol):
    """What fetches a set that is missing; see bench.datasets.fetch."""

    def get(self, wanted: DataSet, text: str) -> None: ...


def fetched_folder() -> Path:
    """The folder for fetched data, unless the user names one: below $BENCH_CACHE, else ~/.cache/sentence-bench."""
    from bench.corpora.cache import default_cache

    return default_cache() / "data"
