"""``bench run`` explains why it cannot run, and leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench, the_run


@pytest.mark.slow
def test_a_damaged_record_is_made_anew(tiny: str, tmp_path: Path) -> None:
    command = ("run", "--method", "cls", "--backbone", tiny, "--suite", "check", "--runs", tmp_path)
    assert bench(*command).exit_code == 0
    file = the_run(tmp_path) / "run.json"
    whole = json.loads(file.read_text())
    file.write_text("{")
    assert "run.json" in bench("runs", "--runs", tmp_path).stderr
    done = bench(*command)
    assert done.exit_code == 0, done.stderr
    assert json.loads(file.read_text())["scores"] == whole["scores"]
