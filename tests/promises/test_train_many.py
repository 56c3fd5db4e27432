"""Promise 11: many runs at once, here and on Slurm; one run on several processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paused import lasting, listed, said, until, write_fails, write_paused
from slurm_cluster import SlurmCluster, why_not
from started import Process, begun, bench, environment, record, run_folders

STEPS = 60
HERE = ["--device", "cpu", "--precision", "fp32"]
"""What a worker without a GPU takes, so that the quiet runs are those of the workers."""


def status(runs: Path) -> dict[str, tuple[str, str | None]]:
    """Return what ``bench runs --json`` says of each run: its status, and why it failed."""
    done = bench("runs", "--runs", runs, "--json", cwd=runs)
    return {one["run_id"]: (one["status"], one["error"]) for one in listed(done.out)}


def values(runs: Path) -> dict[tuple[str, int | None], float]:
    """Return the score of each finished run, by its method and seed."""
    records = [record(run) for run in run_folders(runs)]
    return {
        (one["method"], one["seed"]): one["scores"][0]["value"]
        for one in records
        if one["status"] == "finished"
    }


# on this machine


@pytest.mark.promise(11)
def test_of_several_processes_one_that_fails_costs_itself_alone(
    ten_runs: Path, tiny: Path, inputs: Path, tmp_path: Path
) -> None:
    """The other has the score that one process gives; the list of runs says why one failed."""
    fails, runs = write_fails(tmp_path / "fails_method.py"), tmp_path / "runs"
    words: list[str | Path] = ["run", fails, "cls", "--backbone", tiny, "--plain", *HERE]
    words += ["--suite", inputs / "pairs.tsv", "--corpus", inputs / "corpus.txt"]
    words += ["--budget", "4steps", "--set", "select_on=last", "--set", "batch_size=16"]
    done = bench(*words, "--runs", runs, "--on", "local:2", cwd=tmp_path, code=1)
    assert "Traceback" not in done.err
    found = sorted(status(runs).values())
    assert [one[0] for one in found] == ["failed", "finished"]
    assert "no loss today" in str(found[0][1]) and "fails_method.py" in str(found[0][1])
    (cls,) = [one for one in values(runs).items() if one[0][0] == "cls"]
    assert cls in values(ten_runs).items()


# a plan that is disturbed: three runs that wait at each step, and one that fails


class Plan:
    """Three seeds of a slow method and a method that fails, into a folder of runs."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        self.folder, self.runs, self.steps = folder, folder / "runs", folder / "steps.txt"
        self.words: list[str | Path] = ["run", write_paused(folder / "paused_method.py")]
        self.words += ["--seeds", "1-3", "--backbone", inputs / "tiny", "--plain"]
        self.words += ["--corpus", inputs / "corpus.txt", "--suite", inputs / "pairs.tsv"]
        self.words += ["--budget", f"{STEPS}steps", "--set", "batch_size=16"]
        self.words += ["--set", "select_on=last"]
        for name, value in self.env().items():
            (folder / name).write_text(value)
        self.failing: list[str | Path] = [write_fails(folder / "fails_method.py")]

    def env(self, pause: float = 0.3) -> dict[str, str]:
        return {"STEPS": str(self.steps), "PAUSE": str(pause), "BENCH_SAVE_SECONDS": "0.2"}

    def quiet(self) -> dict[str, Any]:
        """Return what each of the three runs is if nothing disturbs it."""
        quiet = self.folder / "quiet"
        env = self.env(0) | {"STEPS": str(self.folder / "quiet.txt")}
        bench(*self.words, *HERE, "--runs", quiet, cwd=self.folder, env=env)
        return {run.name: lasting(run) for run in run_folders(quiet)}

    def kill_one(self, process: Process | None) -> None:
        """Kill the process of a run in the middle of its training."""

        def in_the_middle() -> int | None:
            pids = said(self.steps)
            return pids[-1] if pids and 8 < pids.count(pids[-1]) < STEPS - 20 else None

        until(in_the_middle, process)
        os.kill(in_the_middle() or said(self.steps)[-1], signal.SIGKILL)

    def finished(self) -> dict[str, Any]:
        return {
            run.name: lasting(run)
            for run in run_folders(self.runs)
            if record(run)["status"] == "finished"
        }


@contextlib.contextmanager
def at_work(plan: Plan, *more: str | Path, **env: str) -> Iterator[Process]:
    """Start the plan, and end what is left of it."""
    words = [*plan.words, *more, "--runs", plan.runs]
    process = begun(*words, cwd=plan.folder, env=plan.env() | env)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def one_status(plan: Plan) -> list[str]:
    return sorted(one for one, _ in status(plan.runs).values()) if plan.runs.is_dir() else []


@pytest.mark.promise(11)
@pytest.mark.nightly
def test_a_killed_process_costs_itself_alone_and_the_same_command_finishes_it(
    inputs: Path, tmp_path: Path
) -> None:
    plan = Plan(tmp_path, inputs)
    with at_work(plan, *HERE, "--on", "local:2,retries=0") as process:
        plan.kill_one(process)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "Traceback" not in errors
    quiet, before = plan.quiet(), plan.finished()
    assert len(before) == 2
    assert before == {name: quiet[name] for name in before}
    steps = len(said(plan.steps))
    again = [*plan.words, *HERE, "--runs", plan.runs, "--on", "local:2"]
    bench(*again, cwd=tmp_path, env=plan.env(0))
    assert len(said(plan.steps)) - steps < STEPS, "the killed one goes on from its state"
    assert plan.finished() == quiet


