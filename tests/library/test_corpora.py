"""Training text of a Python program: its form in the cache, and the errors for what is no text."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from bench.base.errors import BenchError
from bench.data.corpora import open_corpus_file
from bench.library.corpora import corpus_place
from bench.library.terms import in_python_terms

PAIRS = [("a man plays", "a person plays"), ("a dog", "an animal")]
ROWS = [{"sent0": one, "sent1": two} for one, two in PAIRS]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def read(corpus: Any) -> tuple[str, list[tuple[str, ...]]]:
    place = corpus_place(corpus)
    assert place is not None
    opened = open_corpus_file(place)
    return opened.kind, list(opened.rows())


def test_a_line_break_is_part_of_its_sentence() -> None:
    kind, rows = read(["first\nsecond", "third"])
    assert kind == "sentences" and rows == [("first\nsecond",), ("third",)]


def test_hard_negatives_labels_and_scores() -> None:
    assert read([("a", "b", "c")]) == ("triplets", [("a", "b", "c")])
    assert read([("a", "b", "c", "d")])[0] == "n-tuples"
    assert read([{"sent0": "a", "sent1": "b", "score": 0.5}])[1] == [("a", "b", "0.5")]
    assert read([{"premise": "a", "hypothesis": "b", "label": 0}])[0] == "labelled"


def test_a_dataset_and_its_columns() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_list([{**row, "id": 7} for row in ROWS])
    function = in_python_terms(read)
    with pytest.warns(UserWarning, match="not read: id") as caught:
        assert function(dataset) == ("pairs", PAIRS)
    assert caught[0].filename == __file__, "of the line that calls the function of bench"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(dataset.remove_columns("id")) == ("pairs", PAIRS)
        assert read(dataset["sent0"])[0] == "sentences"
        assert read(dataset.remove_columns("id").to_iterable_dataset()) == ("pairs", PAIRS)
    whole = datasets.DatasetDict(train=dataset, test=dataset)
    with pytest.raises(BenchError, match=r"splits train and test .*corpus=dataset\['train'\]"):
        corpus_place(whole)


WRONG: dict[str, tuple[Any, str]] = {
    "bytes": ([b"a"], "row 1 is b'a'"),
    "a score without a name": ([("a", "b", 0.5)], "labels and scores need their names"),
    "unknown columns": ([{"question": "a"}], "the columns 'question'"),
    "columns with numbers": ([{0: "a", 1: "b"}], "the columns '0'"),
    "a missing cell": ([*ROWS, {"sent0": "a"}], "row 3 has no 'sent1'"),
    "columns of two lengths": ({"sent0": ["a"], "sent1": []}, "sent0 1, sent1 0"),
    "a column that is a text": ({"sent0": "abc"}, "the column 'sent0' is 'abc'"),
    "half a character": (["a", "b\ud83d"], "row 2 has half of a character"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_values_than_training_text_are_refused_in_one_line(case: str, cache: Path) -> None:
    corpus, said = WRONG[case]
    with pytest.raises(BenchError) as caught:
        corpus_place(corpus)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert not cache.exists()


def test_a_list_of_files_is_not_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(BenchError, match="these are names of files: a.txt"):
        corpus_place(["a.txt"])
    assert read(["a.txt", "a sentence"])[0] == "sentences"


def test_paths_in_a_list_are_several_files(tmp_path: Path) -> None:
    assert corpus_place([tmp_path / "a.txt", Path("b.txt")]) == (str(tmp_path / "a.txt"), "b.txt")
    assert corpus_place("pairs.csv:question,answer") == "pairs.csv:question,answer"
    with pytest.raises(BenchError, match="row 2 is 'b.txt'; row 1 is a Path"):
        corpus_place([tmp_path / "a.txt", "b.txt"])


def test_numbers_of_numpy_are_numbers() -> None:
    import numpy as np

    row = {"sent0": np.str_("a"), "sent1": "b", "score": np.float32(0.5)}
    place = corpus_place([row])
    assert isinstance(place, str)
    assert json.loads(Path(place).read_text())["score"] == "0.5"


def test_what_is_read_once_in_its_order_is_a_corpus() -> None:
    texts = {"a": 1, "b": 2}
    assert corpus_place(iter(["a", "b"])) == corpus_place(["a", "b"]) == corpus_place(texts.keys())
