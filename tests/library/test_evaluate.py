"""``bench.evaluate`` of objects, and its neighbours: the score, the record and the tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bags import Bag, bag
from evaluated import CHECK

import bench
from bench.base.errors import UnknownName
from bench.method.answers import PROBE


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluated")


@pytest.fixture(scope="module")
def result(runs: Path) -> Any:
    return bench.evaluate(Bag(), name="words", runs=runs, **CHECK)


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


@pytest.mark.usefixtures("short_check")
@pytest.mark.parametrize("changed", ["digits", "tiny"])
def test_a_changed_object_gets_scores_of_its_own(changed: str, tmp_path: Path) -> None:
    """Although it answers the fixed sentences as before, or with vectors as short."""

    def first(some: list[str]) -> np.ndarray:
        return bag(some) * (1e-6 if changed == "tiny" else 1.0)

    def second(some: list[str]) -> np.ndarray:
        if changed == "tiny":
            return 1e-6 * bag([text[::-1] for text in some])
        numbered = [any(map(str.isdigit, text)) and text not in PROBE for text in some]
        return bag(["a number" if one else text for one, text in zip(numbered, some, strict=True)])

    results = [
        bench.evaluate(encode, name="mine", runs=tmp_path, **CHECK)
        for encode in (first, second, first, second)
    ]
    values = [result["captions"].value for result in results]
    assert values[0] == values[2] != values[1] == values[3]
    assert [result.run_id for result in results[:2]] == [result.run_id for result in results[2:]]
    fresh = bench.evaluate(second, name="mine", runs=tmp_path / "fresh", **CHECK)
    assert values[1] == fresh["captions"].value


@pytest.mark.usefixtures("short_check")
def test_an_object_whose_vectors_are_gone_is_said_to_be_unchecked(tmp_path: Path) -> None:
    done = bench.evaluate(bag, name="mine", runs=tmp_path, **CHECK)
    shutil.rmtree(done.folder / "vectors")
    with pytest.warns(UserWarning, match="fresh=True scores it again"):
        assert bench.evaluate(bag, name="mine", runs=tmp_path, **CHECK).run_id == done.run_id


def test_tensors_lists_and_half_precision_are_vectors_too(result: Any, tmp_path: Path) -> None:
    for encode in (
        lambda some: bag(some).tolist(),
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
