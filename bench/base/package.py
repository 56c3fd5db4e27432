"""This package itself: its version, and where it lies."""

from __future__ import annotations

from pathlib import Path

try:
    from bench._version import __version__  # written by the build, from the git tag
except ModuleNotFoundError:
    __version__ = "0+source"  # a checkout that was not built

PLACE = Path(__file__).parents[2]
"""The folder that holds ``bench``: on the path of a new process, it imports this very package."""
