"""``bench run --executor ray`` on a real cluster of Ray: a head without processors and two nodes with one each."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench, error_line
from finished_runs import at_work, finished, full_disk, left_behind, workers
from msgspec.structs import replace

from bench.cli.remote import take_in
from bench.runs import RunsFolder
from bench.runs.arrays import read_arrays
from bench.runs.intact import pack_run
from bench.verify.identity import verify_run

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="no Ray: pip install 'sentence-bench[ray]'")


@contextlib.contextmanager
def started(**more: str) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "4",
            "RAY_health_check_timeout_ms": "1000",
            "RAY_health_check_initial_delay_ms": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_DEDUP_LOGS": "0",
            **more,
        }.items():
            patch.setenv(name, value)
        handler = signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # as in a cluster that a script starts in the background
        cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        signal.signal(signal.SIGINT, handler)
        patch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
        import ray

        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with started() as cluster:
        yield cluster


class Driver:
    """``bench run --executor ray`` as a process."""

    def __init__(
        self, arguments: tuple[str, ...], runs: Path, folder: Path, pause: float = 0.1
    ) -> None:
        self.log = folder / f"driver-{len(list(folder.glob('driver-*')))}.log"
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "bench",
                    *arguments,
                    "--runs",
                    str(runs),
                    "--executor",
                    "ray",
                ],
                stdout=out,
                stderr=out,
                env={**os.environ, "BENCH_SAVE_SECONDS": "0.2", "BENCH_TEST_PAUSE": str(pause)},
                start_new_session=True,
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


ENDS = 120.0  # seconds: a run is given a minute to end, and the tests of other workers compute meanwhile


def until(what: Callable[[], Any], driver: Driver, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s: {driver.said}"
        time.sleep(0.1)


def saved(runs: Path) -> int:
    return len({path.parent for path in runs.glob("*/state/step-*.pt")})


def nothing_left(runs: Path, driver: Driver) -> None:
    until(lambda: not at_work(runs), driver, ENDS)
    assert left_behind(runs) == []


@pytest.mark.engine
def test_workers_and_a_node_that_die_two_drivers_and_a_run_that_fails(
    cluster: Any, long_plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """A worker and a node's raylet by kill -9; the second driver waits with nothing of the cluster; every run is finished once."""
    runs, options = tmp_path / 'it\'s "shared"', ("--seeds", "1-2")
    first = Driver((*long_plan, *options), runs, tmp_path)
    until(lambda: saved(runs) == 2, first)
    second = Driver((*long_plan, *options), runs, tmp_path)
    os.kill(workers(runs)[0], signal.SIGKILL)
    until(lambda: "2 of another driver" in second.said, second)
    until(lambda: len(workers(runs)) == 2, first)
    node = cluster.list_all_nodes()[-1]
    cluster.remove_node(node, allow_graceful=False)
    cluster.add_node(num_cpus=1)
    assert first.ends() == 0, first.said
    assert second.ends() == 0, second.said
    nothing_left(runs, first)
    assert finished(runs) == quiet(*long_plan, *options)
    states = [json.loads(path.read_text()) for path in runs.glob(".jobs/*/runs/*.json")]
    assert [state["outcome"] for state in states] == ["done", "done"] and sum(
        state["attempts"] for state in states
    ) >= 3
    about = json.loads(next(runs.glob("*/run.json")).read_text())["provenance"]["execution"]
    assert about["engine"] == "ray" and about["job"] and about["node"]


