"""Evaluation data and corpora: what there is, where it is found, whether it is whole."""

from __future__ import annotations

from bench.datasets.folder import Copy, DataFolder, State
from bench.datasets.manifest import DataFile, DataSet, data_set, data_sets
from bench.datasets.sts import STS_TASKS, SentencePairs, read_sts

__all__ = [
    "STS_TASKS",
    "Copy",
    "DataFile",
    "DataFolder",
    "DataSet",
    "SentencePairs",
    "State",
    "data_set",
    "data_sets",
    "read_sts",
]
