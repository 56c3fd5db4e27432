"""``bench run --executor slurm`` on a real Slurm: a plan, the faults, and bad input. Every run ends once, equal to the quiet one."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line
from finished_runs import (
    at_work,
    finished,
    left_behind,
    listed,
    logs,
    saved,
    states,
    workers,
)
from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def empty_queue(slurm: SlurmCluster) -> Iterator[None]:
    """What a failed test leaves does not reach the next one."""
    yield
    slurm.call("scancel", "--user=root")
    slurm.call("scontrol", "update", "nodename=ALL", "state=resume")
    slurm.wait_for(lambda: not slurm.queue(), "the queue", 40)


def submit(plan: tuple[str, ...], runs: Path, *options: str) -> str:
    done = bench(
        *plan,
        *options,
        "--runs",
        runs,
        "--executor",
        "slurm",
        BENCH_SAVE_SECONDS="0.2",
        BENCH_TEST_PAUSE="0.1",
    )
    assert done.exit_code == 0, done.stderr
    return done.stderr


def until(what: Callable[[], Any], runs: Path, slurm: SlurmCluster, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, (
            f"not within {seconds} s\n{slurm.queue()}\n{listed(runs)}\n{logs(runs)[-3000:]}"
        )
        time.sleep(0.3)


def all_finished(runs: Path, slurm: SlurmCluster, quiet: dict[str, Any]) -> None:
    until(lambda: states(runs) == {"finished"}, runs, slurm)
    until(lambda: not slurm.queue() and not at_work(runs), runs, slurm, 60)
    assert finished(runs) == quiet and left_behind(runs) == []


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_plan_is_queued_listed_and_run_once(
    slurm: SlurmCluster, plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """A folder with blanks and quotes; options with quotes; the same command queues nothing twice."""
    runs, plan = tmp_path / 'it\'s "shared"', (*plan, "--seeds", "1-3")
    limits = ("--parallel", "2", "--slurm", "time=5,nice=3")
    printed = bench(*plan, "--runs", runs, "--executor", "slurm", "--dry-run", *limits)
    assert "#SBATCH --time=5\n#SBATCH --nice=3\n" in printed.stdout
    assert "--array=0-2%2" in printed.stdout and slurm.queue() == [] and not runs.exists()
    comment = 'time=5,comment=it\'s "me" \\ & $(touch hit) here'
    assert "submitted 3 runs to slurm as job " in submit(plan, runs, "--slurm", comment)
    assert "$(touch hit) here" in slurm.call("squeue", "-h", "-o", "%k")
    now = listed(runs)
    assert set(now) == set(quiet(*plan)) and states(runs) <= {"queued", "running", "finished"}
    (last,) = [one for one in now.values() if one["job"] and one["job"]["name"].endswith("_2")]
    assert last["job"]["cancel"] == f"scancel {last['job']['name']}"
    shown = bench("runs", last["run_id"], "--runs", runs).stdout
    assert "cancel: scancel " in shown and f"{last['run_id']}.log" in shown
    assert "queued or running already" in submit(plan, runs)
    fresh = bench(*plan, "--runs", runs, "--executor", "slurm", "--fresh")
    assert "cancel first: scancel " in fresh.stderr and "--fresh: " in error_line(fresh)
    all_finished(runs, slurm, quiet(*plan))
    assert "nothing to submit: 3 finished already" in submit(plan, runs)
    assert logs(runs).count(": starts") == 3 and not list(Path().glob("hit"))
    record = json.loads((runs / last["run_id"] / "run.json").read_text())
    execution = record["provenance"]["execution"]
    assert execution["engine"] == "slurm" and execution["job"] == last["job"]["name"]
    assert execution["node"] in slurm.names and execution["attempts"] == 1


@pytest.mark.engine
def test_a_killed_worker_and_a_controller_that_restarts(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    runs, plan = tmp_path / "runs", (*long_plan, "--seeds", "1-2", "--max-steps", "400")
    submit(plan, runs)
    until(lambda: saved(runs) == 2 and len(workers(runs)) == 2, runs, slurm)
    job = slurm.call("sbatch", "--parsable", "--hold", "--wrap=true").strip()
    slurm.call("scancel", job)  # at which the controller saves all jobs,
    time.sleep(6)  # within five seconds
    slurm.kill("slurmctld")
    os.kill(workers(runs)[0], signal.SIGKILL)
    silent = bench("runs", "--runs", runs, "--json")
    assert silent.exit_code == 0 and "on Slurm is unknown" in silent.stderr
    slurm.start_controller()
    until(lambda: sum("RUNNING" in line for line in slurm.queue()) == 2, runs, slurm, 60)
    slurm.call("scancel", "--state=PENDING", "--user=root")  # if it forgot that cancellation
    all_finished(runs, slurm, quiet(*plan))
    assert logs(runs).count(": starts") == 3 and logs(runs).count("goes on from step") == 1


@pytest.mark.engine
@pytest.mark.parametrize("fault", ["dead", "cut off"])
def test_a_node_that_is_lost(
    fault: str,
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """Dead: all its processes by kill -9. Cut off: its daemon stands still, the worker lives. Slurm starts the run elsewhere."""
    runs, plan = tmp_path / "runs", (*long_plan, "--seeds", "3", "--max-steps", "600")
    submit(plan, runs)
    until(lambda: saved(runs), runs, slurm)
    ((run_id, one),) = listed(runs).items()
    node, worker = slurm.call("squeue", "-h", "-o", "%N").strip(), workers(runs)[0]
    assert one["status"] == "running"
    if fault == "dead":
        script = parent(worker)
        for process in (parent(script), script, worker):
            os.kill(process, signal.SIGKILL)
        slurm.kill(node)
    else:
        slurm.kill(node, signal.SIGSTOP)

    def elsewhere() -> bool:
        log = logs(runs)
        return "is locked by" in log or log.count(": starts") > 1 or states(runs) == {"finished"}

    try:
        until(elsewhere, runs, slurm, 200)
    finally:
        if fault == "dead":
            slurm.start_node(node)
        else:
            slurm.kill(node, signal.SIGCONT)
    all_finished(runs, slurm, quiet(*plan))
    slurm.wait_for(lambda: slurm.idle() == 2, "the node that came back", 120)


@pytest.mark.engine
def test_cancelled_runs_save_a_state_and_the_same_command_goes_on(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """By the command that ``bench runs`` shows; the third run never began."""
    runs, plan = tmp_path / "runs", (*long_plan, "--seeds", "1-3")
    submit(plan, runs)
    until(lambda: saved(runs) == 2 and len(workers(runs)) == 2, runs, slurm)
    for one in listed(runs).values():
        slurm.call(*one["job"]["cancel"].split())
    until(lambda: not slurm.queue() and not at_work(runs), runs, slurm, 60)
    assert states(runs) == {"interrupted"} and saved(runs) == 2
    assert "submitted, never begun, and no longer queued" in bench("runs", "--runs", runs).stderr
    submit(plan, runs)
    all_finished(runs, slurm, quiet(*plan))
    assert logs(runs).count("goes on from step") == 2


@pytest.mark.engine
def test_a_time_limit_that_nears_and_a_run_that_fails(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """A minute, of which Slurm tells after 25 to 55 s: saved and queued again. A run that fails by itself is not."""
    runs, plan = tmp_path / "runs", (*long_plan, "--seeds", "1", "--max-steps", "300")
    submit(plan, runs, "--slurm", "time=1,signal=B:USR1@5")
    submit(long_plan, runs, "--seeds", "2", "--set", "learning_rate=1e18")
    until(lambda: states(runs) == {"failed", "finished"}, runs, slurm, 500)
    until(lambda: not slurm.queue() and not at_work(runs), runs, slurm, 60)
    (failed,) = [one for one in listed(runs).values() if one["status"] == "failed"]
    assert "the loss became" in failed["error"] and left_behind(runs) == []
    now = finished(runs)
    assert now.pop(failed["run_id"])[0] == "failed" and now == quiet(*plan)
    assert logs(runs).count(": starts") >= 3 and "stopped at step" in logs(runs)
    (log,) = runs.glob(f".jobs/*/logs/{failed['run_id']}.log")
    assert log.read_text().count(": starts") == 1


@pytest.mark.engine
def test_a_time_limit_without_progress_fails(
    slurm: SlurmCluster, long_plan: tuple[str, ...], tmp_path: Path
) -> None:
    """Another process holds the run, so the job waits for it in vain: it is not queued again and again."""
    from bench.runs import RunsFolder

    runs = tmp_path / "runs"
    plan = (*long_plan, "--seeds", "9", "--runs", runs)
    planned = bench(*plan, "--precision", "fp32", "--device", "cpu", "--dry-run", "--json")
    run_id = json.loads(planned.stdout)["run_id"]
    with RunsFolder(runs).lock(run_id):
        submit(long_plan, runs, "--seeds", "9", "--slurm", "time=1,signal=B:USR1@30")
        until(lambda: not slurm.queue(), runs, slurm, 150)
    assert f"is locked by {os.uname().nodename}:{os.getpid()}; waiting" in logs(runs)
    assert "the time limit came before anything new was saved" in logs(runs)


def test_refused_options_are_one_line_and_nothing_is_queued(
    slurm: SlurmCluster, plan: tuple[str, ...], tmp_path: Path, snapshot: Any
) -> None:
    runs, lines = tmp_path / "runs", []
    for options in (
        ("--slurm", "partition=nowhere"),
        ("--gpus", "1"),
        ("--memory", "900G"),
        ("--memory", "much"),
        ("--slurm", "array=1-9"),
        ("--slurm", "time=1\n#SBATCH --wrap=x"),
    ):
        line = error_line(bench(*plan, "--runs", runs, "--executor", "slurm", *options))
        lines.append(line.partition(" refuses: ")[0])  # then Slurm's own message
    assert lines == snapshot
    assert slurm.queue() == [] and not list(runs.glob(".jobs/slurm-*"))


def test_a_plan_larger_than_an_array_may_be_is_several(slurm: SlurmCluster, tmp_path: Path) -> None:
    """2,500 runs, MaxArraySize 1,001: three arrays, one after the other for --parallel. Nothing of them begins."""
    from bench.run import jobs
    from bench.run.executors import slurm as engine
    from bench.runs import RunsFolder

    store = RunsFolder(tmp_path / "runs")
    resources = jobs.Resources(parallel=7, options=(("hold", ""),))
    batch = jobs.new_batch(store, "slurm", [f"run-{i}" for i in range(2500)], [], resources)
    batch.write()
    assert len(engine.submit(batch)) == 3
    found = jobs.queue(store)
    assert set(found) == set(batch.runs) and {job.state for _, job in found.values()} == {"queued"}
    ids = slurm.call("squeue", "-h", "-o", "%i %E").splitlines()
    assert all("%7]" in one for one in ids) and sum("afterany" in one for one in ids) == 2
