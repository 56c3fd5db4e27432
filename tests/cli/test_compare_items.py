"""``bench compare A B --items``: against a ranking by scipy, and on the evaluation data's own
sentences.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench, error_line
from factories import record
from predicted_runs import sts_run

from bench.compare.items import disagreements
from bench.records import Run, RunRecord, RunsFolder, Score


def stored(runs: Path, method: str, score: Score, said: Any, gold: np.ndarray) -> RunRecord:
    made = record(method, 1, scores=(score,))
    RunsFolder(runs).write(made)
    arrays = {"prediction": said, "gold": gold}
    RunsFolder(runs).write_predictions(made.run_id, score.task, score.protocol, arrays)
    return made


@pytest.mark.parametrize(
    ("gold", "first", "second", "expected"),
    [
        (
            [0, 1, 0, 1, 1],
            [0, 1, 1, 0, 1],
            [0, 0, 1, 1, 1],
            [(2, 100, "yes", "no"), (4, 100, "no", "yes")],
        ),
        # few-shot: the share of the draws that are right
        (
            [0, 1, 1],
            [[0, 0, -1], [1, 1, 0], [1, 1, 1]],
            [[0, 1, -1], [0, 0, 0], [1, 1, 1]],
            [(2, 66.667, "yes x2, no x1", "no x3"), (1, 50.0, "no x2", "no x1, yes x1")],
        ),
    ],
)
def test_texts_that_one_alone_classifies_right(
    tmp_path: Path, gold: list[int], first: list[Any], second: list[Any], expected: list[Any]
) -> None:
    facts: Any = {"suite": "transfer", "task": "MR", "protocol": "p/1", "metric": "accuracy"}
    score = Score(**facts, value=50.0, n=len(gold), detail={"classes": ["no", "yes"]})
    runs = []
    for name, said in (("one", first), ("two", second)):
        run = stored(tmp_path, name, score, np.array(said), np.array(gold))
        runs.append(Run(run, tmp_path / run.run_id))
    (found,) = disagreements(*runs, texts=lambda key, gold: None)  # type: ignore[arg-type]
    assert [
        (item.number, round(item.apart, 3), item.first.text, item.second.text)
        for item in found.items
    ] == expected
    assert (found.differ, found.n) == (2, len(gold))


def test_the_sentences_are_those_of_the_data(shared: Path, tmp_path: Path) -> None:
    from bench.data.sets import DataFolder
    from bench.data.sets.sts import read_sts

    pairs = read_sts(DataFolder(shared / "data"), "STS-B", text="tokenised")
    facts: Any = {"suite": "sts", "protocol": "senteval-all/1", "metric": "spearman"}
    score = Score(**facts, task="STS-B", value=1.0, n=len(pairs))
    ids = []
    for name, seed in (("one", 3), ("two", 4)):
        said = np.random.default_rng(seed).normal(size=len(pairs))
        ids.append(stored(tmp_path, name, score, said, pairs.gold).run_id)
    arguments = ["compare", *ids, "--runs", tmp_path, "--items", "--top", "3"]
    done = bench(*arguments, "--data", shared / "data", COLUMNS="80")
    content = json.loads(bench(*arguments, "--data", shared / "data", "--format", "json").stdout)
    for item in content["tasks"][0]["items"]:
        i = item["number"] - 1
        assert item["texts"] == [pairs.sentences1[i], pairs.sentences2[i]]
        assert item["gold"]["value"] == pairs.gold[i]
        assert " ".join(pairs.sentences1[i].split()) in " ".join(done.stdout.split())
    assert "texts are not available: " in bench(*arguments, "--data", tmp_path / "nowhere").stdout


def test_items_that_cannot_be_shown_give_the_reason(tmp_path: Path) -> None:
    one, two = (sts_run(tmp_path, name, 1, 0.5, tasks=("STS12",)).run_id for name in ("one", "two"))
    other = sts_run(tmp_path, "three", 1, 0.5, tasks=("STS12",), n=40).run_id
    RunsFolder(tmp_path).write(record("four", 1, scores=()))
    for words, said in (
        (f"{one} {two} --task STS13", "unknown task 'STS13'"),
        (f"{one} {other}", "different"),
    ):
        done = bench("compare", *words.split(), "--runs", tmp_path, "--items")
        assert said in error_line(done)
    RunsFolder(tmp_path).predictions_path(two, "STS12", "senteval-all/1").unlink()
    done = bench("compare", one, two, "--runs", tmp_path, "--items")
    assert "has no predictions of STS12" in error_line(done)
