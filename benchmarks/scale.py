"""What it costs to hand a plan to an engine: a real Slurm and a real Ray on this machine, started here.

    python benchmarks/scale.py                         # all; some minutes
    python benchmarks/scale.py --only slurm,plan       # parts: slurm, slots, ray, worker, plan
    python benchmarks/scale.py --only slots --runs 100 --seconds 60      # as long as the target says: 25 minutes

slurm: 5,000 runs queued as arrays, and one bare array of 5,000. slots: runs of so many seconds in four slots against a quarter of their sum.
ray: no-op commands through bench's task, and as bare subprocess tasks. worker: processor time until a worker knows its run.
plan: 1,000 runs against a folder of 10,000 records. Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "cluster")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(
    os.pathsep
)

from slurm_cluster import SlurmCluster, why_not  # noqa: E402

from bench.run.jobs import Batch, Jobs, Queued, Resources, new_batch  # noqa: E402
from bench.runs import RunsFolder  # noqa: E402

MISSED: list[str] = []


def tell(what: str, value: float, unit: str, target: float, at_least: bool = False) -> None:
    good = value >= target if at_least else value <= target
    print(
        f"{what:<62} {value:8.2f} {unit:<6} target {'>=' if at_least else '<='} {target:g}{'' if good else '   MISSED'}",
        flush=True,
    )
    if not good:
        MISSED.append(what)


def batch_of(
    folder: Path, engine: str, count: int, resources: Resources, python: str = sys.executable
) -> Batch:
    """Runs that are finished as soon as their command ends: all that a worker would do is ``python``."""
    from dataclasses import replace

    for i in range(count):
        (folder / f"run-{i}").mkdir(parents=True)
        (folder / f"run-{i}" / "run.json").write_text('{"status": "finished"}')
    made = new_batch(
        Jobs(RunsFolder(folder)),
        engine,
        [Queued(f"run-{i}", "") for i in range(count)],
        [],
        resources,
        0,
    )
    return replace(made, python=python)


def slurm(folder: Path, arguments: argparse.Namespace) -> None:
    from bench.run.executors import slurm as engine

    cluster = SlurmCluster()
    try:
        cluster.start()
        os.environ.update(cluster.environment)
        batch = batch_of(folder, "slurm", 5000, Resources(options=(("hold", ""),)))
        began = time.perf_counter()
        batch.write()
        print("5,000 runs:", engine.submit(batch))
        tell("5,000 runs queued on Slurm, MaxArraySize 1,001", time.perf_counter() - began, "s", 5)
        began = time.perf_counter()
        assert len(engine.places([batch])) == 5000
        tell("where they are: one squeue", time.perf_counter() - began, "s", 10)
        cluster.call("scancel", "--user=root")
    finally:
        cluster.stop()


def slots(folder: Path, arguments: argparse.Namespace) -> None:
    from bench.run.executors import slurm as engine

    cluster = SlurmCluster(nodes=4)
    sleep = folder / "sleep.sh"
    folder.mkdir(parents=True, exist_ok=True)
    sleep.write_text(f"#!/bin/sh\nexec sleep {arguments.seconds}\n")
    sleep.chmod(0o755)
    try:
        cluster.start()
        os.environ.update(cluster.environment)
        batch = batch_of(folder / "runs", "slurm", arguments.runs, Resources(cpus=1))
        batch.write()
        about = batch.folder / "batch.json"
        about.write_text(
            about.read_text().replace(f'"python": "{sys.executable}"', f'"python": "{sleep}"')
        )
        began = time.perf_counter()
        engine.submit(batch)
        while engine.places([batch]):
            time.sleep(1)
        taken, ideal = time.perf_counter() - began, arguments.runs * arguments.seconds / 4
        over = 100 * (taken / ideal - 1)
        tell(
            f"{arguments.runs} runs of {arguments.seconds} s in 4 slots, above a quarter of their sum",
            over,
            "%",
            5,
        )
    finally:
        cluster.stop()


def ray(folder: Path, arguments: argparse.Namespace) -> None:
    import ray as peer
    from ray.cluster_utils import Cluster

    from bench.run.executors import ray as engine

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        engine.check(Resources())

        @peer.remote
        def bare() -> int:
            return subprocess.run(["true"]).returncode

        peer.get([bare.remote() for _ in range(20)])
        began = time.perf_counter()
        peer.get([bare.remote() for _ in range(500)])
        print(f"bare subprocess tasks: {500 / (time.perf_counter() - began):.0f}/s")
        for count in (20, 500):
            batch = batch_of(folder / str(count), "ray", count, Resources(), python="/bin/true")
            batch.write()
            (batch.folder / "cancel").mkdir()
            began = time.perf_counter()
            ended: dict[str, Any] = engine.follow(
                batch, lambda line: None, lambda: False, lambda run_id, archive: None
            )
            taken = time.perf_counter() - began
            assert {state["outcome"] for state in ended.values()} == {"done"}
        tell("no-op commands through bench's task of Ray", 500 / taken, "/s", 100, at_least=True)
    finally:
        peer.shutdown()
        cluster.shutdown()


def bench(*arguments: Any) -> tuple[float, float]:
    """Seconds, and seconds of the processor, of ``bench`` as a process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bench", *map(str, arguments)], capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return (
        time.perf_counter() - began,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def tell_both(what: str, taken: tuple[float, float], target: float) -> None:
    """The processor's seconds are held against the target: the machine may be busy."""
    print(f"{what}: {taken[0]:.1f} s passed")
    tell(f"{what}, processor time", taken[1], "s", target)


