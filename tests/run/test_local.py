"""``bench run --on local:N``: several runs at once on this machine.

The cards are names alone: no GPU is needed to see who gets which.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from finished_runs import at_work, logs, saved, states

from bench.run import local
from bench.run.target import Target


def test_the_cards_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-5f")
    assert local.cards_of("cuda") == ("2", "GPU-5f")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    assert local.cards_of("cuda") == ("0", "1", "2")
    assert local.cards_of("cuda:1") == ("",) == local.cards_of("cpu")


def test_first_seeds_of_all_rows_come_first() -> None:
    pairs = [("simcse", 7), ("simcse", 3), ("promcse", 7), ("promcse", 3)]
    runs: Any = [SimpleNamespace(method=method, seed=seed) for method, seed in pairs]
    order = [(run.method, run.seed) for run in local.order_by_seed(runs)]
    assert order == [("simcse", 7), ("promcse", 7), ("simcse", 3), ("promcse", 3)]


class Batch:
    """A batch with lines of shell as workers."""

    def __init__(self, folder: Path, lines: dict[str, str], retries: int = 3) -> None:
        (folder / "logs").mkdir()
        self.folder = folder
        self.name = "b"
        self.lines = lines
        self.runs = tuple(lines)
        self.target = Target(name="local", retries=retries)

    def command(self, run_id: str) -> list[str]:
        return ["sh", "-c", self.lines[run_id]]


def test_workers_end_as_they_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed one is started again on a card; each knows its card."""
    monkeypatch.setattr(local, "LOOK_EVERY", 0.01)
    killed = f"echo x >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) = 2 ] || kill -9 $$"
    lines = {
        "good": "echo card $CUDA_VISIBLE_DEVICES job $BENCH_JOB",
        "bad": "echo no >&2; exit 1",
        "killed": killed,
        "hopeless": "kill -9 $$",
    }
    said: list[str] = []
    batch: Any = Batch(tmp_path, lines, retries=1)
    ended = local.work_off(batch, ("3", "3"), said.append, lambda: False)
    assert ended == {
        "good": "finished",
        "bad": "failed",
        "killed": "finished",
        "hopeless": "failed",
    }
    log = (tmp_path / "logs" / "good.log").read_text()
    assert "card 3 job local b" in log
    assert (tmp_path / "logs" / "hopeless.log").read_text().count("attempt") == 2
    assert len(said) == 4 and any(line.endswith("logs/bad.log") for line in said)


@pytest.mark.nightly
def test_ctrl_c_saves_every_run_and_the_same_command_goes_on(
    long_plan: tuple[str, ...], tmp_path: Path
) -> None:
    command = [sys.executable, "-P", "-m", "bench", *long_plan, "--seeds", "1-3"]
    command += ["--runs", str(tmp_path), "--on", "local:2"]
    environment = {**os.environ, "BENCH_SAVE_SECONDS": "0.2", "BENCH_TEST_PAUSE": "0.1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while saved(tmp_path) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=90)
    assert process.returncode == 130, said
    assert "the same command continues them" in said and not at_work(tmp_path)
    assert "interrupted" in states(tmp_path)
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert states(tmp_path) == {"finished"} and "goes on from step" in logs(tmp_path)
