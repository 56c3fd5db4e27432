"""``bench compare A B --items``: against a ranking by scipy, and on the evaluation data's own sentences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import bench, error_line
from factories import record
from predicted_runs import cosines, gold_of, sts_run
from scipy.stats import rankdata

from bench.compare.items import disagreements
from bench.runs import RunRecord, RunsFolder, Score


def classed(
    runs: Path, method: str, said: np.ndarray, gold: np.ndarray, task: str, suite: str
) -> RunRecord:
    score = Score(
        suite=suite,
        task=task,
        protocol="p/1",
        metric="accuracy",
        value=50.0,
        n=len(gold),
        detail={"classes": ["no", "yes"]},
    )
    made = record(method, 1, scores=(score,))
    store = RunsFolder(runs)
    store.write(made)
    store.write_predictions(made.run_id, task, None, {"prediction": said, "gold": gold})
    return made


def test_pairs_whose_ranks_are_furthest_apart_come_first(tmp_path: Path) -> None:
    first, second = (
        sts_run(tmp_path, name, 1, 0.5, tasks=("STS12", "STS13")) for name in ("one", "two")
    )
    done = bench(
        "compare",
        first.run_id,
        second.run_id,
        "--runs",
        tmp_path,
        "--items",
        "--task",
        "STS13",
        "--top",
        "7",
        "--format",
        "json",
    )
    assert done.exit_code == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["schema"] == "bench.items/1" and content["runs"] == [first.run_id, second.run_id]
    (task,) = content["tasks"]
    a, b, gold = cosines("one", 1, "STS13", 0.5), cosines("two", 1, "STS13", 0.5), gold_of("STS13")
    apart = 100 * np.abs(rankdata(a) - rankdata(b)) / (len(a) - 1)
    assert [item["number"] for item in task["items"]] == (
        np.argsort(-apart, kind="stable")[:7] + 1
    ).tolist()
    for item in task["items"]:
        i = item["number"] - 1
        assert item["apart"] == pytest.approx(apart[i]) and item["texts"] is None
        assert (item["gold"]["value"], item["first"]["value"], item["second"]["value"]) == (
            gold[i],
            a[i],
            b[i],
        )
        assert item["gold"]["place"] == pytest.approx(
            100 * (rankdata(gold)[i] - 1) / (len(gold) - 1)
        )
    assert task["differ"] == int((apart > 0).sum())


def test_texts_that_one_alone_classifies_right(tmp_path: Path) -> None:
    gold = np.array([0, 1, 0, 1, 1])
    runs = [
        classed(tmp_path, name, np.array(said), gold, "MR", "transfer")
        for name, said in (("one", [0, 1, 1, 0, 1]), ("two", [0, 0, 1, 1, 1]))
    ]
    (found,) = disagreements(
        *((run, tmp_path / run.run_id) for run in runs), texts=lambda key, gold: None
    )  # type: ignore[arg-type]
    assert [
        (item.number, item.gold.text, item.first.text, item.second.text) for item in found.items
    ] == [
        (2, "yes", "yes", "no"),
        (4, "yes", "no", "yes"),
    ]
    assert found.differ == 2 and found.n == 5


def test_few_examples_are_judged_by_the_share_of_right_draws(tmp_path: Path) -> None:
    gold = np.array([0, 1, 1])
    a, b = (
        np.array([[0, 0, -1], [1, 1, 0], [1, 1, 1]]),
        np.array([[0, 1, -1], [0, 0, 0], [1, 1, 1]]),
    )
    runs = [
        classed(tmp_path, name, said, gold, "MR-16", "fewshot")
        for name, said in (("one", a), ("two", b))
    ]
    (found,) = disagreements(
        *((run, tmp_path / run.run_id) for run in runs), texts=lambda key, gold: None
    )  # type: ignore[arg-type]
    assert [(item.number, round(item.apart, 3)) for item in found.items] == [(2, 66.667), (1, 50.0)]
    assert found.items[0].first.text == "yes x2, no x1" and found.items[0].second.text == "no x3"


def test_the_sentences_are_those_of_the_data(shared: Path, tmp_path: Path) -> None:
    from bench.data.sets import DataFolder, read_sts

    pairs = read_sts(DataFolder(shared / "data"), "STS-B", text="tokenised")
    made = []
    for name, seed in (("one", 3), ("two", 4)):
        score = Score(
            suite="sts",
            task="STS-B",
            protocol="senteval-all/1",
            metric="spearman",
            value=1.0,
            n=len(pairs),
            text="tokenised",
        )
        run = record(name, 1, scores=(score,))
        RunsFolder(tmp_path).write(run)
        said = np.random.default_rng(seed).normal(size=len(pairs))
        RunsFolder(tmp_path).write_predictions(
            run.run_id, "STS-B", "tokenised", {"prediction": said, "gold": pairs.gold}
        )
        made.append(run)
    arguments = [
        "compare",
        made[0].run_id,
        made[1].run_id,
        "--runs",
        tmp_path,
        "--items",
        "--top",
        "3",
    ]
    done = bench(*arguments, "--data", shared / "data", COLUMNS="80")
    assert done.exit_code == 0 and max(map(len, done.stdout.splitlines())) <= 80
    content = json.loads(bench(*arguments, "--data", shared / "data", "--format", "json").stdout)
    for item in content["tasks"][0]["items"]:
        i = item["number"] - 1
        assert (
            item["texts"] == [pairs.sentences1[i], pairs.sentences2[i]]
            and item["gold"]["value"] == pairs.gold[i]
        )
        assert " ".join(pairs.sentences1[i].split()) in " ".join(done.stdout.split())
    without = bench(*arguments, "--data", tmp_path / "nowhere")
    assert without.exit_code == 0 and "no texts: " in without.stdout


def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    one, two = (sts_run(tmp_path, name, 1, 0.5, tasks=("STS12",)) for name in ("one", "two"))
    other = sts_run(tmp_path, "three", 1, 0.5, tasks=("STS12",), n=40)
    runs = ("--runs", tmp_path, "--items")
    assert "needs two runs, and these are 3" in error_line(bench("compare", *runs))
    assert "unknown task 'STS13'" in error_line(
        bench("compare", one.run_id, two.run_id, *runs, "--task", "STS13")
    )
    assert "different" in error_line(bench("compare", one.run_id, other.run_id, *runs))
    assert "--items has no --format csv" in error_line(
        bench("compare", one.run_id, two.run_id, *runs, "--format", "csv")
    )
    RunsFolder(tmp_path).predictions_path(two.run_id, "STS12", "tokenised").unlink()
    assert "has no predictions of STS12" in error_line(
        bench("compare", one.run_id, two.run_id, *runs)
    )
