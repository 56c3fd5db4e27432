"""``bench.evaluate`` and its neighbours: what is scored, what is recorded, and what is said of what
is no model.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bags import Bag, bag
from commands import argv
from commands import bench as command

import bench
from bench.base.errors import BenchError, UnknownName
from bench.external.answers import PROBE

CHECK: dict[str, Any] = {"suites": ["check"], "progress": False, "device": "cpu"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluated")


@pytest.fixture(scope="module")
def result(runs: Path) -> Any:
    return bench.evaluate(Bag(), name="words", runs=runs, **CHECK)


def by_hand(encode: Callable[[list[str]], np.ndarray]) -> float:
    """Spearman of cosines x 100 on the built-in captions, by scipy."""
    from scipy.stats import spearmanr

    from bench.data.sets import DataFolder
    from bench.score.suites import suite

    (task,) = suite("check").tasks
    loaded: Any = task.load(DataFolder(None, offline=True), "any")
    data = loaded.data
    first, second, gold = (list(column) for column in (data.sentences1, data.sentences2, data.gold))
    a, b = encode(first).astype(float), encode(second).astype(float)
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return float(100 * spearmanr(cosines, gold).statistic)


def test_an_object_has_the_score_that_its_vectors_give(result: Any) -> None:
    assert result["captions"].value == pytest.approx(by_hand(bag), abs=1e-4)
    assert result.name == "words" and result.record.method == "object"
    assert result.record.backbone == "words"


def test_the_record_says_what_it_was_and_nothing_that_it_was_not(result: Any) -> None:
    about = result.model
    known = {"kind": "object", "class": "bags.Bag", "dimension": 48, "known": False}
    known |= {"identity": "answers", "normalised": False, "pooling": None}
    assert known.items() <= about.items()
    assert result.record.backbone != "builtin"
    made_by = json.loads((result.folder / "run.json").read_text())["provenance"]["backbone"]
    assert "builtin" not in json.dumps(made_by)
    assert result.record.provenance.command == "bench.evaluate(Bag, suites=['check'], name='words')"


def test_the_same_object_again_is_not_encoded_again_and_another_is_another_run(
    result: Any, runs: Path
) -> None:
    texts: list[str] = []

    class Counting(Bag):
        def encode(self, some: list[str]) -> np.ndarray:
            texts.extend(some)
            return bag(some)

    again = bench.evaluate(Counting(), name="words", runs=runs, **CHECK)
    assert again.run_id == result.run_id and len(texts) < 1200, (
        "a sample, to see that it is the same"
    )
    other = bench.evaluate(lambda some: bag(some, 24), name="words", runs=runs, **CHECK)
    assert other.run_id != result.run_id and other.model["kind"] == "function"


@pytest.mark.parametrize("changed", ["long", "digits", "tiny"])
def test_a_changed_object_gets_scores_of_its_own(changed: str, tmp_path: Path) -> None:
    """Although it answers the fixed sentences as before, or with vectors as short."""

    def first(some: list[str]) -> np.ndarray:
        return bag(some) * (1e-6 if changed == "tiny" else 1.0)

    def second(some: list[str]) -> np.ndarray:
        if changed == "tiny":
            return 1e-6 * bag([text[::-1] for text in some])
        texts = {
            "long": [
                " ".join(text.split()[:12]) if len(text.split()) < 27 else text for text in some
            ],
            "digits": [
                "a number" if any(map(str.isdigit, text)) and text not in PROBE else text
                for text in some
            ],
        }[changed]
        return bag([text if text in PROBE else new for text, new in zip(some, texts, strict=True)])

    results = [
        bench.evaluate(encode, name="mine", runs=tmp_path, **CHECK)
        for encode in (first, second, first, second)
    ]
    values = [result["captions"].value for result in results]
    assert values[0] == values[2] != values[1] == values[3]
    assert [result.run_id for result in results[:2]] == [result.run_id for result in results[2:]]
    fresh = bench.evaluate(second, name="mine", runs=tmp_path / "fresh", **CHECK)
    assert values[1] == fresh["captions"].value


def test_an_object_whose_vectors_are_gone_is_said_to_be_unchecked(tmp_path: Path) -> None:
    done = bench.evaluate(bag, name="mine", runs=tmp_path, **CHECK)
    shutil.rmtree(done.folder / "vectors")
    with pytest.warns(UserWarning, match="fresh=True scores it again"):
        assert bench.evaluate(bag, name="mine", runs=tmp_path, **CHECK).run_id == done.run_id


def test_tensors_lists_and_half_precision_are_vectors_too(result: Any, tmp_path: Path) -> None:
    for encode in (
        lambda some: bag(some).tolist(),
        lambda some: torch.tensor(bag(some)),
        lambda some: [torch.tensor(row) for row in bag(some)],
    ):
        assert bench.evaluate(encode, runs=tmp_path, **CHECK)["captions"].value == pytest.approx(
            result["captions"].value, abs=1e-4
        )
    half = bench.evaluate(lambda some: torch.tensor(bag(some)).bfloat16(), runs=tmp_path, **CHECK)
    assert half["captions"].value == pytest.approx(result["captions"].value, abs=0.5)


def test_tables_frames_and_html(result: Any, runs: Path) -> None:
    frame = result.frame()
    row = (frame["task"][0], frame["value"][0], frame["name"][0], len(frame))
    assert row == ("captions", result["captions"].value, "words", 1)
    shown, table = f"{result['captions'].value:.2f}", result.table()
    for text in (str(table), table._repr_html_(), repr(result), table.markdown()):
        assert shown in text
    assert result["Captions"] == result["check/captions"] == result["captions"]
    with pytest.raises(UnknownName, match="unknown task 'caption'"):
        result["caption"]
    every = bench.load_runs(runs)
    assert every["words"].run_id.startswith("object-words")
    assert every[result.run_id].record == result.record
    assert set(every.frame()["run"]) == {one.run_id for one in every} and len(every[:1]) == 1


def test_compare_takes_results_ids_and_folders(result: Any, runs: Path) -> None:
    worse = bench.evaluate(lambda some: bag(some, 4), name="four", runs=runs, **CHECK)
    for what in ([result, worse], [result.run_id, worse.folder], bench.load_runs(runs)):
        found = bench.compare_runs(what, baseline=result, runs=runs)
        assert found.tables[0].baseline is not None and found.tables[0].baseline.startswith("words")
    frame = bench.compare_runs([result, worse], baseline=result).frame().set_index("backbone")
    assert frame.loc["four", "verdict"] == "worse" and frame.loc["four", "difference_ci_high"] < 0
    with pytest.raises(UnknownName, match="unknown baseline 'simcse'"):
        bench.compare_runs([result, worse], baseline="simcse")
    with pytest.raises(UnknownName):
        bench.compare_runs(["nosuch"], runs=runs)


def test_the_predictions_of_a_task_give_its_score(result: Any) -> None:
    from scipy.stats import spearmanr

    arrays = result.predictions("captions")
    rank = 100 * spearmanr(arrays["prediction"], arrays["gold"]).statistic
    assert rank == pytest.approx(result["captions"].value, abs=1e-4)
    with pytest.raises(UnknownName, match="unknown task 'nothing'"):
        result.predictions("nothing")


# --- prompts ---


def test_a_prefix_and_a_template_stand_around_every_sentence_and_in_the_record(
    tmp_path: Path,
) -> None:
    got: list[str] = []

    def keep(some: list[str]) -> np.ndarray:
        got.extend(some)
        return bag(some)

    before = bench.evaluate(keep, prefix="query: ", runs=tmp_path, **CHECK)
    assert all(one.startswith("query: ") for one in got[100:])
    assert before.model["prompt"] == before.record.recipe["prompt"].value == "query: "
    got.clear()
    around = bench.evaluate(keep, prefix='This sentence : "[X]" means', runs=tmp_path, **CHECK)
    assert all(one.startswith('This sentence : "') and one.endswith('" means') for one in got[100:])
    value = by_hand(lambda some: bag([f'This sentence : "{one}" means' for one in some]))
    assert around["captions"].value == pytest.approx(value, abs=1e-4)
    assert before.run_id != around.run_id


def test_a_task_has_its_own_prompt_in_the_place_of_the_others(tmp_path: Path) -> None:
    prompts = {"captions": "caption : "}
    own = bench.evaluate(bag, prefix="query: ", prompts=prompts, runs=tmp_path, **CHECK)
    value = by_hand(lambda some: bag([f"caption : {one}" for one in some]))
    assert own["captions"].value == pytest.approx(value, abs=1e-4)
    of_suite = bench.evaluate(bag, prompts={"check": "caption : "}, runs=tmp_path, **CHECK)
    assert of_suite["captions"].value == own["captions"].value
    with pytest.raises(UnknownName, match="unknown task 'STS12'"):
        bench.evaluate(bag, prompts={"STS12": "x"}, runs=tmp_path, **CHECK)


@pytest.mark.slow
def test_two_tasks_with_two_prompts_have_two_vectors_of_one_sentence(
    tmp_path: Path, shared: Path
) -> None:
    sts = {"suites": ["sts"], "data": shared / "data", "runs": tmp_path, "progress": False}
    both = bench.evaluate(bag, prefix="a : ", prompts={"STS-B": "b : "}, **sts)
    plain = bench.evaluate(bag, prefix="b : ", **sts)
    assert both["STS-B"].value == plain["STS-B"].value, "it shares sentences with other years"
    assert both["STS12"].value != plain["STS12"].value


# --- bad input ---

WRONG: list[Any] = [
    object(),
    Bag,
    3,
    lambda some: bag(some)[:-1],
    lambda some: bag(some)[0],
    lambda some: bag(some) * np.nan,
    lambda some: some,
    lambda some: [["a", "b"] for _ in some],
    lambda some: [[0.0] * (1 + i % 2) for i in range(len(some))],
    lambda some: None,
    lambda some: 1 / 0,
    "/no/such/folder",
    "vectors:/no/such.npz",
    {},
]
UNKNOWN: list[dict[str, Any]] = [
    {"suites": ["stss"]},
    {"text": "loud"},
    {"settings": {"pooling": "mean"}},
    {"server": {"model": "x"}},
    {"name": "builtin"},
]


def never(some: list[str]) -> np.ndarray:
    raise AssertionError


def test_what_is_no_model_is_one_line_and_nothing_is_written(tmp_path: Path, snapshot: Any) -> None:
    said = []
    for model, options in [*((one, {}) for one in WRONG), *((never, one) for one in UNKNOWN)]:
        with pytest.raises(BenchError) as caught:
            bench.evaluate(model, **{**CHECK, "runs": tmp_path / "runs", **options})
        said.append(caught.value.message.partition(", at ")[0])
        assert "\n" not in said[-1] and not (tmp_path / "runs").exists()
    assert said == snapshot


def test_a_dimension_that_changes_later_is_told_of_and_the_next_try_goes_on(tmp_path: Path) -> None:
    calls: list[int] = []

    def changes(some: list[str]) -> np.ndarray:
        calls.append(len(some))
        return bag(some, 48 if len(calls) < 5 else 47)

    with pytest.raises(BenchError, match="changes returned 47 dimensions, 48 before"):
        bench.evaluate(changes, runs=tmp_path, **CHECK)
    (failed,) = bench.load_runs(tmp_path)
    assert failed.record.status == "failed" and not failed.scores
    with pytest.raises(BenchError, match="not finished"):
        bench.compare_runs([failed])


# --- folders and runs ---


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


@pytest.mark.slow
def test_train_is_bench_run(tiny: str, tmp_path: Path) -> None:
    from models import sentences

    corpus = tmp_path / "text.txt"
    corpus.write_text("\n".join(sentences(60, seed=8)) + "\n")
    small = {"settings": {"batch_size": 8, "eval_steps": 3}, "runs": tmp_path / "r", **CHECK}
    results = bench.train("simcse", backbone=tiny, corpus=corpus, seeds=[1, 2], **small)
    assert [one.record.seed for one in results] == [1, 2]
    assert all(one.record.training for one in results)
    (row,) = results.table().tables[0].rows
    assert len(row.runs) == 2
    encoder = bench.load_run(results[0], device="cpu")
    assert encoder.encode(["a"]).shape == (1, 32)
    with pytest.raises(UnknownName, match="unknown method 'simsce'"):
        bench.train("simsce")