@pytest.mark.engine
def test_ctrl_c_a_driver_that_dies_and_bench_cancel(
    cluster: Any, long_plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Each time every run saves a state and ends in time, nothing is left, and the same command goes on."""
    runs, options = tmp_path / "runs", ("--seeds", "1-3")
    for how in ("ctrl-c", "kill -9", "bench cancel"):
        driver = Driver((*long_plan, *options), runs, tmp_path, pause=1.0)  # none ends by itself
        until(lambda: len(workers(runs)) == 2 and saved(runs) >= 2, driver)  # noqa: B023
        began = time.monotonic()
        if how == "bench cancel":
            done = bench("cancel", "--all", "--runs", runs)
            assert done.exit_code == 0 and "3 runs ended" in done.stdout, done.output
        else:
            os.killpg(driver.process.pid, signal.SIGINT if how == "ctrl-c" else signal.SIGKILL)
        code = driver.ends(ENDS)
        until(lambda: not at_work(runs), driver, ENDS)  # noqa: B023
        assert time.monotonic() - began < ENDS, (how, driver.said)
        assert code == (-signal.SIGKILL if how == "kill -9" else 130), (how, code, driver.said)
        states = {
            one["state"] for one in json.loads(bench("status", "--runs", runs, "--json").stdout)
        }
        assert states <= ({"interrupted", "lost"} if how == "kill -9" else {"interrupted"}), (
            how,
            states,
        )
    last = Driver((*long_plan, *options), runs, tmp_path)
    assert last.ends() == 0, last.said
    nothing_left(runs, last)
    assert finished(runs) == quiet(*long_plan, *options)


@pytest.mark.engine
def test_a_node_that_is_cut_off_while_its_processes_live(
    cluster: Any, long_plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Its raylet is stopped until Ray calls it dead; the run goes on there, or elsewhere, but never in two places; one run fails itself."""
    runs, options = tmp_path / "runs", ("--seeds", "1", "--set", "learning_rate=3e-5,1e18")
    driver = Driver((*long_plan, *options), runs, tmp_path)
    until(lambda: saved(runs) >= 1, driver)
    raylets = [node.all_processes["raylet"][0].process.pid for node in cluster.list_all_nodes()[1:]]
    for pid in raylets[:1]:
        os.kill(pid, signal.SIGSTOP)
    import ray

    ray.init(address=cluster.address, ignore_reinit_error=True, log_to_driver=False)
    try:
        until(
            lambda: (
                driver.process.poll() is not None or sum(node["Alive"] for node in ray.nodes()) < 3
            ),
            driver,
            60,
        )
    finally:
        for pid in raylets[:1]:
            os.kill(pid, signal.SIGCONT)
    assert driver.ends() == 1, driver.said
    until(lambda: not at_work(runs), driver, ENDS)
    now = finished(runs)
    assert (
        sorted(one[0] for one in now.values()) == ["failed", "finished"]
        and "1 finished, 1 failed" in driver.said
    )
    assert {run_id: one for run_id, one in now.items() if one[0] == "finished"} == quiet(
        *long_plan, *options
    )
    cluster.add_node(num_cpus=1)


@pytest.mark.engine
def test_a_head_that_restarts_and_one_that_does_not(
    long_plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Its GCS by kill -9. Where it begins anew or stays away the command ends, and goes on in another cluster; nothing is waited for."""
    runs, options = tmp_path / "runs", ("--seeds", "1-3")
    for back in (True, False):
        with started(RAY_gcs_rpc_server_reconnect_timeout_s="15") as cluster:
            driver = Driver((*long_plan, *options), runs, tmp_path)
            until(lambda: workers(runs) and saved(runs) >= 1, driver)
            cluster.head_node.kill_gcs_server()
            if back:
                cluster.head_node.start_gcs_server()
            assert driver.ends() == 1, driver.said
            assert ("error: the head of the Ray cluster was restarted" in driver.said) == back, (
                driver.said
            )
            until(lambda: not at_work(runs), driver)
    with started():
        last = Driver((*long_plan, *options), runs, tmp_path)
        assert last.ends() == 0, last.said
    nothing_left(runs, last)
    assert finished(runs) == quiet(*long_plan, *options)


@pytest.mark.engine
def test_a_disk_that_fills_up(
    cluster: Any, long_plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """A tmpfs: the command ends with a line, what was there stays whole, and with room again the same command goes on from it."""
    with full_disk(tmp_path / "disk") as (disk, fill):
        first = Driver((*long_plan, "--seeds", "5"), disk / "runs", tmp_path)
        until(lambda: saved(disk / "runs"), first)
        fill()
        assert first.ends() == 1 and "Traceback" not in first.said, first.said
        (disk / "filler").unlink()
        last = Driver((*long_plan, "--seeds", "5"), disk / "runs", tmp_path)
        assert last.ends() == 0, last.said
        nothing_left(disk / "runs", last)
        assert finished(disk / "runs") == quiet(*long_plan, "--seeds", "5")
        assert "goes on from step" in "".join(
            log.read_text() for log in disk.glob("runs/.jobs/*/logs/*.log")
        )


@pytest.mark.engine
def test_without_a_shared_folder_runs_come_back(
    cluster: Any, long_plan: tuple[str, ...], quiet: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Each node with a folder of its own, of which one dies: what it had is trained again on the other. A run that fails comes back too."""
    runs, options = (
        tmp_path / 'it\'s "mine"',
        ("--seeds", "1-2", "--set", "learning_rate=3e-5,1e18"),
    )
    homes = [tmp_path / f"node-{i}" for i in range(2)]
    for old in cluster.list_all_nodes()[1:]:
        cluster.remove_node(old)
    for home in homes:
        home.mkdir()
    own = [cluster.add_node(num_cpus=1, env_vars={"TMPDIR": str(home)}) for home in homes]
    cluster.wait_for_nodes()

    def saved_on(home: Path) -> list[Path]:
        return list(home.glob("*/*/*/state/step-*.pt"))

    try:
        driver = Driver((*long_plan, *options, "--return"), runs, tmp_path)
        until(lambda: saved_on(homes[0]) and saved_on(homes[1]), driver)
        assert not list(runs.glob("*/run.json")) and not workers(runs), (
            "nobody works in the driver's folder"
        )
        lost = saved_on(homes[0])[0].parents[1].name
        cluster.remove_node(own.pop(0), allow_graceful=False)
        assert driver.ends() == 1, driver.said
        assert "2 finished, 2 failed" in driver.said
        logs = "".join(log.read_text() for log in runs.glob(f".jobs/*/logs/{lost}.log"))
        assert "goes on from" not in logs and f"{lost}: starts" in logs, logs
        now = finished(runs)
        assert sorted(one[0] for one in now.values()) == [
            "failed",
            "failed",
            "finished",
            "finished",
        ]
        assert {run_id: one for run_id, one in now.items() if one[0] == "finished"} == quiet(
            *long_plan, *options
        )
        assert [
            report.differences for report in map(verify_run, [runs / run_id for run_id in now])
        ] == [[]] * 4
        assert not list(homes[1].glob("bench-*/*")) and not list(runs.glob(".back-*")), (
            "nothing stays where they ran"
        )
        store = RunsFolder(runs)
        store.write(replace(store.read(lost), scores=()))
        again = bench(*long_plan, *options, "--runs", runs, "--executor", "ray", "--return")
        assert f"{lost} is here and lacks only scores" in error_line(again)
    finally:
        for node in own:
            cluster.remove_node(node)
        for _ in range(2):
            cluster.add_node(num_cpus=1)


def test_what_a_worker_is_told_on_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own folder, the same for a run that comes back to the node, with files of --plugin; never one that another user made there."""
    from bench.run.executors import ray as engine
    from bench.run.jobs import Jobs, Queued, Resources, keep_plugins, new_batch

    (tmp_path / "mine.py").write_text("# of a user\n")
    runs, node = tmp_path / "runs", tmp_path / "node"
    node.mkdir()
    (kept,) = keep_plugins([tmp_path / "mine.py"], runs / ".jobs" / "plugins")
    words = ["--plugin", str(kept), "--runs", str(runs), "--corpus", f"{runs}-corpus"]
    monkeypatch.setattr(tempfile, "tempdir", str(node))
    made = []
    for _ in range(2):
        batch = new_batch(
            Jobs(RunsFolder(runs)), "ray", [Queued("run", "")], words, Resources(returns=True), 0
        )
        assert batch.needed() == [], "nothing of the driver's machine"
        about = {
            "arguments": words,
            "environment": {"BENCH_CACHE": "driver's"},
            "directory": "/nowhere",
            "retries": 1,
        }
        folder, told = engine.at_home(batch.folder, {**about, **engine.files_to_send(batch)}, "run")
        own = folder.parents[1]
        made.append(own)
        assert (
            own.is_relative_to(node)
            and (folder / "logs").is_dir()
            and told["directory"] == str(own)
            and told["retries"] == 1
        )
        assert told["arguments"] == [
            "--plugin",
            str(own / kept.relative_to(runs)),
            "--runs",
            str(own),
            "--corpus",
            f"{runs}-corpus",
        ]
        assert (
            Path(told["arguments"][1]).read_text() == "# of a user\n"
            and told["environment"]["BENCH_CACHE"] != "driver's"
        )
    assert made[0] == made[1]
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # whose folder this process makes for itself
    with pytest.raises(PermissionError, match="another user's"):
        engine.at_home(batch.folder, {**about, **engine.files_to_send(batch)}, "run")


@pytest.mark.parametrize("harm", ["predictions", "checkpoint", "no checkpoint", "cut", "outside"])
def test_a_run_that_came_back_is_verified(
    harm: str, plan: tuple[str, ...], quiet: Callable[..., Any], tmp_path: Path
) -> None:
    """What was changed on its way is refused in a line, and nothing of it is put in its place."""
    source, store = tmp_path / "node", RunsFolder(tmp_path / "runs")
    assert bench(*plan, "--device", "cpu", "--precision", "fp32", "--runs", source).exit_code == 0
    (run_id,) = finished(source)
    folder, data = source / run_id, pack_run(source / run_id)
    assert take_in(store, run_id, data) is None and finished(store.path) == finished(source)
    shutil.rmtree(store.path)
    if harm == "predictions":
        file = next(folder.glob("predictions/*.npz"))
        arrays = read_arrays(file)
        np.savez(file, **{**arrays, "prediction": arrays["prediction"][::-1]})
    elif harm == "checkpoint":
        file = next(folder.glob("checkpoint/*.safetensors"))
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    elif harm == "no checkpoint":
        shutil.rmtree(folder / "checkpoint")
    data = pack_run(folder) if harm != "cut" else data[: len(data) // 2]
    if harm == "outside":
        made = io.BytesIO(data)
        with zipfile.ZipFile(made, "a") as archive:
            archive.writestr("../../outside", "x")
        data = made.getvalue()
    why = take_in(store, run_id, data)
    if harm == "outside":
        assert (
            why is None
            and not list(tmp_path.glob("outside"))
            and not (store.path / "outside").exists()
        )
        return
    said = {
        "predictions": "of check",
        "checkpoint": "was changed",
        "no checkpoint": "is missing",
        "cut": "no whole archive",
    }[harm]
    assert why is not None and said in why and "\n" not in why and str(tmp_path) not in why, why
    assert finished(store.path) == {} and not list(store.path.glob(".back-*"))


@pytest.mark.parametrize(
    ("options", "address", "said"),
    [
        ([], "127.0.0.1:1", "no Ray cluster at 127.0.0.1:1"),
        (
            ["--gpus", "1"],
            None,
            "--gpus 1: no node of the Ray cluster has that for one run; the most is 0",
        ),
        (["--cpus", "99"], None, "--cpus 99: no node"),
        (["--memory", "9000G"], None, "--memory 9000G: no node"),
        (["--memory", "much"], None, "--memory much: expected a number"),
        (["--executor", "slurm", "--return"], None, "--return: only the driver of Ray stays"),
    ],
)
def test_what_cannot_be_is_one_line(
    options: list[str],
    address: str | None,
    said: str,
    cluster: Any,
    plan: tuple[str, ...],
    tmp_path: Path,
) -> None:
    import ray

    if address is not None:
        ray.shutdown()
    line = error_line(
        bench(
            *plan,
            "--runs",
            tmp_path / "runs",
            "--executor",
            "ray",
            *options,
            RAY_ADDRESS=address or cluster.address,
        )
    )
    assert said in line and not list((tmp_path / "runs").glob(".jobs/*/batch.json"))


def test_without_ray_or_with_another_version(
    plan: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def other(**options: Any) -> None:
        raise RuntimeError(
            "Version mismatch: The cluster was started with:\n    Ray: 2.9.0\n    Python: 3.11"
        )

    ray.shutdown()
    monkeypatch.setattr(ray, "init", other)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    asked = (*plan, "--runs", tmp_path / "runs", "--executor", "ray")
    assert (
        "is of another version: RuntimeError: Version mismatch: The cluster was started with: Ray: 2.9.0"
        in error_line(bench(*asked))
    )
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "Ray is not installed" in error_line(bench(*asked))
