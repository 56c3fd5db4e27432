"""Several processes on one plan in one folder: each run is done once, by one of them.

``BENCH_TEST_RUNS`` (8): runs of the plan. ``BENCH_TEST_PROCESSES`` (4): processes.
"""

from __future__ import annotations

import os
from pathlib import Path

import killed_worker
import pytest
from commands import bench
from forked import server
from models import sentences
from run_log import done_runs

from bench.records import RunsFolder
from bench.records.curve import read_curve

RUNS = int(os.environ.get("BENCH_TEST_RUNS", 8))
PROCESSES = int(os.environ.get("BENCH_TEST_PROCESSES", 4))


@pytest.mark.nightly
def test_each_run_of_a_plan_is_done_once_whoever_begins_it(tiny: str, tmp_path: Path) -> None:
    corpus, runs = tmp_path / "text.txt", tmp_path / "runs"
    corpus.write_text("\n".join(sentences(16, seed=6)) + "\n")
    options = f"--backbone {tiny} --suite check --corpus {corpus} --device cpu --precision fp32"
    recipe = "--set batch_size=8 --set eval_steps=1 --wait"
    command = f"run --method simcse --seeds 1-{RUNS} {options} {recipe} --runs {runs}".split()
    logs = [tmp_path / f"{i}.txt" for i in range(PROCESSES)]
    processes = [
        server().Process(target=killed_worker.work, args=(command, "0", str(log))) for log in logs
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
    output = [log.read_text() for log in logs]
    assert [process.exitcode for process in processes] == [0] * PROCESSES, output
    records, damaged = RunsFolder(runs).records()
    assert damaged == [] and {record.seed for record in records} == set(range(1, RUNS + 1))
    assert all(record.status == "finished" and len(record.scores) == 1 for record in records)
    for record in records:
        steps = [entry["step"] for entry in read_curve(runs / record.run_id)]
        assert len(steps) == len(set(steps)), "no step was written twice"
    done = [run for log in output for run in done_runs(log)]
    assert sorted(done) == sorted(record.run_id for record in records), "each by one process, once"
    assert not list(runs.rglob(".*.tmp"))
    assert bench("verify", "--runs", runs).exit_code == 0
