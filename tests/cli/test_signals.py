"""A run whose process a signal ends: listed, named, advised upon, gone on with. Real processes, which send themselves the signal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line, the_run
from factories import record as made_record
from models import sentences
from run_parts import run_parts

from bench.base.signals import signal_name
from bench.run.executors.torchrun import _show_log
from bench.runs import RunsFolder

DIES = '''"""SimCSE whose process gets the signal $DIES at step 12."""
import os
from methods.simcse import SimCSE

class Dies(SimCSE):
    name = "dies"
    variants = {}

    def loss(self, views, batch):
        if batch.step + 1 == 12 and "DIES" in os.environ:
            os.kill(os.getpid(), int(os.environ["DIES"]))
        return super().loss(views, batch)
'''


@pytest.fixture(scope="module")
def command(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """20 steps of 4 rows, a dev score every 5."""
    folder = tmp_path_factory.mktemp("dies")
    (folder / "dies.py").write_text(DIES)
    (folder / "text.txt").write_text("\n".join(sentences(80, seed=6)) + "\n")
    return [
        "run",
        "--method",
        "dies",
        "--plugin",
        str(folder / "dies.py"),
        "--setting",
        "unsupervised",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--corpus",
        str(folder / "text.txt"),
        "--device",
        "cpu",
        "--precision",
        "fp32",
        "--set",
        "batch_size=4",
        "--set",
        "eval_steps=5",
    ]


@pytest.fixture(scope="module")
def whole(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same run, undisturbed."""
    runs = tmp_path_factory.mktemp("whole")
    assert bench(*command, "--runs", runs).exit_code == 0
    return run_parts(the_run(runs))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_run_whose_process_a_signal_ends_is_interrupted_and_its_command_goes_on(
    command: list[str], whole: dict[str, Any], tmp_path: Path, number: int
) -> None:
    environment = {
        **os.environ,
        "BENCH_SAVE_SECONDS": "0",
        "DIES": str(int(number)),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    died = subprocess.run(
        [sys.executable, "-m", "bench", *command, "--runs", str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
    )
    folder = the_run(tmp_path)
    assert died.returncode == -number
    assert re.search(
        rf"^{folder.name} +interrupted +", bench("runs", "--runs", tmp_path).stdout, re.M
    )
    (listed,) = map(
        json.loads,
        bench("runs", "--runs", tmp_path, "--status", "interrupted", "--json").stdout.splitlines(),
    )
    assert (listed["status"], listed["method"]) == ("interrupted", "dies")
    done = bench(*command, "--runs", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "goes on from step 11 of 20" in done.stderr
    assert run_parts(folder) == whole, "no trace is left"


def test_a_signal_is_called_by_its_name() -> None:
    assert signal_name(4) == "SIGILL (Illegal instruction)" and signal_name(999) == "signal 999"


def test_a_run_that_is_worked_on_is_running_and_not_interrupted(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    store.write(one := made_record(status="interrupted", scores=()))
    with store.lock(one.run_id):
        listed = bench("runs", "--runs", tmp_path, "--json")
        assert json.loads(listed.stdout)["status"] == "running"
        assert bench("runs", "--runs", tmp_path, "--status", "running").stdout.count("running") == 1
        assert f"{one.run_id}  running, " in bench("show", one.run_id, "--runs", tmp_path).stdout
    assert json.loads(bench("runs", "--runs", tmp_path, "--json").stdout)["status"] == "interrupted"
    assert "no such run" in bench("runs", "--runs", tmp_path, "--status", "running").stdout


def test_a_run_of_an_older_version_with_a_state_and_no_record_is_listed(tmp_path: Path) -> None:
    for name in ("begun", "empty"):
        (tmp_path / name / "state").mkdir(parents=True)
    (tmp_path / "begun" / "state" / f"step-00000003-{'a' * 32}.pt").write_bytes(b"")
    listed = bench("runs", "--runs", tmp_path)
    assert re.search(
        r"^begun +interrupted +ended before its record was written; its command goes on",
        listed.stdout,
        re.M,
    )
    assert "empty" not in listed.stdout
    assert json.loads(bench("runs", "--runs", tmp_path, "--json").stdout)["run_id"] == "begun"
    shown = bench("show", "begun", "--runs", tmp_path)
    assert "begun ended before its record was written" in error_line(
        shown
    ) and shown.stderr.endswith("try: run its command again\n")


def test_the_launcher_names_the_signal_of_a_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _show_log(1, 2, -signal.SIGILL, tmp_path)
    assert "rank 1 of 2 ended by SIGILL (Illegal instruction)" in capsys.readouterr().err
    _show_log(0, 2, 3, tmp_path)
    assert "rank 0 of 2 ended with exit code 3" in capsys.readouterr().err
