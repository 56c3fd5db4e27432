"""One command in a process that a test kills.

In a file of its own: a process that is forked from a server imports it by name.
"""

from __future__ import annotations

import contextlib
import os


def work(command: list[str], save_seconds: str, log: str) -> None:
    from bench.cli import main

    os.environ["BENCH_SAVE_SECONDS"] = save_seconds
    with (
        open(log, "a", buffering=1) as stream,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
    ):
        main(command)
