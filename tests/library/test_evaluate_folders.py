"""``bench.evaluate`` of a folder gives the run of ``bench run``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import argv
from commands import bench as command
from evaluated import CHECK

import bench
from bench.base.errors import BenchError


@pytest.mark.slow
def test_a_folder_is_what_bench_run_makes_of_it_and_a_run_is_scored_further(
    tiny: str, tmp_path: Path, shared: Path
) -> None:
    made = bench.evaluate(tiny, settings={"pooling": "mean"}, runs=tmp_path, name="Tiny", **CHECK)
    about = (made.record.method, made.name, made.model["kind"], made.model["pooling"])
    assert about == ("pretrained", "Tiny", "folder", "mean")
    where = ("--runs", tmp_path, "--device", "cpu")
    run = argv("run --method pretrained --set pooling=mean --suite check --backbone")
    done = command(*run, tiny, *where)
    assert "nothing repeated" in done.stderr and made.run_id in done.stderr
    loaded = bench.load_run(made, device="cpu")
    vectors = loaded.encode(["A sentence.", "Another one."])
    assert vectors.shape == (2, 32) and vectors.dtype == np.float32
    with pytest.raises(BenchError, match="a list of sentences"):
        loaded.encode("A sentence.")
    live = bench.evaluate(loaded, runs=tmp_path, **CHECK)
    assert live["captions"].value == pytest.approx(made["captions"].value, abs=1e-4)
    data = ("--suite", "geometry", "--data", shared / "data")
    further = command("evaluate", made.run_id, *data, *where)
    assert further.exit_code == 0, further.stderr
    again = bench.load_runs(tmp_path)[made.run_id]
    assert {score.suite for score in again.scores} == {"check", "geometry"}
    assert again.record.fingerprint == made.record.fingerprint
    assert command("verify", made.folder).exit_code == 0
