"""Hard negatives in every form in which people have them: they are all read, or the file is
refused; no column is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from bench.base.errors import CorpusError
from bench.data.corpora import Corpus, open_corpus_file

PAIR = {"anchor": "a", "positive": "b"}
Make = Callable[[str, Any], Corpus]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes text, records as JSON lines, or the columns of a Parquet file, and opens it."""

    def make(name: str, content: Any) -> Corpus:
        path = tmp_path / name
        if name.endswith(".parquet"):
            pyarrow.parquet.write_table(pyarrow.table(content), path)
        elif isinstance(content, str):
            path.write_bytes(content.encode())
        else:
            path.write_text("".join(json.dumps(record) + "\n" for record in content))
        return open_corpus_file(path, cache=tmp_path / "cache")

    return make


SAME = {
    "order.jsonl": [{"negative_10": "d", "negative_2": "c"} | PAIR],
    "numbered.csv": "anchor,positive,negative_1,negative_2\na,b,c,d\n",
    "pandas.csv": "anchor,positive,negative,negative.1\na,b,c,d\n",
    "array.parquet": {
        "anchor": ["a"],
        "positive": ["b"],
        "negatives": [np.array(["c", "d"], dtype=object)],
    },
}


@pytest.mark.parametrize("name", SAME)
def test_several_hard_negatives_are_all_read(make: Make, name: str) -> None:
    corpus = make(name, SAME[name])
    assert corpus.columns == ("sent0", "sent1", "hard_neg", "hard_neg_2")
    assert corpus.kind == "n-tuples" and corpus.unread == ()
    assert list(corpus.rows()) == [("a", "b", "c", "d")]
    assert [row[0] for row in corpus.only("all").rows()] == ["a", "b", "c", "d"]
    assert list(corpus.only("hard_neg_2").rows()) == [("d",)]


def test_a_list_of_one_is_a_triplet_and_of_five_has_seven_columns(make: Make) -> None:
    one = make("one.jsonl", [PAIR | {"negatives": ["c"]}])
    assert (one.kind, list(one.rows())) == ("triplets", [("a", "b", "c")])
    five = make("five.jsonl", [PAIR | {"negatives": list("cdefg")}])
    assert (five.kind, len(five.columns), five.columns[-1]) == ("n-tuples", 7, "hard_neg_5")


def test_unused_columns_of_a_file_are_named(make: Make) -> None:
    record = PAIR | {"id": 3, "meta": {"negatives": []}, "neg_scores": [0.1]}
    assert make("a.jsonl", [record]).unread == ("id", "meta", "neg_scores")
    index = {"text": ["a"], "split": ["x"], "__index_level_0__": [0]}
    assert make("a.parquet", index).unread == ("split",)


TWO, ONE = PAIR | {"negatives": ["c", "d"]}, PAIR | {"negatives": ["c"]}
REFUSED = [
    ("a.jsonl", [TWO, PAIR | {"negatives": None}], "line 2: 'negatives' is null, expected a list"),
    ("a.jsonl", [PAIR | {"negatives": []}], "line 1: 'negatives' is an empty list"),
    ("a.jsonl", [PAIR | {"negatives": [1, 2]}], "'negatives' is 1, expected a string or null"),
    ("a.jsonl", [TWO | {"negative": "e"}], "two columns for hard_neg: 'negatives' and 'negative'"),
    ("a.csv", "anchor,positive,negatives\na,b,\"['c', 'd']\"\n", "expected a list of texts"),
]


@pytest.mark.parametrize(("name", "content", "says"), REFUSED)
def test_input_that_would_be_ignored_is_refused(
    make: Make, name: str, content: Any, says: str
) -> None:
    with pytest.raises(CorpusError) as caught:
        list(make(name, content).rows())
    assert says in caught.value.message
    assert "\n" not in caught.value.message + (caught.value.hint or "")


def test_whole_numbers_as_pandas_writes_them_have_a_hint_of_their_own(make: Make) -> None:
    with pytest.raises(CorpusError) as caught:
        list(make("a.jsonl", [PAIR | {"label": 1.0}]).rows())
    hint = caught.value.hint or ""
    assert "astype({'label': int})" in hint and "name the column 'score'" in hint
