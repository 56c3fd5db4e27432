"""A version stores only the order of a rank correlation's predictions, in 16 bits: every score,
interval and verdict stays the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import bench
from made_predictions import MAKERS
from made_runs import made_run, made_runs
from published import publish

from bench.base.findings import UNCHECKED
from bench.board.publish.submissions import check_submission
from bench.board.verify import verify_run
from bench.board.verify.findings import name_score
from bench.records import Run
from bench.records.arrays import read_arrays
from bench.records.packed import NAME, narrow
from bench.records.record import REDUCED
from bench.score.suites import rescore, suite, suite_names

SUITES = ("sts", "transfer", "geometry")
TASKS = {}
for name in suite_names():
    if name != "mteb":
        TASKS |= {(name, task.metric): task for task in suite(name).tasks if task.needs}


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: f"{task.name} {task.protocol}")
@pytest.mark.parametrize("ties", [False, True])
def test_the_score_is_the_same_to_the_last_bit(task: object, ties: bool) -> None:
    arrays = MAKERS[task.suite]("simcse", 1, 0.5, task.name, 400)  # type: ignore[attr-defined]
    if ties:
        arrays["prediction"] = np.round(arrays["prediction"], 1)
    reduced = task.reduced(arrays)  # type: ignore[attr-defined]
    key = (task.suite, task.name, task.protocol)  # type: ignore[attr-defined]
    whole, again = rescore(key, arrays), rescore(key, reduced)
    assert whole is not None and again is not None
    assert (again.value, again.n, again.std) == (whole.value, whole.n, whole.std)


def test_the_order_of_44_045_pairs_fits_into_16_bits_and_equal_values_stay_equal() -> None:
    task = suite("cxc").tasks[0]
    arrays = MAKERS["cxc"]("simcse", 1, 0.5, "CxC-STS", 44045)
    reduced = task.reduced(arrays | {"prediction": np.arange(44045.0)})
    assert reduced is not None
    order = reduced["prediction"]
    assert narrow(order).dtype == np.int16 and (np.diff(order) == 1).all()
    reduced = task.reduced(arrays | {"prediction": np.arange(44045) % 3 / 7})
    assert reduced is not None
    assert reduced["prediction"][:6].tolist() == [-2, -1, 0, -2, -1, 0]


@pytest.mark.slow
def test_a_version_verifies_and_its_intervals_are_those_of_the_runs(
    without_figures: None, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    records = made_runs(runs, {"simcse": 0.5, "promcse": 0.45}, seeds=(1, 2), suites=SUITES)
    version = publish(runs, tmp_path / "boards")
    whole = sum(path.stat().st_size for path in runs.rglob("*.npz"))
    assert (version / NAME).stat().st_size < 0.6 * whole
    tables = [
        bench("compare", "simcse", "promcse", "--runs", folder, "--format", "json")
        for folder in (runs, version / "runs")
    ]
    assert json.loads(tables[0].stdout)["tables"] == json.loads(tables[1].stdout)["tables"]
    run = records[0]
    here, there = runs / run.run_id, version / "runs" / run.run_id
    before, report = verify_run(here), verify_run(there)
    kinds = {one.kind for one in (*report.differences, *before.differences)}
    assert kinds <= {"gold"}, "those of made runs are not the real sets'"
    for kind in ("score", "predictions"):
        assert report.count(kind) == before.count(kind) > 10
    unchecked = {one.what for one in report.unchecked if one.kind == "detail"}
    assert unchecked == {name_score(one) for one in run.scores if one.reduced_sha256 is not None}
    assert not before.count("detail", UNCHECKED)


def test_an_order_is_no_submission_and_not_taken_for_the_predictions(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs")
    folder = tmp_path / "runs" / run.run_id
    path = Run(run, folder).predictions_file(run.scores[0].key)
    np.savez(path, **(read_arrays(path) | {REDUCED: np.array(True)}))
    assert any("another hash" in one.why for one in verify_run(folder).differences)
    (folder / "submitted_by.txt").write_text("Eve")
    with pytest.raises(Exception, match="has only ranks"):
        check_submission(folder)
