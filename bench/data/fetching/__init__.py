"""Files from the network: whole and checked or not at all, resumed after a cut, unpacked without surprises.

Knows nothing of data sets or models; standard library only.
"""

from __future__ import annotations

from bench.data.fetching.archives import Limits, unpack
from bench.data.fetching.file import Download, download
from bench.data.fetching.http import Quiet, Report, Site, check_network, hub_revision, offline_now, persistently, site

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
