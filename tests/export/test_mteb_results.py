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
    found = record("simcse", 42)
    cxc: Any = {"suite": "cxc", "task": "CxC-STS", "protocol": "cxc-parekh/1", "std": 1.25}
    align: Any = {"suite": "geometry", "task": "alignment", "protocol": "wang-isola/1"}
    more = (
        Score(**cxc, metric="spearman-bootstrap", value=61.5, n=10),
        replace(found.scores[0], protocol="senteval-all-raw/1", value=70.5),
        Score(**align, metric="alignment", value=0.2, n=10),
    )
    return replace(found, scores=(*found.scores, *more))


def loaded(folder: Path) -> Any:
    return mteb.ResultCache(folder).load_results(include_remote=False)


def test_mteb_loads_them(made: RunRecord, tmp_path: Path) -> None:
    files = write(made, tmp_path / "run", tmp_path / "out")
    (model,) = loaded(tmp_path / "out").model_results
    identity = (model.model_name, model.model_revision)
    assert identity == (f"bench/{made.run_id}", made.fingerprint[:16])
    scores = {one.task_name: one for one in model.task_results}
    for name in ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"):
        ours = made.score("sts", name, "senteval-all/1")
        theirs = scores.pop(f"bench-{name}")
        assert ours is not None and theirs.get_score() == pytest.approx(ours.value / 100, abs=1e-6)
        details = theirs.scores["test"][0]
        assert (details["bench_protocol"], details["bench_n"]) == ("senteval-all/1", ours.n)
        assert theirs.dataset_revision == "d" * 64
    assert scores.pop("bench-STS12-raw").get_score() == pytest.approx(0.705)
    (details,) = scores.pop("bench-CxC-STS-cxc-parekh").scores["test"]
    assert details["bench_spearman_bootstrap_std"] == pytest.approx(0.0125)
    assert not [name for name in scores if "Avg" in name], "an average is no task"
    assert len(files) == len(model.task_results) and all(file.is_file() for file in files)
    back = mteb.TaskResult.from_disk(files[0])
    assert back.task_name == "bench-STS12"
    assert 100 * back.get_score() == pytest.approx(made.scores[0].value, abs=1e-4)


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
    scores = {one.task_name: one.get_score() for one in model.task_results}
    assert 100 * scores["STS16"] == pytest.approx(result.value, abs=1e-4)
    assert {"bench-STS16", "STS16"} <= set(scores), "one folder, one model, both protocols"
    original.unlink()
    with pytest.raises(DataMissing, match="the result file that mteb wrote for STS16"):
        write(both, tmp_path / "run", tmp_path / "out2")


@pytest.mark.parametrize(
    "name", ["mteb/../../outside/STS16.json", "../outside/STS16.json", "{outside}/STS16.json"]
)
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
