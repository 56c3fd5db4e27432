"""The parts of finished runs that no machine and no restart changes; the processes at work."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from commands import bench


def finished(runs: Path) -> dict[str, Any]:
    """Return run id -> (status, hashes of checkpoint and predictions, scores)."""
    from bench.records import RunsFolder

    return {
        record.run_id: (
            record.status,
            record.checkpoint,
            [score.predictions_sha256 for score in record.scores],
            [score.value for score in record.scores],
        )
        for record in RunsFolder(runs).records()[0]
    }


def listed(runs: Path) -> dict[str, dict[str, Any]]:
    """Return run id -> its entry in ``bench runs --json``."""
    done = bench("runs", "--runs", runs, "--json")
    assert done.exit_code == 0, done.stderr
    return {one["run_id"]: one for one in map(json.loads, done.stdout.splitlines())}


def states(runs: Path) -> set[str]:
    return {one["status"] for one in listed(runs).values()}


def logs(runs: Path) -> str:
    return "".join(log.read_text(errors="replace") for log in runs.glob(".jobs/*/logs/*.log"))


def saved(runs: Path) -> int:
    """Count the runs with a saved state."""
    return len({path.parent for path in runs.glob("*/state/state.pt")})


def workers(runs: Path) -> list[int]:
    """Find the processes of this machine that work on a run below ``runs``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"--only" in words and str(runs.absolute()).encode() in words:
                found.append(int(path.parent.name))
    return found


def at_work(runs: Path) -> bool:
    """Does a process work on a run, or hold one? A process that ends has no command line long
    before its lock goes.
    """
    from bench.records import RunsFolder

    held = map(RunsFolder(runs).worked_on_by, (folder.name for folder in runs.glob("[!.]*/")))
    return bool(workers(runs)) or any(held)


def left_behind(runs: Path) -> list[Path]:
    """Find saved states, without those that a failed run has left."""
    failed = {run_id for run_id, one in finished(runs).items() if one[0] == "failed"}
    return [path for path in runs.glob("*/state/*") if path.parents[1].name not in failed]
