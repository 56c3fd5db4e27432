"""The contract of a worker: a command line that does the same whichever machine planned it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line

from bench.base import devices
from bench.method.config import RunConfig
from bench.run.plan_toml import Plan
from bench.run.slurm import slurm_script
from bench.run.target import Target
from bench.run.workers import JobBatch


def lines_of(*arguments: Any) -> list[str]:
    done = bench(*arguments, "--on", "commands")
    assert done.exit_code == 0, done.stderr
    return done.stdout.splitlines()


def words_of(line: str) -> list[str]:
    """The arguments of ``bench`` in the script that a printed command starts."""
    _, script, run_id = shlex.split(line)
    words = shlex.split(Path(script).read_text().splitlines()[-1])
    return [run_id if word == "$1" else word for word in words[words.index("bench") + 1 :]]


def after(option: str, words: list[str]) -> str:
    return words[words.index(option) + 1]


def test_the_id_follows_from_the_options_and_not_from_the_machine_that_plans(
    plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worker(on: str) -> tuple[str, RunConfig]:
        done = bench(*plan, "--runs", tmp_path / "runs", "--on", on)
        words = words_of(done.stdout)
        return after("--only", words), Plan.read(Path(after("--plan", words))).runs[0]

    (here, _), (with_gpus, _) = worker("commands"), worker("commands:gpus=1")
    monkeypatch.setattr(devices, "choose_device", lambda name: "cuda")  # a machine with a GPU
    monkeypatch.setattr(devices, "choose_precision", lambda name, device: "bf16")
    assert (worker("commands")[0], worker("commands:gpus=1")[0]) == (here, with_gpus)
    assert here != with_gpus
    config = worker("commands:gpus=4")[1]
    assert (config.device, config.precision, config.on) == ("cuda", "bf16", "torchrun:4")


def test_a_worker_whose_plan_lacks_the_id_refuses_and_writes_nothing(
    plan: tuple[str, ...], tmp_path: Path
) -> None:
    words = words_of(lines_of(*plan, "--runs", tmp_path / "runs")[0])
    plan_file = Path(after("--plan", words))
    corpus = Path(Plan.read(plan_file).runs[0].corpus or "")
    other = tmp_path / corpus.name
    other.write_text(corpus.read_text() + "one more sentence\n")
    plan_file.write_text(plan_file.read_text().replace(str(corpus), str(other)))
    assert "the plan has no such run here; it has simcse-" in error_line(bench(*words))
    assert not list((tmp_path / "runs").glob("*/run.json"))


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder for commands of Slurm: the machine's own are hidden."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def executable(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_machine_without_slurm_is_told_so(
    plan: tuple[str, ...], tmp_path: Path, stand_ins: Path
) -> None:
    said = error_line(bench(*plan, "--runs", tmp_path / "runs", "--on", "slurm"))
    assert "no sbatch on this machine" in said and not (tmp_path / "runs").exists()


def test_options_that_do_not_go_together(
    plan: tuple[str, ...], tmp_path: Path, stand_ins: Path, snapshot: Any
) -> None:
    """They are refused on any machine: a fake sbatch is there, and is not called."""
    executable(stand_ins / "sbatch", "exit 1")
    given = "--on slurm --device cuda:1;--on commands --device cpu"
    given += (
        ";--on cpus=2;--on here:cpus=2;--on torchrun:memory=1G;--on ray:cpus=1;--on slurm:gpus=0"
    )
    given += ";--on commands --precision fp16;--on commands --only x;--on local:2 --fresh;--on commands --dry-run;--on what"
    runs = ("--runs", tmp_path / "runs")
    lines = [error_line(bench(*plan, *runs, *words.split())) for words in given.split(";")]
    assert lines == snapshot and not (tmp_path / "runs").exists()


def test_runs_that_slurm_has_are_not_submitted_again(
    plan: tuple[str, ...], tmp_path: Path, stand_ins: Path
) -> None:
    """A fake sbatch and squeue: one of two runs is queued; then squeue is silent."""
    runs = tmp_path / "runs"
    words = (*plan, "--seeds", "1-2", "--runs", runs, "--on", "slurm")
    executable(stand_ins / "sbatch", "echo 7")
    assert "submitted 2 runs to Slurm as job 7; 0 " in bench(*words).stderr
    (batch,) = runs.glob(".jobs/slurm-*")
    executable(stand_ins / "squeue", f"echo '7_1|bench-{batch.name}'; echo '8|other'")
    assert "submitted 1 run to Slurm as job 7; 1 finished, queued or" in bench(*words).stderr
    executable(stand_ins / "squeue", "echo no controller >&2; exit 1")
    assert "squeue: no controller; what is queued" in error_line(bench(*words))


@pytest.mark.parametrize("later", ["step 9", "step 5"])
def test_near_the_time_limit_a_job_is_queued_again_if_its_state_has_changed(
    later: str, tmp_path: Path
) -> None:
    """It goes on from a state, and saves one under the same name. A fake worker, asked to stop."""
    state = tmp_path / "runs" / "one" / "state" / "state.pt"
    batch = JobBatch(tmp_path / "runs" / ".jobs" / "slurm-1", ("one",), Target(name="slurm"))
    for folder in (state.parent, batch.folder / "logs", tmp_path / "bin"):
        folder.mkdir(parents=True)
    state.write_text("step 5")
    (batch.folder / "runs.txt").write_text("one\n")
    (batch.folder / "job.sh").write_text(slurm_script(batch))
    (batch.folder / "worker.sh").write_text(
        f"trap 'echo {later} | tr -d \"\\n\" > {state}; exit 130' TERM\n"
        "sleep 1; kill -USR1 $PPID; while :; do sleep 1; done\n"
    )
    executable(tmp_path / "bin" / "scontrol", "echo scontrol $*")
    executable(tmp_path / "bin" / "sleep", "exec /bin/sleep 0.2")
    slurm = {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_JOB_ID": "7"}
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["sh", batch.folder / "job.sh"], env=slurm | {"PATH": path}, timeout=60)
    log = (batch.folder / "logs" / "one.log").read_text()
    is_new = later != "step 5"
    assert ("scontrol requeue 7_0" in log) == is_new == (done.returncode == 0)
    assert ("before anything new was saved" in log) != is_new
