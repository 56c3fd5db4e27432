"""``bench run --executor slurm`` on a real Slurm: a plan, the faults, and bad input. What is left afterwards is that of a quiet local run."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line
from finished_runs import at_work, finished, full_disk, left_behind, workers
from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.slow


def submit(plan: tuple[str, ...], runs: Path, *options: str, code: int = 0) -> str:
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
    assert done.exit_code == code, done.stderr
    return done.stderr


def states(runs: Path) -> dict[str, str]:
    done = bench("status", "--runs", runs, "--json")
    assert done.exit_code == 0, done.stderr
    return {one["run_id"]: one["state"] for one in json.loads(done.stdout)}


def until(what: Callable[[], Any], runs: Path, slurm: SlurmCluster, seconds: float = 300) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.3)
    logs = "\n".join(
        f"--- {log}\n{log.read_text(errors='replace')[-1500:]}"
        for log in runs.glob(".jobs/*/**/*.log")
    )
    kept = "\n".join(log.read_text() for log in runs.glob(".jobs/*/runs/*.json"))
    raise AssertionError(
        f"not within {seconds} s\n{slurm.queue()}\n{bench('status', '--runs', runs).output}\n{kept}\n{logs}"
    )


def all_are(state: str, runs: Path) -> Callable[[], bool]:
    return lambda: set(states(runs).values()) == {state}


def nothing_left(runs: Path, slurm: SlurmCluster) -> None:
    until(lambda: not slurm.queue() and not at_work(runs), runs, slurm, 30)
    assert left_behind(runs) == []


def attempts(runs: Path) -> list[int]:
    return [
        json.loads(path.read_text()).get("attempts", 0) for path in runs.glob(".jobs/*/runs/*.json")
    ]


@pytest.fixture(autouse=True)
def nobody_waits(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test that failed leaves is no matter of the next one."""
    yield
    if "slurm" in request.fixturenames:
        slurm = request.getfixturevalue("slurm")
        slurm.call("scancel", "--user=root")
        slurm.call("scontrol", "update", "nodename=ALL", "state=resume")
        slurm.wait_for(lambda: not slurm.queue(), "the queue", 40)


def begun(runs: Path) -> bool:
    return bool(list(runs.glob("*/state/step-*.pt")))


def step_daemons(runs: Path) -> list[int]:
    """Those under which workers of ``runs`` are attended: worker, attendant, step daemon."""

    def parent(process: int) -> int:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])

    return [parent(parent(worker)) for worker in workers(runs)]


