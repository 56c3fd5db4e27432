"""Files from the network: whole and checked or not at all, resumed after a cut, unpacked without surprises.

Knows nothing of data sets or models; standard library only.
"""

from __future__ import annotations

from bench.fetching.archives import Limits, unpack
from bench.fetching.file import Download, download
from bench.fetching.http import Quiet, Report, Site, hub_revision, offline_now, persistently, site
from bench.fetching.network import check_network

__all__ = [
    "Download",
    "Limits",
    "Quiet",
    "Report",
    "Site",
    "check_network",
    "download",
    "hub_revision",
    "offline_now",
    "persistently",
    "site",
    "unpack",
]
