"""What of finished runs must be the same wherever and however often they were begun; who works on runs; a disk for them that fills up."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def finished(runs: Path) -> dict[str, Any]:
    """Run id -> (status, hashes of its checkpoint and of its predictions)."""
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    found = {}
    for run_id in store.ids():
        record = store.read(run_id)
        found[run_id] = (
            record.status,
            record.checkpoint,
            [score.predictions_sha256 for score in record.scores],
            [score.value for score in record.scores],
        )
    return found


def workers(runs: Path) -> list[int]:
    """Processes of this machine that work on a run below ``runs``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--only" in words and str(runs.absolute()).encode() in words:
            found.append(int(path.parent.name))
    return found


def at_work(runs: Path) -> bool:
    """Does a process of this machine work on a run below ``runs``, or hold one? One that ends has no command line long before its lock goes."""
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    return bool(workers(runs)) or any(
        store.worked_on_by(folder.name) for folder in runs.glob("[!.]*/")
    )


def left_behind(runs: Path) -> list[Path]:
    """Files by which runs are owned, and states to go on from; but a run that failed by itself may have saved one before."""
    from bench.runs import RunsFolder

    store = RunsFolder(runs)
    states = [
        path
        for path in runs.glob("*/state/*")
        if store.read(path.parents[1].name).status != "failed"
    ]
    return [*runs.glob("*/.owner-*"), *states]


@contextlib.contextmanager
def full_disk(place: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A disk of 64 MB, a tmpfs, and what fills it to the last byte: with a file ``filler``."""
    if os.geteuid():
        pytest.skip("a tmpfs is mounted as root")
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", place], check=True)

    def fill() -> None:
        with contextlib.suppress(OSError), open(place / "filler", "wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass

    try:
        yield place, fill
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