@pytest.mark.promise(11)
@pytest.mark.nightly
def test_a_killed_process_is_started_again(inputs: Path, tmp_path: Path) -> None:
    """Meanwhile ``bench runs`` says what runs; a run that fails is not started again."""
    plan = Plan(tmp_path, inputs)
    with at_work(plan, *plan.failing, *HERE, "--on", "local:2") as process:
        until(lambda: said(plan.steps), process)
        assert "running" in one_status(plan)
        plan.kill_one(process)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 1, errors
    assert plan.finished() == plan.quiet()
    failed = [one for one in status(plan.runs).values() if one[0] != "finished"]
    assert {one[0] for one in failed} == {"failed"}
    assert all("no loss today" in str(why) for _, why in failed)


@pytest.mark.promise(11)
@pytest.mark.nightly
def test_printed_commands_do_the_plan_from_any_folder(inputs: Path, tmp_path: Path) -> None:
    plan = Plan(tmp_path, inputs)
    env = plan.env(0)
    words = [*plan.words, "--runs", plan.runs, "--on", "commands"]
    lines = bench(*words, cwd=tmp_path, env=env).out.splitlines()
    assert len(lines) == 3 and run_folders(plan.runs) == []
    for line in lines:
        done = subprocess.run(["sh", "-c", line], cwd="/", env=environment(**env), timeout=600)
        assert done.returncode == 0
    assert plan.finished() == plan.quiet()


@pytest.mark.promise(11)
@pytest.mark.nightly
@pytest.mark.parametrize("what", ["simcse", "simcse --chunk 4", "esimcse", "promcse --chunk 4"])
def test_two_processes_have_the_gradient_of_one(
    what: str, tiny: Path, inputs: Path, tmp_path: Path
) -> None:
    """Without dropout, losses, weights and scores are those of one process."""
    from safetensors.numpy import load_file

    words: list[str | Path] = ["run", *what.split(), "--backbone", tiny, *HERE, "--plain"]
    words += ["--corpus", inputs / "corpus.txt", "--suite", inputs / "pairs.tsv"]
    words += ["--set", "batch_size=16", "--set", "dropout=0", "--set", "learning_rate=0.001"]
    words += ["--budget", "12steps", "--set", "select_on=last", "--set", "eval_steps=4"]
    bench(*words, "--runs", tmp_path / "one", cwd=tmp_path)
    bench(*words, "--runs", tmp_path / "two", "--on", "torchrun:2", cwd=tmp_path)
    (one,), (two,) = run_folders(tmp_path / "one"), run_folders(tmp_path / "two")
    alone, shared = lasting(one), lasting(two)
    assert [step for step, _ in alone["losses"]] == [step for step, _ in shared["losses"]]
    assert len(alone["losses"]) > 0
    losses = [[loss for _, loss in run["losses"]] for run in (alone, shared)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0, atol=1e-4)
    assert shared["scores"][0][2] == pytest.approx(alone["scores"][0][2], abs=0.1)
    for file in (one / "checkpoint").glob("*.safetensors"):
        first, second = load_file(file), load_file(two / "checkpoint" / file.name)
        assert first.keys() == second.keys()
        # the gradient of a key's bias is 0, of which Adam makes steps of any sign
        for name in (one for one in first if not one.endswith("key.bias")):
            np.testing.assert_allclose(second[name], first[name], rtol=0, atol=1e-4)


# Slurm


def waits_for(what: Callable[[], Any], seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.5)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    """Start a Slurm with two nodes; skip with the reason if it is not installed."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    cluster = SlurmCluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.promise(11)
@pytest.mark.nightly
@pytest.mark.engine
def test_an_array_of_slurm_with_one_run_killed_and_one_failing(
    slurm: SlurmCluster, inputs: Path, tmp_path: Path
) -> None:
    plan = Plan(tmp_path, inputs)
    plan.runs.mkdir()
    env = plan.env() | slurm.environment

    def now() -> list[str]:
        done = bench("runs", "--runs", plan.runs, "--json", cwd=tmp_path, env=env)
        return sorted(one["status"] for one in listed(done.out))

    words = [*plan.words, *plan.failing, "--runs", plan.runs, "--on", "slurm"]
    try:
        bench(*words, cwd=tmp_path, env=env)
        waits_for(lambda: said(plan.steps))
        assert "running" in now()
        submitted = len(slurm.queue())
        bench(*words, cwd=tmp_path, env=env)
        assert len(slurm.queue()) <= submitted, "what is queued is not queued twice"
        plan.kill_one(None)
        waits_for(lambda: not slurm.queue())
    finally:
        slurm.call("scancel", "--user=root")
        waits_for(lambda: not slurm.queue())
    assert plan.finished() == plan.quiet()
    why = [why for one, why in status(plan.runs).values() if one == "failed"]
    assert len(why) == 3 and all("no loss today" in str(one) for one in why)
