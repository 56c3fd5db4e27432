"""Evaluation data and corpora: what there is, where it is found, whether it is whole."""

from __future__ import annotations

from bench.data.sets.cxc import CXC, RatedCaptions, read_cxc
from bench.data.sets.cxc import OFFICIAL as CXC_OFFICIAL
from bench.data.sets.fetch import Fetcher
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
from bench.data.sets.sts import STS_TASKS, SentencePairs, read_sts
from bench.data.sets.transfer import (
    CLUSTERING_TASKS,
    TRANSFER_TASKS,
    ClassedTexts,
    LabelledTexts,
    read_clustering,
    read_transfer,
)

__all__ = [
    "CLUSTERING_TASKS",
    "CXC",
    "CXC_OFFICIAL",
    "STS_TASKS",
    "TRANSFER_TASKS",
    "ClassedTexts",
    "Copy",
    "DataFile",
    "DataFolder",
    "DataSet",
    "Fetcher",
    "LabelledTexts",
    "Later",
    "NotFetchedYet",
    "Pending",
    "RatedCaptions",
    "SentencePairs",
    "Source",
    "State",
    "data_set",
    "data_sets",
    "fetched_folder",
    "read_clustering",
    "read_cxc",
    "read_sts",
    "read_transfer",
    "sources",
    "sources_of",
]
