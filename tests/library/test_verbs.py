"""``bench.verify_runs`` and ``load_run`` do the same as the verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench as command
from scored_run import finished_run

import bench
from bench.base.errors import BenchError, UnknownName
from bench.records import RunsFolder

WORDS = ["a man plays", "a dog runs", "a cat eats", "a car stops", "a boy sings", "a girl reads"]


@pytest.fixture(scope="module")
def trained(tiny: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run of the tiny model, with its own pooling, scored on a few pairs."""
    folder = tmp_path_factory.mktemp("scored")
    (folder / "pairs.csv").write_text("sentence1,sentence2,score\na,b,1\na,a,2\nb,c d,0\n")
    options: dict[str, Any] = {"suites": folder / "pairs.csv", "runs": folder / "runs"}
    return bench.evaluate(tiny, pooling="mean", device="cpu", progress=False, **options)


def test_verify_finds_what_agrees_and_what_was_changed(tmp_path: Path) -> None:
    store = RunsFolder(tmp_path)
    record = finished_run(store)
    reports = bench.verify_runs(runs=tmp_path)
    assert reports.agree and reports.differences == [] and len(reports) == 1
    assert record.run_id in repr(reports) and "<table>" in reports._repr_html_()
    assert set(reports.frame()["result"]) == {"agrees"}
    (result,) = bench.load_runs(tmp_path)
    assert bench.verify_runs(result).agree and bench.verify_runs([result.run_id], runs=tmp_path)
    (result.folder / "checkpoint" / "method.json").write_text("{}")
    changed = bench.verify_runs(tmp_path)
    assert not changed.agree and [one.kind for one in changed.differences] == ["checkpoint"]
    assert command("verify", tmp_path).exit_code == 1
    with pytest.raises(UnknownName):
        bench.verify_runs("nosuch", runs=tmp_path)


def test_a_run_in_the_home_folder_is_found(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(trained.folder.parent))
    named = f"~/{trained.folder.name}"
    assert bench.load_run(named, device="cpu").result.run_id == trained.run_id
    with pytest.raises(UnknownName, match="unknown baseline 'nobody'"):
        bench.compare_runs(named, baseline="nobody")


def test_a_loaded_run_encodes_a_list(trained: Any) -> None:
    vectors = bench.load_run(trained, device="cpu").encode(WORDS)
    assert vectors.shape == (6, 32) and vectors.dtype == np.float32
    with pytest.raises(BenchError, match="sentence 2 is 3, of type int"):
        bench.load_run(trained, device="cpu").encode(["a", 3])  # type: ignore[list-item]
    with pytest.raises(BenchError, match="run=3, of type int"):
        bench.load_run(3)  # type: ignore[arg-type]
