"""``bench run --on slurm`` on a real Slurm: a plan, the faults, and bad input. Every run ends once,
equal to the quiet one.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line
from finished_runs import at_work, finished, left_behind, listed, logs, saved, states, workers
from run_log import started_runs
from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.nightly


@pytest.fixture(autouse=True)
def empty_queue(slurm: SlurmCluster) -> Iterator[None]:
    """Remove the jobs that a failed test leaves, before the next test."""
    yield
    slurm.call("scancel", "--user=root")
    slurm.call("scontrol", "update", "nodename=ALL", "state=resume")
    slurm.wait_for(lambda: not slurm.queue(), "the queue", 40)


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass
class Work:
    """A plan of slow runs on the cluster, the folder of its runs, and what they are undisturbed."""

    slurm: SlurmCluster
    plan: tuple[str, ...]
    quiet: Callable[..., dict[str, Any]]
    runs: Path

    def submit(self, *options: str, on: str = "slurm") -> str:
        pace = {"BENCH_SAVE_SECONDS": "0.2", "BENCH_TEST_PAUSE": "0.1"}
        where = ("--runs", self.runs, "--on", on)
        done = bench(*self.plan, *options, *where, **pace)
        assert done.exit_code == 0, done.stderr
        return done.stderr

    def until(self, what: Callable[[], Any], seconds: float = 300) -> None:
        end = time.monotonic() + seconds
        while not what():
            state = f"{self.slurm.queue()}\n{listed(self.runs)}\n{logs(self.runs)[-3000:]}"
            assert time.monotonic() < end, f"not within {seconds} s\n{state}"
            time.sleep(0.3)

    def until_nothing_works(self, seconds: float = 60) -> None:
        self.until(lambda: not self.slurm.queue() and not at_work(self.runs), seconds)

    def all_finished(self, *options: str) -> None:
        self.until(lambda: states(self.runs) == {"finished"})
        self.until_nothing_works()
        assert finished(self.runs) == self.quiet(*self.plan, *options)
        assert left_behind(self.runs) == []


@pytest.fixture
def work(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> Work:
    return Work(slurm, long_plan, quiet, tmp_path / "runs")


def test_a_plan_is_queued_and_run_once(work: Work, plan: tuple[str, ...], tmp_path: Path) -> None:
    """A folder with blanks and quotes; options with quotes; the same command queues nothing
    twice.
    """
    slurm, work.plan = work.slurm, (*plan, "--seeds", "1-3")
    runs = work.runs = tmp_path / 'it\'s "shared"'
    command = (*work.plan, "--runs", runs, "--on")
    printed = bench(*command, "slurm:parallel=2,time=5,nice=3", "--dry-run")
    assert "#SBATCH --time=5\n#SBATCH --nice=3\n" in printed.stdout
    assert "--array=0-2%2" in printed.stdout and slurm.queue() == [] and not runs.exists()
    comment = 'slurm:time=5,comment=it\'s "me" \\ & $(touch hit) here'
    assert "submitted 3 runs to Slurm as job " in work.submit(on=comment)
    assert "$(touch hit) here" in slurm.call("squeue", "-h", "-o", "%k")
    assert "nothing to submit: 3 " in work.submit()
    work.all_finished()
    assert "nothing to submit: 3 finished" in work.submit()
    assert len(started_runs(logs(runs))) == 3 and not list(Path().glob("hit"))
    file = next(runs.glob("*/run.json"))
    execution = json.loads(file.read_text())["provenance"]["execution"]
    assert execution["engine"] == "slurm" and re.fullmatch("[0-9]+_[0-2]", execution["job"])
    assert execution["node"] in slurm.names and execution["attempts"] == 1


@pytest.mark.engine
@pytest.mark.parametrize("fault", ["dead", "cut off"])
def test_a_node_that_is_lost(fault: str, work: Work) -> None:
    """Dead: all its processes are ended by kill -9. Cut off: its daemon is stopped, and the worker
    lives on. Slurm starts the run elsewhere.
    """
    slurm = work.slurm
    runs = work.runs
    plan = ("--seeds", "3", "--set", "max_steps=600")
    work.submit(*plan)
    work.until(lambda: saved(runs))
    node, worker = slurm.call("squeue", "-h", "-o", "%N").strip(), workers(runs)[0]
    assert states(runs) == {"running"}
    if fault == "dead":
        script = parent(worker)
        for process in (parent(script), script, worker):
            os.kill(process, signal.SIGKILL)
    slurm.kill(node, signal.SIGKILL if fault == "dead" else signal.SIGSTOP)

    def elsewhere() -> bool:
        log = logs(runs)
        return "is locked by" in log or len(started_runs(log)) > 1 or states(runs) == {"finished"}

    try:
        work.until(elsewhere, 200)
    finally:
        slurm.start_node(node) if fault == "dead" else slurm.kill(node, signal.SIGCONT)
    work.all_finished(*plan)
    slurm.wait_for(lambda: slurm.idle() == 2, "the node that came back", 120)


@pytest.mark.engine
def test_cancelled_runs_save_a_state_and_the_same_command_goes_on(work: Work) -> None:
    """The third run never began."""
    runs, plan = work.runs, ("--seeds", "1-3")
    work.submit(*plan)
    work.until(lambda: saved(runs) == 2 and len(workers(runs)) == 2)
    work.slurm.call("scancel", "--user=root")
    work.until_nothing_works()
    assert states(runs) == {"interrupted"} and saved(runs) == 2
    work.submit(*plan)
    work.all_finished(*plan)
    assert logs(runs).count("goes on from step") == 2


@pytest.mark.engine
def test_a_time_limit_that_nears_and_a_run_that_fails(work: Work) -> None:
    """The limit is a minute, and Slurm warns after 25 to 55 s: the run is saved and queued again. A
    run that fails by itself is not.
    """
    runs, plan = work.runs, ("--seeds", "1", "--set", "max_steps=450")  # more than 60 s of steps
    work.submit(*plan, on="slurm:time=1,signal=B:USR1@5")
    work.submit("--seeds", "2", "--set", "learning_rate=1e18")
    work.until(lambda: states(runs) == {"failed", "finished"}, 500)
    work.until_nothing_works()
    (failed,) = [one for one in listed(runs).values() if one["status"] == "failed"]
    assert "the loss became" in failed["error"] and left_behind(runs) == []
    now = finished(runs)
    assert now.pop(failed["run_id"])[0] == "failed" and now == work.quiet(*work.plan, *plan)
    assert len(started_runs(logs(runs))) >= 3 and "stopped at step" in logs(runs)


@pytest.mark.engine
def test_a_time_limit_without_progress_fails(work: Work) -> None:
    """Another process holds the run, so the job waits for it in vain: it is not queued again and
    again.
    """
    from bench.records import RunsFolder

    plan = (*work.plan, "--seeds", "9", "--runs", work.runs)
    run_id = bench(*plan, "--on", "commands").stdout.split()[-1]
    with RunsFolder(work.runs).lock(run_id):
        work.submit("--seeds", "9", on="slurm:time=1,signal=B:USR1@30")
        work.until(lambda: not work.slurm.queue(), 150)
    assert "the time limit came before anything new was saved" in logs(work.runs)


def test_refused_options_are_one_line_and_nothing_is_queued(
    slurm: SlurmCluster, plan: tuple[str, ...], tmp_path: Path, snapshot: Any
) -> None:
    runs, lines = tmp_path / "runs", []
    for options in (
        "partition=nowhere",
        "gpus=1",
        "memory=900G",
        "memory=much",
        "array=1-9",
        "time=1\n#SBATCH --wrap=x",
    ):
        line = error_line(bench(*plan, "--runs", runs, "--on", f"slurm:{options}"))
        lines.append(line.partition(" refused: ")[0])  # then Slurm's own message
    assert lines == snapshot
    assert slurm.queue() == [] and not list(runs.glob(".jobs/slurm-*"))
