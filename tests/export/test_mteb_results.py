"""A run's scores as mteb's result files: mteb's own loader reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factories import record
from msgspec.structs import replace

from bench.base.errors import DataMissing
from bench.export.mteb_folder import write_mteb_results as write
from bench.records import RunRecord, Score
from bench.records.damage import foreign_files

mteb = pytest.importorskip("mteb")


@pytest.fixture(scope="module")
def made() -> RunRecord:
    return record("simcse", 42)


def loaded(folder: Path) -> Any:
    return mteb.ResultCache(folder).load_results(include_remote=False)


def test_scores_of_our_own_suites_have_no_file(made: RunRecord, tmp_path: Path) -> None:
    assert write(made, tmp_path / "run", tmp_path / "out") == []
    assert not (tmp_path / "out").exists()


class Words:
    """Vectors of sentences for one task of mteb's own."""

    def __call__(self, sentences: Any) -> np.ndarray:
        return np.array([[len(s), sum(map(ord, s)) % 17, 1.0] for s in sentences], dtype=np.float32)


def test_results_that_mteb_wrote_are_copied(made: RunRecord, shared: Path, tmp_path: Path) -> None:
    from bench.data.sets import DataFolder
    from bench.score.suites import RunPlace, suite

    task = suite("mteb:STS16").tasks[0].load(DataFolder(shared / "data", offline=True))
    result = task.score_in(RunPlace(made.run_id, made.fingerprint[:16], tmp_path / "run"), Words())
    facts = ("protocol", "metric", "value", "n", "detail")
    values: Any = {name: getattr(result, name) for name in facts}
    theirs = Score(suite="mteb", task="STS16", **values)
    both = replace(made, scores=(*made.scores, theirs))
    files = write(both, tmp_path / "run", tmp_path / "out")
    (original,) = (tmp_path / "run").glob("mteb/results/**/STS16.json")
    assert files[-1].read_bytes() == original.read_bytes()
    (model,) = loaded(tmp_path / "out").model_results
    assert (model.model_name, model.model_revision) == (
        f"bench/{made.run_id}",
        made.fingerprint[:16],
    )
    scores = {one.task_name: one.get_score() for one in model.task_results}
    assert 100 * scores["STS16"] == pytest.approx(result.value, abs=1e-4)
    assert set(scores) == {"STS16"}
    original.unlink()
    with pytest.raises(DataMissing, match="the result file that mteb wrote for STS16"):
        write(both, tmp_path / "run", tmp_path / "out2")


@pytest.mark.parametrize("name", ["mteb/../../outside/STS16.json", "{outside}/STS16.json"])
def test_a_file_outside_of_the_run_is_not_opened(
    made: RunRecord, tmp_path: Path, name: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/STS16.json").write_text("{}")
    (tmp_path / "run/mteb").mkdir(parents=True)
    named = name.format(outside=tmp_path / "outside")
    assert (tmp_path / "run" / named).is_file()
    facts: Any = {"suite": "mteb", "task": "STS16", "protocol": "mteb/1", "metric": "m"}
    forged = Score(**facts, value=1.0, n=1, detail={"results": [named]})
    with pytest.raises(DataMissing, match="the result file that mteb wrote for STS16"):
        write(replace(made, scores=(forged,)), tmp_path / "run", tmp_path / "out")
    assert not list(tmp_path.glob("out/**/STS16.json"))
    assert foreign_files(forged, tmp_path / "run") == []
