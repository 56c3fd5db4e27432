"""Writing in the runs folder: whole or not at all, and one clear line where it cannot be."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import bench.base.files
from bench.base.errors import BenchError

FAILED_BATCH = "failed-batch.tsv"  # in a run's folder: the rows on which the loss became no number
ELSEWHERE = "another folder: --runs DIR, or BENCH_RUNS"


def write_whole(path: Path, data: bytes, hint: str | None = ELSEWHERE) -> None:
    """Write ``data`` at ``path`` whole or not at all, whatever happens meanwhile. Raises BenchError where it cannot be."""
    with writing(path, hint):
        bench.base.files.write_whole(path, data)


@contextlib.contextmanager
def writing(path: Path, hint: str | None = ELSEWHERE) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror or error}", hint) from None
