"""The functions of ``import bench``, a module for each, and the classes that they return.

Not here: anything that the command line cannot do, too; both call the same rooms below.
A user's mistake is a :class:`bench.base.errors.BenchError` of one line, which ends with what to do.
"""

from __future__ import annotations

from bench.base.extras import silence_advice
from bench.library.comparison import compare_runs
from bench.library.encoding import LoadedRun, load_run
from bench.library.evaluation import evaluate
from bench.library.exports import export_run
from bench.library.publication import publish_runs
from bench.library.results import Result, Results, Tables
from bench.library.stored import frame, load_runs
from bench.library.training import train
from bench.library.verification import Reports, verify_runs

__all__ = [
    "LoadedRun",
    "Reports",
    "Result",
    "Results",
    "Tables",
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

silence_advice()
