"""``bench`` as a process that need not import torch: it is forked from a server that has.

This suits tests that are not about how a process starts or dies; variables that are read at import
have the values of the test run.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path

PRELOADED = [
    "bench.cli.run",
    "bench.run.execute",
    "bench.training",
    "bench.score.suites.sts",
    "bench.methods.simcse",
    "transformers",
]


def server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def bench_process(
    arguments: list[str], folder: Path, environment: Mapping[str, str], before: str = ""
) -> subprocess.CompletedProcess[str]:
    """``bench`` with these arguments, in that folder, with these variables, after the code
    ``before``; it is killed after five minutes.
    """
    with tempfile.TemporaryDirectory() as place:
        process = server().Process(
            target=work, args=(arguments, str(folder), dict(environment), place, before)
        )
        process.start()
        process.join(300)
        if process.exitcode is None:
            process.kill()
            process.join()
        out, err = (Path(place, name).read_text(encoding="utf-8") for name in ("out", "err"))
        assert process.exitcode is not None
        return subprocess.CompletedProcess(["bench", *arguments], process.exitcode, out, err)


def work(
    arguments: list[str], folder: str, environment: dict[str, str], place: str, before: str
) -> None:
    from bench.cli import main

    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(os.path.join(place, name), os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, "")
    sys.argv = ["bench", *arguments]
    exec(before, {})
    main()
