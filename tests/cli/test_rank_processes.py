"""`bench run` in several processes: launched, killed, stopped, failing alone and failing
together.
"""

from __future__ import annotations

import contextlib
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
from commands import bench
from models import sentences
from safetensors.torch import load_file

from bench.records import RunRecord, RunsFolder

TWO = ("--on", "torchrun:2")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "bench")
SOON = 60  # seconds in which everything has ended; torch's own timeouts are minutes

FAILS = '''"""SimCSE that fails."""
import os
from bench.methods.simcse import SimCSE

class Fails(SimCSE):
    name = "fails"
    variants = {{}}

    def loss(self, views, batch):
        found = super().loss(views, batch)
        if batch.step == 3 and {when}:
            {then}
        return found
'''


@pytest.fixture(scope="module")
def command(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """40 steps of 5 rows, the last one of 2, on the tiny backbone, a dev score every 10."""
    corpus = tmp_path_factory.mktemp("corpus") / "text.txt"
    corpus.write_text("\n".join(sentences(197, seed=6)) + "\n")
    options = f"--backbone {tiny} --suite check --corpus {corpus} --device cpu --precision fp32"
    recipe = "--set batch_size=5 --set eval_steps=10 --set learning_rate=1e-3"
    return f"run --setting unsupervised {options} {recipe}".split()


def start(
    command: list[str], runs: Path, *more: str, launcher: tuple[str, ...] = ("-m", "bench")
) -> subprocess.Popen[str]:
    path = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {"BENCH_SAVE_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    words = [sys.executable, *launcher, *command, "--runs", str(runs), *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, env=os.environ | environment
    )


def done(command: list[str], runs: Path, *more: str) -> subprocess.CompletedProcess[str]:
    process = start(command, runs, *more)
    try:
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, out, err)


def fails(
    command: list[str], folder: Path, when: str, then: str, *more: str
) -> subprocess.CompletedProcess[str]:
    """Run a method in two processes that fails at its third step."""
    (folder / "fails.py").write_text(FAILS.format(when=when, then=then))
    plugin = ["--method", "fails", "--plugin", str(folder / "fails.py")]
    return done([*command, *plugin, *more], folder / "runs", *TWO)


def step_of(runs: Path) -> int:
    for file in runs.glob("*/state/state.pt"):
        return int(torch.load(file, weights_only=True)["progress"]["step"])
    return 0


def rank_process(launcher: int, rank: int) -> int | None:
    """The process that the launcher started as that rank, if it has."""
    for entry in map(str, Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):
            parent = int(Path(entry, "stat").read_text().rpartition(")")[2].split()[1])
            variables = Path(entry, "environ").read_bytes().split(b"\0")
            if parent == launcher and f"RANK={rank}".encode() in variables:
                return int(Path(entry).name)
    return None


def disturb(
    process: subprocess.Popen[str], runs: Path, step: int, rank: int | None, number: signal.Signals
) -> str:
    """Send a signal to a rank, or to the launcher, when a state of at least that step is kept;
    returns standard error.
    """
    until, target = time.monotonic() + 200, None
    while step_of(runs) < step or target is None:
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.02)
        target = process.pid if rank is None else rank_process(process.pid, rank)
    os.kill(target, number)
    try:
        return process.communicate(timeout=SOON)[1]
    finally:
        process.kill()


def the_record(runs: Path) -> RunRecord:
    (folder,) = [path for path in runs.iterdir() if path.is_dir()]
    return RunsFolder(runs).read(folder.name)


def trained(runs: Path) -> dict[str, torch.Tensor]:
    (file,) = runs.glob("*/checkpoint/trained.safetensors")
    return load_file(file)


