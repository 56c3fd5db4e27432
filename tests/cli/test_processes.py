"""The main job as real processes: killed, asked to stop, gone on with; the result is that of an undisturbed run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from models import sentences
from run_parts import run_parts

from bench.cli import main
from bench.runs import RunsFolder

SCRIPT = Path(sys.executable).parent / "bench"
BENCH = (
    [str(SCRIPT)]
    if SCRIPT.exists()
    else [sys.executable, "-c", "from bench.cli import main; main()"]
)


@pytest.fixture(scope="module")
def command(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """140 steps of 4 rows on the tiny backbone, a dev score every 30."""
    corpus = tmp_path_factory.mktemp("corpus") / "text.txt"
    corpus.write_text("\n".join(sentences(560, seed=6)) + "\n")
    return [
        "run",
        "--method",
        "simcse",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--corpus",
        str(corpus),
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--set",
        "batch_size=4",
        "--set",
        "eval_steps=30",
        "--set",
        "learning_rate=1e-3",
    ]


def start(command: list[str], runs: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "BENCH_SAVE_SECONDS": "0"}
    return subprocess.Popen(
        [*BENCH, *command, "--runs", str(runs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def step_of(runs: Path) -> int:
    """The last step in the curve that lies on the disk."""
    lines = [line for file in runs.glob("*/curve.jsonl") for line in file.read_text().splitlines()]
    try:
        return json.loads(lines[-1])["step"] if lines else 0
    except ValueError:
        return 0


def wait_for_step(process: subprocess.Popen[str], runs: Path, step: int) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if step_of(runs) >= step and list(runs.glob("*/state/step-*.pt")):
            return
        assert process.poll() is None, (
            f"ended with {process.returncode} at step {step_of(runs)}: {process.communicate()}"
        )
        time.sleep(0.02)
    process.kill()
    raise AssertionError(f"step {step} was not reached")


@pytest.mark.slow
def test_killed_and_stopped_and_gone_on_with_is_the_same_as_undisturbed(
    command: list[str], tmp_path: Path
) -> None:
    """kill -9, then the same command and Ctrl-C, then the same command and SIGTERM, then the same command to its end."""
    runs = tmp_path / "disturbed"
    killed = start(command, runs)
    wait_for_step(killed, runs, 30)
    killed.kill()
    killed.communicate()
    (folder,) = runs.iterdir()
    begun = RunsFolder(runs).read(folder.name)
    assert (begun.status, begun.error, begun.scores, begun.training) == (
        "interrupted",
        None,
        (),
        None,
    )

    for number, step in ((signal.SIGINT, 60), (signal.SIGTERM, 90)):
        process = start(command, runs)
        wait_for_step(process, runs, step)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)  # what a scheduler may wait before it kills
        assert process.returncode == 130, err
        assert (
            "goes on from step" in err
            and "the same command goes on from there" in err
            and "Traceback" not in err
        )
        assert int(err.split("goes on from step ")[1].split()[0]) > 1
        record = RunsFolder(runs).read(folder.name)
        assert (
            record.status == "interrupted"
            and record.scores == ()
            and "stopped" in str(record.error)
        )

    both = {}
    for where in (runs, tmp_path / "whole"):
        done = CliRunner().invoke(main, [*command, "--runs", str(where)], catch_exceptions=False)
        assert done.exit_code == 0, done.stderr
        both[where.name] = run_parts(where / folder.name)
    assert both["disturbed"] == both["whole"]
    assert both["whole"]["record"]["training"]["steps"] == 140


@pytest.mark.slow
def test_the_second_of_two_processes_says_so(command: list[str], tmp_path: Path) -> None:
    first = start(command, tmp_path)
    try:
        wait_for_step(first, tmp_path, 25)
        second = CliRunner().invoke(
            main, [*command, "--runs", str(tmp_path)], catch_exceptions=False
        )
        assert second.exit_code == 2
        errors = [line for line in second.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1 and f"process {first.pid}" in errors[0]
        assert first.poll() is None, "the first goes on undisturbed"
    finally:
        first.kill()
        first.communicate()


@pytest.mark.parametrize("arguments", [["nothing"], ["run"], ["run", "--method", "simsce"]])
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [*BENCH, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 2 and done.stdout == ""
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["error", "try"]
    assert list(tmp_path.iterdir()) == []


def test_help_and_version(tmp_path: Path) -> None:
    done = subprocess.run(
        [*BENCH, "--help"], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 0 and "bench demo" in done.stdout and done.stderr == ""
    done = subprocess.run(
        [*BENCH, "--version"], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.stdout.startswith("bench, version ")


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*BENCH, "methods", "simcse"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert "Traceback" not in process.stderr.read() and process.wait(60) == 0
