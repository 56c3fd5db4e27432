"""This package itself: its version, where it lies, and its folders that have the name of a public function."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

try:
    from bench._version import __version__  # written by the build, from the git tag
except ModuleNotFoundError:
    __version__ = "0+source"  # a checkout that was not built

PLACE = Path(__file__).parents[2]
"""The folder that holds ``bench``: on the path of a new process, it imports this very package."""


class CallablePackage(ModuleType):
    """A package with the name that a public function had in the version before: called, it is that function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        name = {"bench.compare": "compare_runs", "bench.runs": "load_runs"}[self.__name__]
        text = f"{self.__name__}(...) is now bench.{name}(...); the old name works in this version only"
        warnings.warn(text, FutureWarning, stacklevel=2)
        return getattr(importlib.import_module("bench.library"), name)(*arguments, **options)


def make_callable(package: str) -> None:
    """For one version, ``bench.compare(...)`` is ``bench.compare_runs(...)``, although ``bench.compare`` is a package."""
    sys.modules[package].__class__ = CallablePackage