def test_a_plan_two_drivers_and_what_status_logs_and_records_say(
    slurm: SlurmCluster, plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """A folder with blanks and quotes; options with quotes; the second driver queues nothing; --fresh is refused meanwhile."""
    runs = tmp_path / 'it\'s "shared"'
    printed = bench(
        *plan,
        "--seeds",
        "1-3",
        "--runs",
        runs,
        "--executor",
        "slurm",
        "--dry-run",
        "--parallel",
        "2",
        "--slurm",
        "time=5,nice=3",
    )
    assert (
        printed.exit_code == 0
        and "#SBATCH --time=5\n#SBATCH --nice=3\n" in printed.stdout
        and "--array=0-2%2" in printed.stdout
    )
    assert slurm.queue() == [] and not runs.exists()
    said = submit(
        plan,
        runs,
        "--seeds",
        "1-3",
        "--parallel",
        "2",
        "--slurm",
        'time=5,comment=it\'s "me" \\ & $(touch hit) here',
    )
    assert "submitted to slurm: 3 runs, job " in said and "bench status --watch --runs '" in said
    assert "$(touch hit) here" in slurm.call("squeue", "-h", "-o", "%k")
    assert "3 queued or running already" in submit(plan, runs, "--seeds", "1-3")
    assert "--fresh: " in error_line(
        bench(*plan, "--seeds", "1-3", "--runs", runs, "--executor", "slurm", "--fresh")
    )
    until(all_are("finished", runs), runs, slurm)
    nothing_left(runs, slurm)
    assert finished(runs) == quiet(*plan, "--seeds", "1-3")
    assert "nothing to submit: 3 finished already" in submit(plan, runs, "--seeds", "1-3")
    run_id = sorted(finished(runs))[0]
    log = bench("logs", run_id[:-4], "--runs", runs)
    assert log.exit_code == 0 and f"{run_id}: starts" in log.stdout and not list(Path().glob("hit"))
    about = json.loads((runs / run_id / "run.json").read_text())["provenance"]["execution"]
    assert (
        about["engine"] == "slurm"
        and about["node"] in slurm.names
        and about["attempts"] == 1
        and "_" in about["job"]
    )
    assert sum(log.read_text().count(": starts") for log in runs.glob(".jobs/*/logs/*.log")) == 3, (
        "every run once"
    )


@pytest.mark.engine
def test_killed_workers_step_daemons_and_a_controller_that_restarts(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    runs, options = tmp_path / "runs", ("--seeds", "1-2", "--max-steps", "500")
    submit(long_plan, runs, *options)
    until(lambda: len(list(runs.glob("*/state"))) == 2 and len(workers(runs)) == 2, runs, slurm)
    slurm.call(
        "scancel", slurm.call("sbatch", "--parsable", "--hold", "--wrap=true").strip()
    )  # at which the controller saves all jobs,
    time.sleep(6)  # within five seconds
    slurm.kill("slurmctld")
    os.kill(workers(runs)[0], signal.SIGKILL)
    done = bench("status", "--runs", runs, "--json", "--all")
    assert (
        done.exit_code == 0
        and "squeue" in done.stderr
        and {one["state"] for one in json.loads(done.stdout)} == {"running"}
    )
    slurm.start_controller()
    until(lambda: sum("RUNNING" in line for line in slurm.queue()) == 2, runs, slurm, 30)
    slurm.call(
        "scancel", "--state=PENDING", "--user=root"
    )  # where it has forgotten that the other was cancelled
    until(lambda: len(workers(runs)) == 2, runs, slurm, 30)
    os.kill(step_daemons(runs)[0], signal.SIGKILL)
    until(all_are("finished", runs), runs, slurm)
    nothing_left(runs, slurm)
    assert finished(runs) == quiet(*long_plan, *options)
    assert sum(attempts(runs)) >= 4, attempts(runs)


@pytest.mark.engine
def test_a_node_that_is_cut_off_while_its_processes_live(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """Its daemon is stopped until the controller calls the node dead and starts the run on the other; then it comes back."""
    runs, options = tmp_path / "runs", ("--seeds", "3", "--max-steps", "400")
    submit(long_plan, runs, *options)
    until(lambda: begun(runs), runs, slurm)
    (state,) = [json.loads(path.read_text()) for path in runs.glob(".jobs/*/runs/*.json")]
    slurm.kill(state["node"], signal.SIGSTOP)
    try:
        until(lambda: sum(attempts(runs)) > 1 or all_are("finished", runs)(), runs, slurm, 120)
        assert len(workers(runs)) >= 1, "the one on the node that is cut off lives"
    finally:
        slurm.kill(state["node"], signal.SIGCONT)
    until(all_are("finished", runs), runs, slurm)
    nothing_left(runs, slurm)
    assert finished(runs) == quiet(*long_plan, *options)
    slurm.wait_for(lambda: slurm.idle() == 2, "the node that came back", 120)


@pytest.mark.engine
def test_a_node_whose_daemon_is_killed(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """slurmd by kill -9: its run is queued again once the controller calls the node dead, and is never in two places."""
    runs, options = tmp_path / "runs", ("--seeds", "4", "--max-steps", "400")
    submit(long_plan, runs, *options)
    until(lambda: begun(runs), runs, slurm)
    (state,) = [json.loads(path.read_text()) for path in runs.glob(".jobs/*/runs/*.json")]
    slurm.kill(state["node"])
    try:
        until(lambda: sum(attempts(runs)) > 1 or all_are("finished", runs)(), runs, slurm)
    finally:
        slurm.start_node(state["node"])
    until(all_are("finished", runs), runs, slurm)
    nothing_left(runs, slurm)
    assert finished(runs) == quiet(*long_plan, *options)


@pytest.mark.engine
def test_a_disk_that_fills_up(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """A tmpfs: the run ends with one line at most, what was there stays whole, and with room again the same command goes on from it."""
    options = ("--seeds", "5", "--max-steps", "300")
    with full_disk(tmp_path / "disk") as (disk, fill):
        runs = disk / "runs"
        submit(long_plan, runs, *options)
        until(lambda: begun(runs), runs, slurm)
        fill()
        until(lambda: not slurm.queue() and not at_work(runs), runs, slurm)
        assert set(states(runs).values()) <= {"failed", "lost", "interrupted"}
        said = "".join(log.read_text() for log in runs.glob(".jobs/*/logs/*.log"))
        assert "Traceback" not in said and said.count("error: ") <= 1, said
        (disk / "filler").unlink()
        submit(long_plan, runs, *options)
        until(all_are("finished", runs), runs, slurm)
        nothing_left(runs, slurm)
        assert finished(runs) == quiet(*long_plan, *options)
        assert "goes on from step" in "".join(
            log.read_text() for log in runs.glob(".jobs/*/logs/*.log")
        )


@pytest.mark.engine
def test_cancelled_runs_save_a_state_and_the_same_command_goes_on(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """Also by scancel: told apart from a time limit, and not queued again. The third run never began."""
    runs, options = tmp_path / "runs", ("--seeds", "1-3")
    submit(long_plan, runs, *options)
    until(
        lambda: len(list(runs.glob("*/state/step-*.pt"))) >= 2 and len(workers(runs)) == 2,
        runs,
        slurm,
    )
    began = time.monotonic()
    done = bench("cancel", "--all", "--runs", runs)
    assert done.exit_code == 0 and "3 runs ended" in done.stdout and time.monotonic() - began < 60
    until(lambda: not slurm.queue() and not at_work(runs), runs, slurm, 30)
    assert (
        set(states(runs).values()) == {"interrupted"}
        and len(list(runs.glob("*/state/step-*.pt"))) >= 2
    )
    submit(long_plan, runs, *options)
    until(all_are("finished", runs), runs, slurm)
    nothing_left(runs, slurm)
    assert finished(runs) == quiet(*long_plan, *options)
    logs = "".join(log.read_text() for log in runs.glob(".jobs/*/logs/*.log"))
    assert logs.count("goes on from step") == 2


@pytest.mark.engine
def test_a_time_limit_that_nears_and_a_run_that_fails(
    slurm: SlurmCluster,
    long_plan: tuple[str, ...],
    quiet: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    """A minute, of which Slurm tells after 25 to 55 s; one run of the plan fails by itself."""
    runs = tmp_path / "runs"
    options = ("--seeds", "1", "--max-steps", "600")
    submit(long_plan, runs, *options, "--slurm", "time=1,signal=B:USR1@5")
    submit(long_plan, runs, "--seeds", "2", "--set", "learning_rate=1e18")
    until(lambda: sorted(states(runs).values()) == ["failed", "finished"], runs, slurm)
    nothing_left(runs, slurm)
    failed = next(run_id for run_id, state in states(runs).items() if state == "failed")
    assert f"{failed}" in (text := bench("status", "--runs", runs).stdout) and "became" in text
    about = {run_id: one for run_id, one in finished(runs).items() if run_id != failed}
    assert about == quiet(*long_plan, *options)
    log = "".join(log.read_text() for log in runs.glob(".jobs/*/logs/*s1-*.log"))
    assert "stopped at step" in log and "goes on from step" in log, log
    (state,) = [json.loads(path.read_text()) for path in runs.glob(f".jobs/*/runs/{failed}.json")]
    assert state["attempts"] == 1, "a run that fails itself is not tried again"


@pytest.mark.engine
def test_two_jobs_without_a_new_state_are_enough(plan: tuple[str, ...], tmp_path: Path) -> None:
    """The job's own program, with ``true`` in the place of what queues it again."""
    from bench.run.executors import slurm as engine
    from bench.run.executors import worker

    batch = tmp_path / "runs" / ".jobs" / "batch"
    (batch / "runs").mkdir(parents=True)
    (batch / "batch.json").write_text(json.dumps({"runs": [{"run_id": "run"}]}))
    file = batch / "runs" / "run.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", lambda seconds: None)
        outcomes = []
        for states_there in (
            ["step-1"],
            ["step-1", "step-2"],
            ["step-1", "step-2"],
            ["step-1", "step-2"],
        ):
            for name in states_there:
                (tmp_path / "runs" / "run" / "state" / name).mkdir(parents=True, exist_ok=True)
            state = worker.read_state(file) | {"outcome": "time limit"}
            engine.again(batch, 0, state, "1_0", [], ["true"])
            outcomes.append(worker.read_state(file)["outcome"])
    assert outcomes == ["requeued", "requeued", "requeued", "failed"]
    assert "without a new state" in worker.read_state(file)["why"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--slurm", "partition=nowhere"], "sbatch refuses: invalid partition specified: nowhere"),
        (["--memory", "900G"], "sbatch refuses: "),
        (["--gpus", "1"], "sbatch refuses: "),
        (["--cpus", "64"], "sbatch refuses: requested node configuration is not available"),
        (["--memory", "much"], "--memory much: expected a number"),
        (["--slurm", "array=1-9"], "--slurm array: the script sets that itself"),
        (["--slurm", "time=1\n#SBATCH --wrap=x"], "no option of sbatch"),
        (["--plugin", "broken.py"], "does not import"),
    ],
)
def test_what_the_cluster_lacks_is_one_line_and_nothing_is_queued(
    options: list[str], said: str, slurm: SlurmCluster, plan: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    given = [str(tmp_path / one) if one == "broken.py" else one for one in options]
    assert (
        said.lower()
        in error_line(
            bench(*plan, "--runs", tmp_path / "runs", "--executor", "slurm", *given)
        ).lower()
    )
    assert slurm.queue() == [] and not list((tmp_path / "runs").glob(".jobs/*/batch.json"))


def test_a_node_that_does_not_see_the_runs_or_the_data(
    slurm: SlurmCluster, plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node has a folder of its own in that place. Nothing is queued; what every node sees is taken."""
    from bench.run.executors import slurm as engine

    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let a process have mounts of its own")
    monkeypatch.setattr(engine, "LOOKS_WITHIN", 300.0)  # however busy the machine is
    own = tmp_path / 'a node\'s "own"'
    (own / "data").mkdir(parents=True)
    slurm.kill("n2")
    slurm.start_node("n2", blind_to=own)
    try:
        slurm.wait_for(lambda: slurm.idle() == 2, "the nodes", 60)
        for unseen, options in ((own / "runs", []), (own / "data", ["--data", str(own / "data")])):
            runs = unseen if unseen.name == "runs" else tmp_path / "runs"
            given = (
                *plan,
                *options,
                "--runs",
                runs,
                "--executor",
                "slurm",
                "--slurm",
                "nodelist=n2",
            )
            assert f"a node of Slurm does not see {unseen}" in error_line(bench(*given))
            assert not slurm.queue() and not list(runs.glob(".jobs/*/batch.json"))
        assert "no node" not in submit(plan, tmp_path / "runs", "--slurm", "nodelist=n2")
    finally:
        slurm.kill("n2")
        slurm.start_node("n2")


def test_what_is_not_known_before_submission_is_said(
    slurm: SlurmCluster, plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every core is taken, or no node is up: the runs are queued, and nothing else is."""
    from bench.run.executors import slurm as engine

    monkeypatch.setattr(engine, "LOOKS_WITHIN", 1.0)
    said, runs = f"no node has said whether it sees {tmp_path}", tmp_path / "runs"
    for _ in slurm.names:
        slurm.call("sbatch", "--output=/dev/null", "--wrap", "sleep 600")
    slurm.wait_for(lambda: slurm.idle() == 0, "jobs on every node", 60)
    full = submit(plan, runs, "--seeds", "1-2")
    assert said in full and "no node is up" not in full and len(slurm.queue()) == 4, slurm.queue()
    slurm.call("scancel", "--user=root")
    slurm.wait_for(lambda: slurm.idle() == 2, "the nodes", 60)
    slurm.call("scontrol", "update", "nodename=ALL", "state=down", "reason=test")
    down = submit(plan, tmp_path / "others", "--seeds", "1-2")
    assert said in down and "no node is up now" in down and len(slurm.queue()) == 2, slurm.queue()


def test_without_sbatch(plan: tuple[str, ...], tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    assert "no sbatch on this machine" in error_line(
        bench(*plan, "--runs", tmp_path / "runs", "--executor", "slurm", PATH=str(folder))
    )


def test_five_thousand_runs_are_queued_as_arrays_within_the_limit(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    """2,500 here, with the cluster's MaxArraySize of 1,001: three arrays, which together keep to --parallel. Nothing of them is begun."""
    from bench.run.executors import slurm as engine
    from bench.run.jobs import Jobs, Queued, Resources, new_batch
    from bench.runs import RunsFolder

    jobs = Jobs(RunsFolder(tmp_path / "runs"))
    runs = [Queued(f"run-{i}", "") for i in range(2500)]
    batch = new_batch(jobs, "slurm", runs, [], Resources(parallel=7, options=(("hold", ""),)), 0)
    batch.write()
    try:
        engine.submit(batch)
        found = engine.places([batch])
        assert {number for _, number in found} == set(range(2500)) and {
            place.state for place in found.values()
        } == {"queued"}
        limits = slurm.call("squeue", "-h", "-o", "%i").split()
        assert (
            len(limits) == 3 and sum(int(one.rpartition("%")[2].rstrip("]")) for one in limits) == 7
        ), limits
    finally:
        slurm.call("scancel", "--user=root")
        slurm.wait_for(lambda: not slurm.queue(), "the queue", 30)


@pytest.mark.engine
def test_jobs_of_an_array_share_a_search(
    slurm: SlurmCluster, plan: tuple[str, ...], tmp_path: Path
) -> None:
    """As docs/search.md has it: the command itself, wrapped."""
    page = (Path(__file__).parents[2] / "docs" / "search.md").read_text()
    options, _ = re.findall(r"sbatch (--array=\S+) (--gres=\S+) --wrap \"bench search", page)[0]
    command = [
        "search",
        *plan[1:],
        "--select",
        "captions dev",
        "--trials",
        "4",
        "--max-steps",
        "20",
        "--seeds",
        "901",
        "--name",
        "shared",
        "--runs",
        str(tmp_path),
        "--device",
        "cpu",
    ]
    wrapped = shlex.join([sys.executable, "-P", "-m", "bench", *command])
    slurm.call(
        "sbatch",
        options.replace("7", "1"),
        f"--chdir={tmp_path}",
        "--output=%a.log",
        "--wrap",
        wrapped,
    )
    until(lambda: not slurm.queue(), tmp_path, slurm)
    logs = [(tmp_path / f"{i}.log").read_text() for i in range(2)]
    begun = [
        {line.partition(" (")[0] for line in log.splitlines() if line.endswith("): starts")}
        for log in logs
    ]
    assert not begun[0] & begun[1] and len(begun[0] | begun[1]) == 5, logs
    assert len(list(tmp_path.rglob("simcse.toml"))) == 1
