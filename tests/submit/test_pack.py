"""Runs become a file, and the same runs come out of it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from commands import tree
from made_runs import made_run
from msgspec.structs import replace
from scored_run import finished_run, predictions

from bench.base.errors import BenchError, DataDamaged
from bench.base.files import values_sha256
from bench.runs import RunsFolder, Score
from bench.runs.arrays import read_arrays
from bench.verify.submit import pack, unpack


@pytest.fixture
def store(tmp_path: Path) -> RunsFolder:
    return RunsFolder(tmp_path / "runs")


def test_what_was_packed_comes_out_again(store: RunsFolder, tmp_path: Path) -> None:
    runs = [finished_run(store, seed) for seed in (1, 2)]
    (store.folder(runs[0].run_id) / "curve.jsonl").write_text(
        '{"step": 1, "loss": NaN}\n{"step": 2, "loss": 0.5}\n'
    )
    (store.folder(runs[0].run_id) / "state").mkdir()
    (store.folder(runs[0].run_id) / "state" / "optimizer.bin").write_bytes(
        b"what only a resumed training needs"
    )
    done = pack(
        [store.folder(run.run_id) for run in runs], tmp_path / "mine.zip", by="  Ada\n Lovelace "
    )
    assert [(one.run_id, one.scores, one.left_out) for one in done.runs] == [
        (run.run_id, 1, ()) for run in runs
    ]
    assert (
        "with its checkpoint" in done.runs[0].checkpoint
        and done.bytes == (tmp_path / "mine.zip").stat().st_size
    )
    unpacked = unpack(tmp_path / "mine.zip", tmp_path / "out")
    assert unpacked.by == "Ada Lovelace" and unpacked.runs == tuple(
        sorted(run.run_id for run in runs)
    )
    for run in runs:
        before, after = store.folder(run.run_id), unpacked.folder / run.run_id
        for name in ("run.json", "checkpoint/method.json"):
            assert (after / name).read_bytes() == (before / name).read_bytes()
        assert (
            values_sha256(read_arrays(predictions(RunsFolder(unpacked.folder), run)))
            == run.scores[0].predictions_sha256
        )
    assert (unpacked.folder / runs[0].run_id / "curve.jsonl").read_text().count("\n") == 2
    assert not (unpacked.folder / runs[0].run_id / "state").exists()


def test_the_list_holds_the_hash_of_every_file_and_the_same_runs_give_the_same_bytes(
    store: RunsFolder, tmp_path: Path
) -> None:
    run = finished_run(store)
    for name in ("a.zip", "b.zip"):
        pack([store.folder(run.run_id)], tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
        header = json.loads(archive.read(names[0]))
        assert (
            names[0] == "submission.json"
            and header["submitted_by"] is None
            and header["schema"] == "bench.submission/1"
        )
        assert header["files"] == {
            name: hashlib.sha256(archive.read(name)).hexdigest() for name in names[1:]
        }
    assert len(names) == 4, names


def test_nothing_is_changed_where_a_run_lies(store: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(store)
    before = tree(store.path)
    pack([store.folder(run.run_id)], tmp_path / "mine.zip")
    assert tree(store.path) == before


@pytest.mark.parametrize("how", ["no", "auto", "yes"])
def test_a_checkpoint_goes_along_where_it_is_small(
    store: RunsFolder, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished_run(store)
    assert (
        "without"
        in pack([store.folder(run.run_id)], tmp_path / "small.zip", checkpoints=how)
        .runs[0]
        .checkpoint
    ) == (how == "no")
    monkeypatch.setattr("bench.verify.submit.packing.CHECKPOINT_BYTES", 3)
    if how == "yes":
        with pytest.raises(BenchError, match="the checkpoint of .* cannot be sent"):
            pack([store.folder(run.run_id)], tmp_path / "large.zip", checkpoints=how)
        assert not (tmp_path / "large.zip").exists()
    else:
        assert (
            "without"
            in pack([store.folder(run.run_id)], tmp_path / "large.zip", checkpoints=how)
            .runs[0]
            .checkpoint
        )


def test_a_pickle_in_a_checkpoint_stays_at_home(store: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(store)
    (store.folder(run.run_id) / "checkpoint" / "model.pt").write_bytes(b"\x80\x04.")
    done = pack([store.folder(run.run_id)], tmp_path / "mine.zip")
    assert "model.pt is neither weights in safetensors nor JSON" in done.runs[0].checkpoint
    assert unpack(tmp_path / "mine.zip", tmp_path / "out").runs == (run.run_id,)


def test_scores_of_one_suite_and_scores_that_nobody_can_compute_again(
    store: RunsFolder, tmp_path: Path
) -> None:
    run = finished_run(store)
    strange = Score(
        suite="mteb", task="SomeRetrieval", protocol="mteb/2", metric="ndcg_at_10", value=40.0, n=10
    )
    own = Score(suite="mine", task="Avg.", protocol="mine/1", metric="spearman", value=99.0, n=10)
    data = {**run.provenance.data, "mteb/SomeRetrieval": "d" * 64}
    store.write(
        replace(
            run, scores=(*run.scores, strange, own), provenance=replace(run.provenance, data=data)
        )
    )
    folder = store.folder(run.run_id)
    store.write_predictions(run.run_id, "SomeRetrieval", None, {}, "mteb")
    done = pack([folder], tmp_path / "all.zip")
    assert (
        done.runs[0].scores == 1
        and len(done.runs[0].left_out) == 2
        and "SomeRetrieval" in done.runs[0].left_out[0]
    )
    sent = RunsFolder(unpack(tmp_path / "all.zip", tmp_path / "out").folder).read(run.run_id)
    assert [score.suite for score in sent.scores] == ["check"]
    assert pack([folder], tmp_path / "one.zip", suites=("check",)).runs[0].left_out == ()
    with pytest.raises(BenchError, match="has no score of cxc"):
        pack([folder], tmp_path / "none.zip", suites=("cxc",))


def test_predictions_packed_for_a_page_are_packed_anew(tmp_path: Path) -> None:
    """LZMA, as published versions use it, is not taken from strangers: it may ask for gigabytes of memory."""
    from bench.publish.stored import pack as packed

    store = RunsFolder(tmp_path / "runs")
    run = made_run(store.path, "simcse", 1, noise=0.5, suites=("check",))
    path = store.predictions_path(run.run_id, "CHECK", None)
    arrays = read_arrays(path)
    path.write_bytes(packed(arrays))
    with zipfile.ZipFile(path) as archive:
        assert {one.compress_type for one in archive.infolist()} & {
            zipfile.ZIP_LZMA,
            zipfile.ZIP_DEFLATED,
        }
    pack([store.folder(run.run_id)], tmp_path / "mine.zip")
    out = (
        unpack(tmp_path / "mine.zip", tmp_path / "out").folder
        / run.run_id
        / "predictions"
        / "CHECK.npz"
    )
    with zipfile.ZipFile(out) as archive:
        assert {one.compress_type for one in archive.infolist()} == {zipfile.ZIP_DEFLATED}
    assert values_sha256(read_arrays(out)) == values_sha256(arrays)


def test_what_is_not_true_is_not_packed(store: RunsFolder, tmp_path: Path) -> None:
    run = finished_run(store)
    store.write(replace(run, scores=(replace(run.scores[0], value=run.scores[0].value + 1),)))
    with pytest.raises(
        DataDamaged, match="would be refused: score of .* is recorded, its predictions give"
    ):
        pack([store.folder(run.run_id)], tmp_path / "mine.zip")
    other = finished_run(store, 2, status="failed", error="out of memory")
    with pytest.raises(BenchError, match="is not finished, but failed"):
        pack([store.folder(other.run_id)], tmp_path / "mine.zip")
    path = predictions(store, run)
    np.savez(path, **{**read_arrays(path), "prediction": read_arrays(path)["prediction"][::-1]})
    with pytest.raises(BenchError):
        pack([store.folder(run.run_id)], tmp_path / "mine.zip")
    assert [one.name for one in tmp_path.iterdir()] == ["runs"], "and nothing is left behind"


def test_the_same_place_or_run_twice(store: RunsFolder, tmp_path: Path) -> None:
    folder = store.folder(finished_run(store).run_id)
    pack([folder], tmp_path / "mine.zip")
    before = (tmp_path / "mine.zip").read_bytes()
    with pytest.raises(BenchError, match="there is a file .* already"):
        pack([folder], tmp_path / "mine.zip")
    assert (tmp_path / "mine.zip").read_bytes() == before
    with pytest.raises(BenchError, match="is named twice"):
        pack([folder, folder], tmp_path / "two.zip")
    with pytest.raises(BenchError, match="does not end in .zip"):
        pack([folder], tmp_path / "mine.tar")
    with pytest.raises(BenchError, match="--by: the sender's name has 500 characters"):
        pack([folder], tmp_path / "long.zip", by="x" * 500)
