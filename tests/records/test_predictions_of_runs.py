"""Predictions of several seeds put together: as stored, and refused if they do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from factories import record
from predicted_runs import cosines, gold_of, sts_run

from bench.base.errors import BenchError, DataDamaged, DataMissing
from bench.records import Run, RunsFolder, Score, ScoreKey
from bench.records.names import with_text
from bench.records.predictions import QUERIES, read_predicted

STS12 = ScoreKey("sts", "STS12", "senteval-all/1")


def stored(
    runs: Path, metric: str, protocol: str, seed: int | None = 1, **arrays: np.ndarray
) -> Run:
    score = Score(suite="x", task="T", protocol=protocol, metric=metric, value=50.0, n=4)
    made = record("one", seed, scores=(score,))
    RunsFolder(runs).write_predictions(made.run_id, "T", protocol, arrays)
    return Run(made, runs / made.run_id)


def test_seeds_are_stacked_in_the_given_order(tmp_path: Path) -> None:
    made = [sts_run(tmp_path, "one", seed, 0.5, tasks=("STS12",)) for seed in (7, 3)]
    found = read_predicted([Run(one, tmp_path / one.run_id) for one in made], STS12)
    assert found.seeds == (7, 3) and found.task == "STS12" and found.metric == "spearman"
    for said, seed in zip(found.prediction_SN, (7, 3), strict=True):
        assert np.array_equal(said, cosines("one", seed, "STS12", 0.5))
    assert np.array_equal(found.gold_N, gold_of("STS12"))
    assert found.score_S is not None
    assert found.score_S.tolist() == [one.scores[0].value for one in made]


def test_queries_and_images_are_those_of_the_protocols(tmp_path: Path) -> None:
    from bench.score.suites.cxc import CXC_PROTOCOLS

    queries = {name: one.query for name, one in CXC_PROTOCOLS.items()}
    assert queries | {with_text(name, "raw"): one for name, one in queries.items()} == QUERIES
    plain = {"prediction": np.arange(4.0), "gold": np.arange(4.0)}
    captions = {"caption1": np.array([0, 1, 2, 2]), "caption2": np.array([2, 3, 0, 9])}
    arrays = plain | captions | {"image": np.array([0, 0, 1, 1])}
    for protocol, query in QUERIES.items():
        run = stored(tmp_path, "spearman-bootstrap", protocol, **arrays)
        found = read_predicted([run], ScoreKey("x", "T", protocol), by_query=True)
        assert found.query_N is not None and found.query_N.tolist() == arrays[query].tolist()
        assert found.shared_NK is not None
        first, second = found.shared_NK.T.tolist()  # the images of both captions
        assert first == [0, 0, 1, 1] and second[0] == 1 and second[2] == 0
        assert len({second[1], second[3], 0, 1}) == 4, "unknown captions stand for themselves"
    run = stored(tmp_path, "spearman-bootstrap", "cxc-parekh/1", **plain)
    with pytest.raises(DataDamaged, match="no query"):
        read_predicted([run], ScoreKey("x", "T", "cxc-parekh/1"), by_query=True)


def test_folds_and_repeated_answers_come_along(tmp_path: Path) -> None:
    gold = np.array([0, 1, 1, 0])
    fold = np.array([0, 0, 1, 1])
    key = ScoreKey("x", "T", "p/1")
    run = stored(tmp_path, "accuracy", "p/1", prediction=gold, gold=gold, fold=fold)
    found = read_predicted([run], key)
    assert found.fold_N is not None and found.fold_N.tolist() == [0, 0, 1, 1]
    assert found.prediction_SN.shape == (1, 4)
    many = np.zeros((4, 10), np.int16)
    run = stored(tmp_path, "clustering-accuracy", "p/1", prediction=many, gold=gold)
    assert read_predicted([run], key).prediction_SN.shape == (1, 4, 10)


def test_predictions_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    made = [sts_run(tmp_path, "one", seed, 0.5, tasks=("STS12",)) for seed in (1, 2)]
    runs = [Run(one, tmp_path / one.run_id) for one in made]
    with pytest.raises(DataMissing, match="has no score of STS13"):
        read_predicted(runs, ScoreKey("sts", "STS13", "senteval-all/1"))
    path, gold = (
        RunsFolder(tmp_path).predictions_path(made[1].run_id, "STS12", "senteval-all/1"),
        "gold",
    )
    of = gold_of("STS12")
    for error, arrays, said in (
        (BenchError, {"prediction": np.arange(150.0), gold: np.arange(150.0)}, "the items' gold"),
        (BenchError, {"prediction": np.zeros((150, 2)), gold: of}, "different shapes"),
        (DataDamaged, {"prediction": np.arange(3.0), gold: of}, "for 150 items"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(error, match=said):
            read_predicted(runs, STS12)
    path.unlink()
    with pytest.raises(DataMissing, match="has no predictions of STS12"):
        read_predicted(runs, STS12)
