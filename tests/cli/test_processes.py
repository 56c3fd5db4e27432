"""The main job as real processes: after it was killed, stopped and continued, the result equals an
undisturbed run's.
"""

from __future__ import annotations

import json
from pathlib import Path

from commands import bench
from factories import record as made_record

from bench.records import RunsFolder


def test_a_run_that_is_worked_on_is_running_and_not_interrupted(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    store.write(one := made_record(status="interrupted", scores=()))

    def status() -> str:
        return str(json.loads(bench("runs", "--runs", tmp_path, "--json").stdout)["status"])

    with store.lock(one.run_id):
        assert status() == "running"
    assert status() == "interrupted"
