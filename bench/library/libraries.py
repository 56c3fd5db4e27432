"""Libraries that draw and frame results, which bench itself does not need."""

from __future__ import annotations

import importlib
from typing import Any

from bench.base.errors import BenchError
from bench.base.extras import install_hint


def import_library(name: str, needed_for: str, install: str) -> Any:
    """Import a library by its name.

    Raises BenchError, with the command that installs it, if it is missing.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        library = name.partition(".")[0]
        raise BenchError(f"{needed_for} needs {library}, which is not installed", install) from None


def import_pandas() -> Any:
    return import_library("pandas", "frame()", "pip install pandas")


def import_pyplot() -> Any:
    hint = install_hint("publish")
    return import_library("matplotlib.pyplot", "plot()", hint)
