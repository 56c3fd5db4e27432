"""Files from the network: whole and checked or not at all, resumed after a cut, unpacked without surprises.

Knows nothing of data sets or models; standard library only.
"""

from __future__ import annotations

from bench.data.fetching.file import download, free_bytes, unpack
from bench.data.fetching.http import (
    Quiet,
    Report,
    Site,
    check_network,
    dataset_info,
    offline_now,
    retry,
    site,
)

__all__ = [
    "Quiet",
    "Report",
    "Site",
    "check_network",
    "dataset_info",
    "download",
    "free_bytes",
    "offline_now",
    "retry",
    "site",
    "unpack",
]
