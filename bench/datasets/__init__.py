"""Evaluation data and corpora: what there is, where it is found, whether it is whole."""

from __future__ import annotations

from bench.datasets.clustering import CLUSTERING_TASKS, ClassedTexts, read_clustering
from bench.datasets.cxc import CXC, RatedCaptions, read_cxc
from bench.datasets.cxc import OFFICIAL as CXC_OFFICIAL
from bench.datasets.fetch import Fetcher
from bench.datasets.folder import Copy, DataFolder, State
from bench.datasets.manifest import DataFile, DataSet, data_set, data_sets
from bench.datasets.sources import Source, sources, sources_of
from bench.datasets.store import Later, NotFetchedYet, Pending, fetched_folder
from bench.datasets.sts import STS_TASKS, SentencePairs, read_sts
from bench.datasets.transfer import TRANSFER_TASKS, LabelledTexts, read_transfer

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