@pytest.mark.nightly
@pytest.mark.slow(seconds=10)
def test_disturbed_processes_end_bit_for_bit_as_undisturbed_ones(
    command: list[str], tmp_path: Path
) -> None:
    command, runs = [*command, "--method", "simcse"], tmp_path / "disturbed"
    assert done(command, tmp_path / "whole", *TWO).returncode == 0
    err = disturb(process := start(command, runs, *TWO), runs, 5, 1, signal.SIGKILL)
    assert process.returncode == 128 + signal.SIGKILL and "Traceback" not in err
    assert "rank 1 of 2" in err and "SIGKILL (Killed)" in err
    # on a busy machine the launcher ends rank 0 before that has seen what happened
    assert the_record(runs).status in ("interrupted", "failed")
    err = disturb(process := start(command, runs, *TWO), runs, 12, None, signal.SIGTERM)
    assert process.returncode == 130 and "goes on from step" in err
    process = start(command, runs, launcher=TORCHRUN)
    disturb(process, runs, 20, 0, signal.SIGKILL)
    assert process.returncode == 1
    assert done(command, runs, *TWO).returncode == 0
    assert the_record(runs).training == the_record(tmp_path / "whole").training
    wanted = trained(tmp_path / "whole")
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in trained(runs).items())


@pytest.mark.nightly
@pytest.mark.slow(seconds=10)
def test_another_number_of_processes_goes_on_and_says_so(
    command: list[str], tmp_path: Path
) -> None:
    command = [*command, "--method", "simcse"]
    disturb(process := start(command, tmp_path, *TWO), tmp_path, 5, None, signal.SIGINT)
    assert process.returncode == 130
    alone = done(command, tmp_path)
    assert alone.returncode == 0
    assert (
        "other processes or another device worked on it before: dropout is drawn anew"
        in alone.stderr
    )
    record = the_record(tmp_path)
    assert record.status == "finished" and record.provenance.execution.ranks == (2, 1)


@pytest.mark.nightly
@pytest.mark.slow(seconds=10)
def test_a_rank_that_fails_alone_ends_all_and_says_why(command: list[str], tmp_path: Path) -> None:
    then = 'raise ValueError("this rank alone")'
    ended = fails(command, tmp_path, 'os.environ["RANK"] == "1"', then, "--seeds", "1,2")
    assert ended.returncode == 1
    assert "rank 1 of 2 failed: ValueError: this rank alone" in ended.stderr
    assert "(2 of 2)" not in ended.stderr, "the other run was not started"
    assert "fails.py" in ended.stderr, "the output of that rank"
    assert the_record(tmp_path / "runs").status == "failed"


@pytest.mark.nightly
def test_a_failure_of_all_ranks_is_one_and_the_other_runs_go_on(
    command: list[str], tmp_path: Path
) -> None:
    then = "found.total = found.total * float('nan')"
    more = ("--seeds", "1,2", "--set", "max_steps=10")
    ended = fails(command, tmp_path, "self.context.seed == 1", then, *more)
    assert ended.returncode == 1
    (error,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert "the loss became nan at step 4" in error
    records, _ = RunsFolder(tmp_path / "runs").records()
    statuses = {record.seed: record.status for record in records}
    assert statuses == {1: "failed", 2: "finished"}


def test_the_authors_gather_in_several_processes_is_another_run(
    command: list[str], tmp_path: Path
) -> None:
    def run_id(*more: str) -> Any:
        faithful = (
            *("--method", "simcse", "--set", "faithful=true", "--set", "select_on=last"),
            *("--dry-run", "--json"),
        )
        ended = bench(*command, *faithful, "--runs", tmp_path, *more)
        return json.loads(ended.stdout.splitlines()[0])["run_id"]

    assert run_id() == run_id("--on", "torchrun:1") != run_id(*TWO)


@pytest.mark.nightly
@pytest.mark.slow(seconds=20)
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")
def test_two_processes_end_as_one_does_with_adapters(command: list[str], tmp_path: Path) -> None:
    command = [*command, "--method", "simcse", "--set", "dropout=0.0", "--set", "max_steps=20"]
    command += ["--set", "adapter=lora", "--set", "lora_dropout=0"]
    for runs, more in ((tmp_path / "one", ()), (tmp_path / "two", TWO)):
        ended = done(command, runs, *more)
        assert ended.returncode == 0, ended.stderr
    wanted = trained(tmp_path / "one")
    found = trained(tmp_path / "two")
    assert found.keys() == wanted.keys() and any("lora_B" in name for name in found)
    for name, tensor in found.items():
        if "key.lora_" not in name:  # the query's products alone depend on it, weakly at first
            torch.testing.assert_close(tensor, wanted[name], rtol=0, atol=5e-4, msg=name)
