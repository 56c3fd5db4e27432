"""This package itself: its version, where it lies, and its folders that have the name of a public function."""

from __future__ import annotations

import importlib
import sys
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
    """A package of ours with the name of a public function: called, it is that function."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module("bench.library"), name)(*arguments, **options)


def make_callable(package: str) -> None:
    """``bench.compare(...)`` and ``import bench.compare.tables`` both work, in whichever order: said by each such package of itself."""
    sys.modules[package].__class__ = CallablePackage
