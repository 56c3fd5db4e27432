"""A run's scores as files that others read: the hub's own parser takes one, the other follows the
schema of Every Eval Ever 0.3.0.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench, error_line
from made_runs import made_run
from msgspec.structs import replace

from bench.base.errors import BenchError
from bench.export.every_eval_ever import every_eval_ever
from bench.export.hub_results import hub_results
from bench.records import Run, RunsFolder, Score


def test_the_hubs_parser_reads_what_has_a_data_set_there(tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    if not hasattr(hub, "parse_eval_result_entries"):
        pytest.skip("an older huggingface_hub")
    made = made_run(tmp_path, "simcse", 1)
    with pytest.raises(BenchError, match="no score on a data set of the hub"):
        hub_results(made)
    revision = "a" * 40
    detail = {"dataset": {"path": "mteb/sts12-sts", "revision": revision}, "mteb_version": "2.4.0"}
    score = Score(
        suite="mteb",
        task="STS12",
        protocol="mteb/2",
        metric="cosine_spearman",
        value=61.5,
        n=10,
        detail=detail,
    )
    local = replace(score, task="STS13", detail={"dataset": {"path": "p", "revision": "local-1"}})
    one, other = hub.parse_eval_result_entries(
        hub_results(replace(made, scores=(*made.scores, score, local)))
    )
    assert (one.dataset_id, one.task_id, one.value) == ("mteb/sts12-sts", "STS12", 61.5)
    assert one.dataset_revision == revision and other.dataset_revision is None
    assert one.notes == "cosine_spearman x 100, as mteb 2.4.0 scores it"


def test_every_score_has_its_interval_and_its_range(tmp_path: Path) -> None:
    made = made_run(tmp_path, "simcse", 1, suites=("sts", "geometry"))
    content = every_eval_ever(Run(made, RunsFolder(tmp_path).folder(made.run_id)))
    results = {one["evaluation_name"]: one for one in content["evaluation_results"]}
    assert len(results) == len(made.scores) and content["schema_version"] == "0.3.0"
    for score in made.scores:
        one = results[f"{score.suite} {score.task}"]
        details, metric = one["score_details"], one["metric_config"]
        assert details["score"] == score.value
        ends = (None, None) if score.suite == "geometry" else (-100.0, 100.0)
        assert (metric["min_score"], metric["max_score"]) == ends
        assert metric["lower_is_better"] == (score.suite == "geometry")
        assert one["source_data"]["additional_details"]["protocol"] == score.protocol
    interval = results["sts STS12"]["score_details"]["uncertainty"]["confidence_interval"]
    assert interval["lower"] < results["sts STS12"]["score_details"]["score"] < interval["upper"]
    assert interval["method"] == "over items"


def test_the_verb_writes_a_new_file_of_a_finished_run(tmp_path: Path) -> None:
    made = made_run(tmp_path / "runs", "simcse", 1)
    words = ("export", made.run_id, "--runs", tmp_path / "runs", "--format", "every-eval-ever")
    file = tmp_path / "scores.json"
    assert bench(*words, "--to", file).exit_code == 0
    assert json.loads(file.read_text())["model_info"]["name"] == "simcse"
    assert bench(*words, "--to", file).exit_code == 0, "the same command again changes nothing"
    file.write_text("mine")
    assert "exists already" in error_line(bench(*words, "--to", file))
    assert file.read_text() == "mine"
    assert "writes a file of scores" in error_line(bench(*words, "--push", "me/model"))
