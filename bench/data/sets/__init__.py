"""Evaluation data and corpora: what there is, where it is found, whether it is whole."""

from __future__ import annotations

from bench.data.sets.folder import Copy, DataFolder, State
from bench.data.sets.manifest import DataFile, DataSet, data_set, data_sets
from bench.data.sets.sources import (
    Later,
    NotFetchedYet,
    Pending,
    Source,
    fetched_folder,
    sources,
    sources_of,
)

__all__ = [
    "Copy",
    "DataFile",
    "DataFolder",
    "DataSet",
    "Later",
    "NotFetchedYet",
    "Pending",
    "Source",
    "State",
    "data_set",
    "data_sets",
    "fetched_folder",
    "sources",
    "sources_of",
]
