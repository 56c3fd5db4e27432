"""`bench run` in several processes: launched, killed, stopped, failing alone and failing together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from models import sentences
from safetensors.torch import load_file

from bench.cli import main
from bench.runs import RunRecord, RunsFolder

TWO = ("--executor", "torchrun", "--gpus", "2")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "bench")
SOON = (
    60  # seconds in which everything has ended, on a busy machine; torch's own timeouts are minutes
)

FAILS = '''"""SimCSE that fails: {what}."""
import os
import torch
from methods.simcse import SimCSE

class Fails(SimCSE):
    name = "fails"
    variants = {{}}

    def loss(self, views, batch):
        found = super().loss(views, batch)
        if {when}:
            {then}
        return found
'''


@pytest.fixture(scope="module")
def command(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """40 steps of 5 rows, the last one of 2, on the tiny backbone, a dev score every 10."""
    corpus = tmp_path_factory.mktemp("corpus") / "text.txt"
    corpus.write_text("\n".join(sentences(197, seed=6)) + "\n")
    return [
        "run",
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
        "--setting",
        "unsupervised",
        "--set",
        "batch_size=5",
        "--set",
        "eval_steps=10",
        "--set",
        "learning_rate=1e-3",
    ]


def start(
    command: list[str], runs: Path, *more: str, launcher: tuple[str, ...] = ("-m", "bench")
) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "BENCH_SAVE_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [root, *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])]
    )
    return subprocess.Popen(
        [sys.executable, *launcher, *command, "--runs", str(runs), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def done(
    command: list[str], runs: Path, *more: str, **how: Any
) -> subprocess.CompletedProcess[str]:
    process = start(command, runs, *more, **how)
    try:
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, out, err)


def step_of(runs: Path) -> int:
    steps = [int(file.name.split("-")[1]) for file in runs.glob("*/state/step-*.pt")]
    return max(steps, default=0)


def rank_process(launcher: int, rank: int) -> int | None:
    """The process that the launcher started as that rank, if it has."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == launcher and f"RANK={rank}".encode() in (
                entry / "environ"
            ).read_bytes().split(b"\0"):
                return int(entry.name)
        except OSError:
            continue
    return None


def disturb(
    process: subprocess.Popen[str], runs: Path, step: int, rank: int | None, number: signal.Signals
) -> str:
    """Send a signal to a rank, or to the launcher, when a state of at least that step is kept; returns standard error."""
    until = time.monotonic() + 200
    while (
        step_of(runs) < step
        or (target := process.pid if rank is None else rank_process(process.pid, rank)) is None
    ):
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.02)
    os.kill(target, number)
    try:
        return process.communicate(timeout=SOON)[1]
    finally:
        process.kill()


def the_record(runs: Path) -> RunRecord:
    (folder,) = runs.iterdir()
    return RunsFolder(runs).read(folder.name)


def trained(runs: Path) -> dict[str, torch.Tensor]:
    (file,) = runs.glob("*/checkpoint/trained.safetensors")
    return load_file(file)


@pytest.mark.slow(seconds=10)
def test_two_processes_end_as_one_does_and_however_they_were_disturbed(
    command: list[str], tmp_path: Path
) -> None:
    command = [*command, "--method", "simcse"]
    exact = ["--set", "dropout=0.0", "--max-steps", "20"]
    alone, both = (
        done([*command, *exact], tmp_path / "one"),
        done([*command, *exact], tmp_path / "two", *TWO, "--json"),
    )
    assert alone.returncode == both.returncode == 0, both.stderr
    assert json.loads(both.stdout)["status"] == "finished", "rank 0 alone speaks"
    one, two = the_record(tmp_path / "one"), the_record(tmp_path / "two")
    assert one.run_id == two.run_id and one.training is not None and two.training is not None
    assert (
        one.training.steps,
        one.training.sentences,
        one.training.tokens,
        one.training.best_step,
    ) == (
        two.training.steps,
        two.training.sentences,
        two.training.tokens,
        two.training.best_step,
    )
    assert two.training.dev_score == pytest.approx(one.training.dev_score, abs=1e-2)
    assert one.provenance.execution.ranks is None and (
        two.provenance.execution or {}
    )["ranks"] == 2
    wanted = trained(tmp_path / "one")
    for name, tensor in trained(tmp_path / "two").items():
        if (
            "key.bias" not in name
        ):  # a softmax does not change with it: its gradient is rounding, which Adam makes large
            torch.testing.assert_close(
                tensor, wanted[name], rtol=0, atol=2e-4, msg=name
            )  # a step of Adam is of size 1e-3

    whole, disturbed = tmp_path / "whole", tmp_path / "disturbed"
    assert done(command, whole, *TWO).returncode == 0
    err = disturb(process := start(command, disturbed, *TWO), disturbed, 5, 1, signal.SIGKILL)
    assert (
        process.returncode == 1
        and "rank 1 of 2" in err
        and "SIGKILL (Killed)" in err
        and "Traceback" not in err
    )
    record = the_record(
        disturbed
    )  # on a busy machine the launcher ends rank 0 before that has seen what happened
    assert record.status == "interrupted" or (
        record.status == "failed" and "rank 1 of 2" in str(record.error)
    )
    err = disturb(process := start(command, disturbed, *TWO), disturbed, 12, None, signal.SIGTERM)
    assert (
        process.returncode == 130
        and "goes on from step" in err
        and "the same command goes on" in err
    )
    err = disturb(
        process := start(command, disturbed, launcher=TORCHRUN), disturbed, 20, 0, signal.SIGKILL
    )
    assert process.returncode == 1
    assert done(command, disturbed, *TWO).returncode == 0
    assert the_record(disturbed).training == the_record(whole).training
    wanted = trained(whole)
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in trained(disturbed).items()), (
        "bit for bit"
    )


