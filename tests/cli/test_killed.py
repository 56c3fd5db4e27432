"""kill -9 at random moments of a real process, again and again: nothing is lost, and the end is that of an undisturbed run."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from pathlib import Path

import killed_worker
import pytest
from click.testing import CliRunner
from forked import server
from models import sentences
from run_parts import run_parts

from bench.cli import main

KILLS = 20
PATIENCE = 60  # seconds until a process must have done something


def states(runs: Path) -> set[str]:
    return {path.name for path in runs.glob("*/state/step-*.pt")}


def wait_for_a_new_state(process: multiprocessing.process.BaseProcess, runs: Path) -> None:
    before, until = states(runs), time.monotonic() + PATIENCE
    while process.is_alive() and time.monotonic() < until and states(runs) <= before:
        time.sleep(0.002)


@pytest.mark.slow
def test_killed_at_random_moments_is_the_same_as_undisturbed(tiny: str, tmp_path: Path) -> None:
    """A state after every step or every tenth of a second, a dev score every 7 steps, kills from the start to the scoring.

    The processes are forked from a server that has imported torch, so that a kill hits the work and not the imports.
    """
    corpus = tmp_path / "text.txt"
    corpus.write_text("\n".join(sentences(800, seed=6)) + "\n")
    command = ["run", "--method", "simcse", "--backbone", tiny, "--suite", "check", "--corpus", str(corpus), "--device", "cpu", "--precision", "fp32",
               "--set", "batch_size=4", "--set", "eval_steps=7", "--set", "learning_rate=1e-3"]  # fmt: skip
    disturbed, log = tmp_path / "disturbed", tmp_path / "log.txt"
    context = server()
    draw = random.Random(1)
    killed = 0
    while True:
        save_seconds = draw.choice(["0", "0", "0.1"])
        process = context.Process(target=killed_worker.work, args=([*command, "--runs", str(disturbed)], save_seconds, str(log)))
        process.start()
        if killed < KILLS:
            if draw.random() < 0.8:
                wait_for_a_new_state(process, disturbed)
                time.sleep(draw.uniform(0, 0.3))
            else:  # while it starts, or goes on
                time.sleep(draw.uniform(0, 2.0))
            process.kill()
        process.join(PATIENCE)
        if process.exitcode == -signal.SIGKILL:
            killed += 1
            continue
        assert process.exitcode == 0, log.read_text()
        break
    assert killed >= 20, f"it was done after {killed} kills: make the training longer"
    said = log.read_text()
    assert said.count("goes on from step") >= 15 and "cannot be used" not in said and "cut short" not in said

    done = CliRunner().invoke(main, [*command, "--runs", str(tmp_path / "whole")], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    (folder,) = (tmp_path / "whole").iterdir()
    assert run_parts(disturbed / folder.name) == run_parts(folder)