def small_plan(folder: Path) -> list[str]:
    from models import sentences

    from bench.run.conformance import tiny_backbone

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_text("\n".join(sentences(60, seed=8)) + "\n")
    tiny = tiny_backbone(folder / "tiny")
    return [
        "run",
        "--method",
        "simcse",
        "--backbone",
        tiny,
        "--suite",
        "check",
        "--corpus",
        str(folder / "text.txt"),
        "--set",
        "batch_size=8",
    ]


def worker(folder: Path, arguments: argparse.Namespace) -> None:
    plan = [
        *small_plan(folder),
        "--runs",
        str(folder / "runs"),
        "--device",
        "cpu",
        "--precision",
        "fp32",
    ]
    bench(*plan)
    run_id = next(path.name for path in (folder / "runs").iterdir())
    tell(
        "a worker whose run is done: processor time",
        min(bench(*plan, "--only", run_id)[1] for _ in range(3)),
        "s",
        5,
    )


def plan(folder: Path, arguments: argparse.Namespace) -> None:
    from factories import record

    asked, runs = small_plan(folder), folder / "runs"
    store = RunsFolder(runs)
    for i in range(10_000):
        store.write(
            record(
                f"method-{i // 5 % 100}",
                i % 5 + 1,
                backbone=f"backbone-{i // 500}",
                base=60 + i % 17,
            )
        )
    bench(*asked, "--runs", runs, "--commands")  # what only a first look costs
    many = [*asked, "--seeds", "1-1000", "--runs", runs]
    tell_both(
        "1,000 runs, 10,000 records: --dry-run", bench(*many, "--device", "cpu", "--dry-run"), 15
    )
    cluster = SlurmCluster()
    try:
        cluster.start()
        os.environ.update(cluster.environment)
        tell_both(
            "1,000 runs, 10,000 records: submission",
            bench(*many, "--executor", "slurm", "--slurm", "hold="),
            15,
        )
        tell_both("1,000 runs, 10,000 records: bench status", bench("status", "--runs", runs), 15)
        cluster.call("scancel", "--user=root")
    finally:
        cluster.stop()


def main() -> None:
    parts = {"slurm": slurm, "slots": slots, "ray": ray, "worker": worker, "plan": plan}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(parts))
    parser.add_argument("--runs", type=int, default=16, help="of the part slots")
    parser.add_argument("--seconds", type=int, default=20, help="of each of them")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        if name in ("slurm", "slots", "plan") and (reason := why_not()) is not None:
            print(f"{name}: left out, {reason}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Path(folder) / name, arguments)
    sys.exit(1 if MISSED else 0)


if __name__ == "__main__":
    main()
