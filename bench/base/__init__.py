"""Tools without a subject: errors, files, hashes, locks, devices, typed values, tables to print.

Not here: anything that knows a method, a data set, a run or a paper.
"""

from __future__ import annotations

from pathlib import Path

try:
    from bench._version import __version__  # written by the build, from the git tag
except ModuleNotFoundError:
    __version__ = "0+source"  # a checkout that was not built

PLACE = Path(__file__).parents[2]
"""The folder that holds ``bench``: a new process with it on its path imports this package."""
