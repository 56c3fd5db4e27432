"""``bench run --on ray`` on a real cluster of Ray: a head without processors and two nodes with one
each.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import bench, error_line
from finished_runs import at_work, finished, left_behind, listed, logs, saved, states, workers
from run_log import started_runs

pytestmark = pytest.mark.nightly
pytest.importorskip("ray", reason="no Ray: pip install -c constraints.txt '.[ray]'")

HEALTH = {
    "period_ms": "500",
    "failure_threshold": "4",
    "timeout_ms": "1000",
    "initial_delay_ms": "0",
}
SETTINGS = {f"RAY_health_check_{name}": value for name, value in HEALTH.items()}
SETTINGS |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}


@contextlib.contextmanager
def started(**more: str) -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SETTINGS, **more}.items():
            patch.setenv(name, value)
        # as in a cluster that a script starts in the background
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        head = {"num_cpus": 0, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        signal.signal(signal.SIGINT, handler)
        patch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with started() as cluster:
        yield cluster


class Driver:
    """``bench run --on ray`` as a process."""

    def __init__(
        self, plan: tuple[str, ...], runs: Path, folder: Path, pause: float = 0.1, **more: str
    ) -> None:
        self.log = folder / f"driver-{len(list(folder.glob('driver-*')))}.log"
        command = ["-P", "-m", "bench", *plan, "--runs", str(runs), "--on", "ray"]
        environment = {**os.environ, "BENCH_SAVE_SECONDS": "0.2", **more}
        environment["BENCH_TEST_PAUSE"] = str(pause)
        with open(self.log, "wb") as out:
            env = {name: value for name, value in environment.items() if value}
            streams = {"stdout": out, "stderr": out}
            self.process = subprocess.Popen(
                [sys.executable, *command], env=env, start_new_session=True, **streams
            )

    def ends(self, seconds: float = 240) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"it has not ended: {self.said}") from None

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")


def until(what: Callable[[], Any], driver: Driver, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s: {driver.said}"
        time.sleep(0.1)


def all_finished(driver: Driver, runs: Path, quiet: dict[str, Any]) -> None:
    assert driver.ends() == 0, driver.said + logs(runs)[-3000:]
    until(lambda: not at_work(runs), driver, 120)
    assert finished(runs) == quiet and left_behind(runs) == []


@dataclass
class Work:
    """A plan of slow runs, what they are undisturbed, and a folder for them."""

    plan: tuple[str, ...]
    quiet: Callable[..., dict[str, Any]]
    folder: Path


@pytest.fixture
def work(long_plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path) -> Work:
    return Work(long_plan, quiet, tmp_path)


@pytest.mark.engine
def test_a_worker_and_a_node_that_die_and_a_second_driver(cluster: Any, work: Work) -> None:
    """A worker and a node's raylet by kill -9; the second command starts nothing twice; every run
    is finished once.
    """
    runs, plan = work.folder / 'it\'s "shared"', (*work.plan, "--seeds", "1-3")
    driver = Driver(plan, runs, work.folder)
    until(lambda: saved(runs) == 2, driver)
    now = listed(runs)
    assert sorted(one["status"] for one in now.values()) == ["queued", "running", "running"]
    cancel = {one["job"]["cancel"].split(",")[0] for one in now.values()}
    assert cancel == {f"kill -INT {driver.process.pid}"}
    second = bench(*plan, "--runs", runs, "--on", "ray")
    assert second.exit_code == 0 and "nothing to submit: 3 " in second.stderr
    os.kill(workers(runs)[0], signal.SIGKILL)
    until(lambda: len(started_runs(logs(runs))) == 3, driver)
    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
    cluster.add_node(num_cpus=1)
    all_finished(driver, runs, work.quiet(*plan))
    execution = json.loads(next(runs.glob("*/run.json")).read_text())["provenance"]["execution"]
    assert execution["engine"] == "ray" and execution["job"] and execution["node"]
    again = bench(*plan, "--runs", runs, "--on", "ray")
    assert "nothing to submit: 3 finished" in again.stderr


@pytest.mark.engine
def test_ctrl_c_and_a_driver_that_dies(cluster: Any, work: Work) -> None:
    """Each time every run saves a state and ends in time, nothing is left, and the same command
    goes on.
    """
    runs, plan = work.folder / "runs", (*work.plan, "--seeds", "1-3")
    for number in (signal.SIGINT, signal.SIGKILL):
        driver = Driver(plan, runs, work.folder, pause=1.0)  # none ends by itself
        until(lambda: len(workers(runs)) == 2 and saved(runs) >= 2, driver)  # noqa: B023
        os.killpg(driver.process.pid, number)
        code = driver.ends(120)
        until(lambda: not at_work(runs), driver, 120)  # noqa: B023
        assert code == (130 if number == signal.SIGINT else -number), driver.said
        assert states(runs) == {"interrupted"}
    all_finished(Driver(plan, runs, work.folder), runs, work.quiet(*plan))


@pytest.mark.engine
def test_a_head_that_restarts_and_one_that_does_not(work: Work) -> None:
    """Its GCS by kill -9: the command ends either way, and goes on in another cluster."""
    runs, plan = work.folder / "runs", (*work.plan, "--seeds", "1-3")
    for back in (True, False):
        with started(RAY_gcs_rpc_server_reconnect_timeout_s="15") as cluster:
            driver = Driver(plan, runs, work.folder)
            until(lambda: workers(runs) and saved(runs) >= 1, driver)  # noqa: B023
            cluster.head_node.kill_gcs_server()
            if back:
                cluster.head_node.start_gcs_server()
            assert driver.ends() == 1, driver.said
            restarted = "error: the head of the Ray cluster was restarted" in driver.said
            assert restarted == back, driver.said
            until(lambda: not at_work(runs), driver)  # noqa: B023
    with started():
        all_finished(Driver(plan, runs, work.folder), runs, work.quiet(*plan))


@pytest.mark.engine
def test_without_a_cluster_one_is_started_on_this_machine(
    work: Work, plan: tuple[str, ...], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:  # sockets: short paths
        driver = Driver(plan, runs, tmp_path, RAY_ADDRESS="", RAY_TMPDIR=folder)
        all_finished(driver, runs, work.quiet(*plan))


def test_impossible_options_are_one_line(
    cluster: Any, plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster without these resources, none at that address, one of another version; no Ray at
    all.
    """
    import ray

    given = (*plan, "--runs", tmp_path / "runs", "--on")

    def line(target: str = "ray") -> str:
        return error_line(bench(*given, target))

    for options, said in (
        ("gpus=1", "has 1 CPU, 1 GPU for a run"),
        ("cpus=99", "has 99 CPU, 0 GPU for a run"),
        ("memory=9000G", " memory for a run"),
    ):
        message = line(f"ray:{options}")
        assert "--on ray: no node of the cluster" in message and said in message
    ray.shutdown()
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert "the Ray cluster at 127.0.0.1:1 cannot be used" in line()

    def other(**options: Any) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.9.0")

    monkeypatch.setattr(ray, "init", other)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    assert "cannot be used: RuntimeError: Version mismatch: The cluster was started" in line()
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "Ray is not installed" in line()
    assert not list((tmp_path / "runs").glob(".jobs/ray-*"))
