"""What the schema bench.run/5 wrote is read: three runs as it wrote them, one of a plugin's method.

They were written once, on 2026-11-29, and never change: a version that does not read them breaks
promise 10. Their checkpoints are left out.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import bench

from bench.records.arrays import read_arrays
from bench.records.names import PLAN, predictions_name
from bench.records.record import read_record
from bench.run.plan_toml import Plan

WRITTEN = Path(__file__).parent / "written"
HALF = "half-builtin-s1-8b18b1c2"
MEAN = "pretrained-builtin-any-cc965bbb"
SIMCSE = "simcse-builtin-s1-a58d3c04"


@pytest.mark.parametrize("run_id", [HALF, MEAN, SIMCSE])
def test_a_written_record_is_read(run_id: str) -> None:
    record = read_record(WRITTEN / run_id / "run.json")
    assert (record.run_id, record.status) == (run_id, "finished")
    assert record.provenance.plugin.code_version == 1
    assert (record.provenance.plugin.sha256 is not None) == (run_id == HALF)
    (score,) = record.scores
    assert (score.task, score.n) == ("pairs", 5)
    arrays = read_arrays(
        WRITTEN / run_id / predictions_name(score.task, score.protocol, score.suite)
    )
    assert arrays["gold"].tolist() == [5, 0, 4, 1, 2]


@pytest.mark.parametrize("run_id", [HALF, MEAN, SIMCSE])
def test_a_written_plan_is_read(run_id: str) -> None:
    (config,) = Plan.read(WRITTEN / run_id / PLAN).runs
    assert config.suites == ("own:pairs.tsv",) and config.backbones == ("builtin",)
    assert config.plugins == (("half.py",) if run_id == HALF else ())
    if run_id != MEAN:
        assert config.budget == "2steps" and config.overrides["batch_size"] == "4"


def test_written_runs_are_verified_compared_and_listed(tmp_path: Path) -> None:
    shutil.copytree(WRITTEN, tmp_path / "runs")
    done = bench("verify", "--runs", tmp_path / "runs", "--plugin", WRITTEN / "half.py")
    assert done.exit_code == 0, done.stderr
    assert "3 runs, 3 scores computed again: nothing differs" in " ".join(done.stdout.split())
    for words in (("compare",), ("runs",)):
        done = bench(*words, "--runs", tmp_path / "runs")
        assert done.exit_code == 0, done.stderr
        assert all(name in done.stdout.lower() for name in ("half", "simcse"))
