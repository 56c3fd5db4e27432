# ruff: noqa: F405 - the functions are bench.library's
"""A benchmark harness for sentence embeddings: train a method, score it, keep the record, compare.

    import bench

    results = bench.train([MyLoss, "simcse"], corpus="wiki.txt", seeds=[1, 2, 3], data="DATA")
    bench.compare_runs(results, baseline="simcse").plot()
    result = bench.evaluate(model, suites=["sts"], data="DATA", name="my-model")
    result.table(); result["STS-B"].value; result.frame()
    bench.frame()  # every run of ./runs as a data frame

The functions are in :mod:`bench.library`, which is imported when one of them is first named:
``import bench`` alone loads nothing.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base import __version__

if TYPE_CHECKING:
    from bench.base.errors import BenchError
    from bench.library import *  # noqa: F403

# a clone has methods/ next to bench/, the wheel has bench/methods/
_CLONE = Path(__file__).parent.parent
if (_CLONE / "methods" / "simcse.py").is_file():
    __path__.append(str(_CLONE))

__all__ = [
    "BenchError",
    "__version__",
    "compare_runs",
    "evaluate",
    "export_run",
    "frame",
    "load_run",
    "load_runs",
    "publish_runs",
    "train",
    "verify_runs",
]


def __getattr__(name: str) -> Any:
    if name == "BenchError":
        return importlib.import_module("bench.base.errors").BenchError
    if name in __all__:
        importlib.import_module("bench.base.terminal").check_system()
        return getattr(importlib.import_module("bench.library"), name)
    raise AttributeError(f"module 'bench' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
