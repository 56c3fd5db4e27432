"""The main job as real processes: after it was killed, stopped and continued, the result equals an
undisturbed run's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import bench
from factories import record as made_record
from models import sentences
from run_parts import run_parts

from bench.records import RunsFolder
from bench.records.curve import read_curve

SCRIPT = Path(sys.executable).parent / "bench"
BENCH = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "bench"]


@pytest.mark.nightly
def test_killed_and_stopped_and_gone_on_with_is_the_same_as_undisturbed(
    tiny: str, tmp_path: Path
) -> None:
    """140 steps: kill -9, then the same command and Ctrl-C, then SIGTERM, then to its end."""
    runs, corpus = tmp_path / "disturbed", tmp_path / "text.txt"
    corpus.write_text("\n".join(sentences(560, seed=6)) + "\n")
    options = f"--backbone {tiny} --suite check --corpus {corpus} --device cpu --precision fp32"
    recipe = "--set batch_size=4 --set eval_steps=30 --set learning_rate=1e-3"
    command = f"run --method simcse {options} {recipe}".split()

    def stopped_at(step: int, number: int) -> str:
        words, env = [*BENCH, *command, "--runs", str(runs)], {"BENCH_SAVE_SECONDS": "0"}
        pipe = subprocess.PIPE
        process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=os.environ | env)

        def reached() -> bool:
            curves = [read_curve(file.parent) for file in runs.glob("*/curve.jsonl")]
            late = any(entry["step"] >= step for curve in curves for entry in curve)
            return late and any(runs.glob("*/state/state.pt"))

        until = time.monotonic() + 120
        while not reached():
            assert process.poll() is None and time.monotonic() < until, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        errors = process.communicate(timeout=20)[1]  # seconds that a scheduler may wait
        assert process.returncode == (-number if number == signal.SIGKILL else 130), errors
        assert "Traceback" not in errors
        return errors

    stopped_at(30, signal.SIGKILL)
    (folder,) = [path for path in runs.iterdir() if path.is_dir()]
    begun = RunsFolder(runs).read(folder.name)
    assert (begun.status, begun.error, begun.scores) == ("interrupted", None, ())
    for number, step in ((signal.SIGINT, 60), (signal.SIGTERM, 90)):
        errors = stopped_at(step, number)
        assert int(errors.split("goes on from step ")[1].split()[0]) > 1
        record = RunsFolder(runs).read(folder.name)
        assert record.status == "interrupted" and "stopped" in str(record.error)
    for place in (runs, tmp_path / "whole"):
        assert bench(*command, "--runs", place).exit_code == 0
    whole = run_parts(tmp_path / "whole" / folder.name)
    assert run_parts(folder) == whole and whole["record"]["training"]["steps"] == 140


def test_a_run_that_is_worked_on_is_running_and_not_interrupted(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    store.write(one := made_record(status="interrupted", scores=()))

    def status() -> str:
        return str(json.loads(bench("runs", "--runs", tmp_path, "--json").stdout)["status"])

    with store.lock(one.run_id):
        assert status() == "running"
    assert status() == "interrupted"