@pytest.mark.slow(seconds=10)
def test_another_number_of_processes_goes_on_and_says_so(
    command: list[str], tmp_path: Path
) -> None:
    command = [*command, "--method", "simcse"]
    disturb(process := start(command, tmp_path, *TWO), tmp_path, 5, None, signal.SIGINT)
    assert process.returncode == 130
    alone = done(command, tmp_path)
    assert alone.returncode == 0
    assert "2 processes worked on it before, now 1: dropout is drawn anew from step" in alone.stderr
    record = the_record(tmp_path)
    assert record.status == "finished" and (record.provenance.execution or {})["ranks"] == [2, 1]


@pytest.mark.slow(seconds=10)
def test_a_rank_that_fails_alone_ends_all_and_says_why(command: list[str], tmp_path: Path) -> None:
    plugin = tmp_path / "fails.py"
    then = 'raise ValueError("this rank alone")'
    plugin.write_text(
        FAILS.format(
            what="on rank 1, at step 3",
            when='os.environ["RANK"] == "1" and batch.step == 3',
            then=then,
        )
    )
    ended = done(
        [*command, "--method", "fails", "--plugin", str(plugin), "--seeds", "1,2"],
        tmp_path / "runs",
        *TWO,
    )
    assert ended.returncode == 1
    assert (
        "rank 1 of 2 failed: ValueError: this rank alone" in ended.stderr
        and "1 more runs were not started" in ended.stderr
    )
    assert "the end of" in ended.stderr and "fails.py" in ended.stderr, "with the log of that rank"
    assert the_record(tmp_path / "runs").status == "failed"


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_that_ends_a_rank_is_named(command: list[str], tmp_path: Path, rank: int) -> None:
    plugin = tmp_path / "fails.py"
    when, then = (
        f'os.environ["RANK"] == "{rank}" and batch.step == 3',
        f"os.kill(os.getpid(), {int(signal.SIGILL)})",
    )
    plugin.write_text(FAILS.format(what=f"on rank {rank}, at step 3", when=when, then=then))
    ended = done([*command, "--method", "fails", "--plugin", str(plugin)], tmp_path / "runs", *TWO)
    assert ended.returncode == 1
    assert ended.stderr.count(f"error: rank {rank} of 2 ended by SIGILL (Illegal instruction)") == 1
    assert the_record(tmp_path / "runs").status in (
        "interrupted",
        "failed",
    )  # rank 0 may have lived to say that rank 1 is gone


@pytest.mark.slow
def test_a_failure_of_all_ranks_is_one_and_the_other_runs_go_on(
    command: list[str], tmp_path: Path
) -> None:
    plugin = tmp_path / "fails.py"
    when, then = (
        "self.context.seed == 1 and batch.step == 3",
        "found.total = found.total * float('nan')",
    )
    plugin.write_text(FAILS.format(what="with seed 1", when=when, then=then))
    more = ["--method", "fails", "--plugin", str(plugin), "--seeds", "1,2", "--max-steps", "10"]
    ended = done([*command, *more], tmp_path / "runs", *TWO)
    assert ended.returncode == 1
    assert [line for line in ended.stderr.splitlines() if line.startswith("error: ")] == [
        line for line in ended.stderr.splitlines() if "the loss became nan at step 4" in line
    ]
    records = {
        record.seed: record
        for record in (
            RunsFolder(tmp_path / "runs").read(f.name) for f in (tmp_path / "runs").iterdir()
        )
    }
    assert (records[1].status, records[2].status) == ("failed", "finished")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--gpus", "2"], "--gpus is for several processes"),
        (["--executor", "torchrun"], "--executor torchrun on cpu: how many processes?"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(
    command: list[str], tmp_path: Path, more: list[str], message: str
) -> None:
    ended = CliRunner().invoke(
        main, [*command, "--method", "simcse", *more, "--runs", str(tmp_path / "runs")]
    )
    assert ended.exit_code == 2 and message in ended.stderr and not (tmp_path / "runs").exists()


def test_the_authors_gather_in_several_processes_is_another_run(
    command: list[str], tmp_path: Path
) -> None:
    def run_id(*more: str) -> str:
        faithful = [
            *command,
            "--method",
            "simcse",
            "--set",
            "faithful=true",
            "--dry-run",
            "--json",
            "--runs",
            str(tmp_path),
        ]
        ended = CliRunner().invoke(main, [*faithful, *more])
        assert ended.exit_code == 0, ended.stderr
        return str(json.loads(ended.stdout.splitlines()[0])["run_id"])

    assert run_id() == run_id("--executor", "torchrun", "--gpus", "1") != run_id(*TWO)
