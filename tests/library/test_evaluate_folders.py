"""``bench.evaluate`` of a folder gives the run of ``bench run``."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import argv
from commands import bench as command

import bench

ROWS = "sentence1,sentence2,score\na man,a dog,1\na man,a man,2\na dog,a cat,0\n"


@pytest.mark.slow
def test_a_folder_is_what_bench_run_makes_of_it_and_a_run_is_scored_further(
    tiny: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    for file in (first, second):
        file.write_text(ROWS, encoding="utf-8")
    options = {"suites": first, "runs": tmp_path / "runs", "device": "cpu", "progress": False}
    made = bench.evaluate(tiny, settings={"pooling": "mean"}, name="Tiny", **options)
    about = (made.record.method, made.name, made.model["kind"], made.model["pooling"])
    assert about == ("pretrained", "Tiny", "folder", "mean")
    where = ("--runs", tmp_path / "runs", "--device", "cpu")
    run = argv("run --method pretrained --set pooling=mean --backbone")
    done = command(*run, tiny, "--suite", first, *where)
    assert "nothing repeated" in done.stderr and made.run_id in done.stderr
    elsewhere = ("--runs", tmp_path / "other", "--device", "cpu")
    further = command("evaluate", made.folder, "--suite", second, *elsewhere)
    assert further.exit_code == 0, further.stderr
    assert f"record: {made.folder}\n" in further.stdout, "a run's record stays in its place"
    again = bench.load_runs(tmp_path / "runs")[made.run_id]
    assert [score.task for score in again.scores] == ["first", "second"]
    assert again.record.fingerprint == made.record.fingerprint
    assert command("verify", made.folder).exit_code == 0
