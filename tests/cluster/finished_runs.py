"""What of finished runs must be the same wherever and however often they were begun; and who works on runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any


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
