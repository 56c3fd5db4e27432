"""``bench publish --reduced``: of predictions only what scores need is kept, and every score, interval and verdict stays what it was."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import bench, error_line
from made_runs import MAKERS, made_run, made_runs
from msgspec.structs import replace

from bench.base.files import values_sha256
from bench.publish.build import PublishOptions, publish
from bench.publish.stored import narrow, pack, store_run
from bench.publish.versions import StagedFolder
from bench.runs import RunsFolder
from bench.runs.arrays import read_arrays
from bench.runs.predictions import predictions_file
from bench.runs.record import REDUCED
from bench.score.suites import suite, suite_names
from bench.score.suites.from_predictions import rescore
from bench.show.pages.cosines import cosines
from bench.verify import UNCHECKED, verify_run
from bench.verify.findings import cell

ALL = ("sts", "cxc", "transfer", "geometry")
TASKS = [
    task for name in suite_names() if name != "mteb" for task in suite(name).tasks if task.needs
]


def test_the_suites_that_say_what_their_scores_need() -> None:
    assert {task.suite for task in TASKS} == {"sts", "cxc", "geometry"}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.name} {task.protocol}")
@pytest.mark.parametrize("ties", [False, True])
def test_the_score_is_the_same_to_the_last_bit(task: object, ties: bool) -> None:
    arrays = MAKERS[task.suite]("simcse", 1, 0.5, task.name, 400)  # type: ignore[attr-defined]
    if ties:
        arrays["prediction"] = np.round(arrays["prediction"], 1)
    reduced = task.reduced(arrays)  # type: ignore[attr-defined]
    key = (task.suite, task.name, task.protocol, "tokenised")  # type: ignore[attr-defined]
    whole, again = rescore(key, arrays), rescore(key, reduced)
    assert whole is not None and again is not None
    assert (again.value, again.n, again.std) == (whole.value, whole.n, whole.std)
    assert len(pack(reduced)) < len(pack(arrays))


def test_the_order_of_44_045_pairs_fits_into_16_bits_and_equal_values_stay_equal() -> None:
    task = suite("cxc").tasks[0]
    arrays = MAKERS["cxc"]("simcse", 1, 0.5, "CxC-STS", 44045)
    order = task.reduced(arrays | {"prediction": np.arange(44045.0)})["prediction"]  # type: ignore[index]
    assert narrow(order).dtype == np.int16 and (np.diff(order) == 1).all()
    few = task.reduced(arrays | {"prediction": np.arange(44045) % 3 / 7})["prediction"]  # type: ignore[index]
    assert few[:6].tolist() == [-2, -1, 0, -2, -1, 0]


@pytest.mark.slow
def test_a_reduced_run_verifies_and_what_is_altered_in_it_is_seen(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs", suites=ALL)
    here, to = tmp_path / "runs" / run.run_id, tmp_path / "out" / run.run_id
    whole = store_run(run, here, StagedFolder(tmp_path / "whole" / run.run_id))
    assert store_run(run, here, StagedFolder(to), reduced=True) == whole, (
        "the record is the same to the last byte"
    )
    here_bytes, there_bytes = (
        sum(p.stat().st_size for p in one.rglob("*.npz")) for one in (tmp_path / "whole", to)
    )
    assert there_bytes < 0.6 * here_bytes
    report, before = verify_run(to), verify_run(here)
    assert {one.kind for one in (*report.differences, *before.differences)} <= {"gold"}, (
        "those of made runs are not the real sets'"
    )
    assert report.count("score") == before.count("score") and report.count(
        "predictions"
    ) == before.count("predictions")

    assert {one.what for one in report.unchecked if one.kind == "detail"} == {
        cell(one) for one in run.scores if one.reduced_sha256 is not None
    }, "what a record says beside its scores is not looked at, and that is said"
    assert not before.count("detail", UNCHECKED)
    assert cosines(run, here) is not None and cosines(run, to) is None, (
        "an order is not drawn as cosines"
    )
    path = predictions_file(to, ("sts", "STS13", "senteval-all/1", "tokenised"))
    arrays = read_arrays(path)
    for wrong in (
        {"prediction": arrays["prediction"][::-1]},
        {"prediction": arrays["prediction"] * 2},
    ):
        np.savez(path, **(arrays | wrong))
        assert [
            one.kind
            for one in verify_run(to).differences
            if "STS13" in one.what and one.kind != "gold"
        ][-1:] == ["predictions"]


def test_without_the_hash_of_what_is_left_all_is_kept(tmp_path: Path) -> None:
    run = made_run(tmp_path / "runs")
    store = RunsFolder(tmp_path / "runs")
    for hashed in (
        None,
        "0" * 64,
    ):  # written by an older bench, or by one whose suites need something else
        other = replace(
            run, scores=tuple(replace(one, reduced_sha256=hashed) for one in run.scores)
        )
        store.write(other)
        store_run(
            other,
            store.folder(run.run_id),
            StagedFolder(tmp_path / f"out {hashed}" / run.run_id),
            reduced=True,
        )
        kept = read_arrays(
            predictions_file(tmp_path / f"out {hashed}" / run.run_id, run.scores[0].key)
        )
        assert REDUCED not in kept and values_sha256(kept) == run.scores[0].predictions_sha256


def test_a_file_that_calls_itself_reduced_is_not_taken_for_that_of_a_record_without_its_hash(
    tmp_path: Path,
) -> None:
    run = made_run(tmp_path / "runs")
    store = RunsFolder(tmp_path / "runs")
    store.write(replace(run, scores=tuple(replace(one, reduced_sha256=None) for one in run.scores)))
    path = predictions_file(store.folder(run.run_id), run.scores[0].key)
    np.savez(path, **(read_arrays(path) | {REDUCED: np.array(True)}))
    assert any(
        one.kind == "predictions" and "another hash" in one.why
        for one in verify_run(store.folder(run.run_id)).differences
    )


@pytest.mark.slow
def test_intervals_and_verdicts_of_a_reduced_version_are_those_of_the_runs(tmp_path: Path) -> None:
    made_runs(tmp_path / "runs", {"simcse": 0.5, "promcse": 0.45}, suites=ALL)
    published = publish(PublishOptions(runs=tmp_path / "runs", out=tmp_path / "whole")).folder
    reduced = publish(
        PublishOptions(runs=tmp_path / "runs", out=tmp_path / "out", reduced=True)
    ).folder
    assert published is not None and reduced is not None
    sizes = [sum(p.stat().st_size for p in one.rglob("*.npz")) for one in (published, reduced)]
    assert sizes[1] < 0.6 * sizes[0]
    assert bench("publish", "--check", "--out", tmp_path / "out").exit_code == 0
    said = [
        bench("compare", "simcse", "promcse", "--runs", folder, "--format", "json")
        for folder in (tmp_path / "runs", reduced / "runs")
    ]
    assert said[0].exit_code == said[1].exit_code == 0, said[1].output
    assert json.loads(said[0].stdout)["tables"] == json.loads(said[1].stdout)["tables"]
    again = publish(PublishOptions(runs=reduced / "runs", out=tmp_path / "third")).folder
    assert again is not None
    for path in sorted(reduced.rglob("*.npz")):
        assert values_sha256(read_arrays(path)) == values_sha256(
            read_arrays(again / path.relative_to(reduced))
        )


def test_a_submission_is_of_whole_predictions(tmp_path: Path) -> None:
    made_runs(tmp_path / "runs", {"simcse": 0.5}, seeds=(1,))
    reduced = publish(
        PublishOptions(runs=tmp_path / "runs", out=tmp_path / "out", reduced=True)
    ).folder
    assert reduced is not None
    (run,) = (reduced / "runs").iterdir()
    found = bench("submit", run.name, "--runs", reduced / "runs", "--to", tmp_path / "sent.zip")
    assert "holds only what the score needs" in error_line(found)
    assert not (tmp_path / "sent.zip").exists()


def test_items_of_reduced_runs_have_places_and_no_cosines(tmp_path: Path) -> None:
    made_runs(tmp_path / "runs", {"simcse": 0.5, "promcse": 0.45}, seeds=(1,))
    reduced = publish(
        PublishOptions(runs=tmp_path / "runs", out=tmp_path / "out", reduced=True)
    ).folder
    assert reduced is not None
    names = sorted(one.name for one in (reduced / "runs").iterdir())
    found = [
        bench("compare", *names, "--items", "--runs", folder, "--format", "json")
        for folder in (tmp_path / "runs", reduced / "runs")
    ]
    assert found[0].exit_code == found[1].exit_code == 0, found[1].output
    whole, kept = (json.loads(one.stdout)["tasks"][0]["items"][0] for one in found)
    assert (
        kept["number"] == whole["number"]
        and kept["first"]["place"] == whole["first"]["place"] == kept["first"]["value"]
    )
    assert kept["first"]["text"] == ""
