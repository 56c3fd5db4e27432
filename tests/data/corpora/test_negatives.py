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
    "list.jsonl": [PAIR | {"negatives": ["c", "d"]}],
    "hard.jsonl": [PAIR | {"hard_negatives": ["c", "d"]}],
    "singular.jsonl": [PAIR | {"negative": ["c", "d"]}],
    "numbered.jsonl": [PAIR | {"negative_1": "c", "negative_2": "d"}],
    "order.jsonl": [{"negative_10": "d", "negative_2": "c"} | PAIR],
    "short.jsonl": [PAIR | {"neg-1": "c", "neg-2": "d"}],
    "first.jsonl": [PAIR | {"hard_neg": "c", "hard_neg_2": "d"}],
    "bom.jsonl": '\ufeff{"anchor":"a","positive":"b","negatives":["c","d"]}',
    "numbered.csv": "anchor,positive,negative_1,negative_2\na,b,c,d\n",
    "pandas.csv": "anchor,positive,negative,negative.1\na,b,c,d\n",
    "numbered.tsv": "anchor\tpositive\tNegative 1\tNegative 2\na\tb\tc\td\n",
    "list.parquet": {"anchor": ["a"], "positive": ["b"], "negatives": [["c", "d"]]},
    "array.parquet": {
        "anchor": ["a"],
        "positive": ["b"],
        "negatives": [np.array(["c", "d"], dtype=object)],
    },
    "dots.parquet": {"anchor": ["a"], "positive": ["b"], "negative": ["c"], "negative.1": ["d"]},
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
    ("a.jsonl", [TWO, ONE], "line 2: 'negatives' has 1 text, line 1 has 2"),
    ("a.jsonl", [ONE, TWO], "line 2: 'negatives' has 2 texts, line 1 has 1"),
    ("a.jsonl", [TWO, PAIR], "line 2 has no 'negatives', but line 1 has"),
    ("a.jsonl", [TWO, PAIR | {"negatives": None}], "line 2: 'negatives' is null, expected a list"),
    ("a.jsonl", [PAIR | {"negatives": ["c", None]}], "a hard negative of 'negatives' is empty"),
    ("a.jsonl", [PAIR | {"negatives": []}], "line 1: 'negatives' is an empty list"),
    ("a.jsonl", [PAIR | {"negatives": None}], "'negatives' is null, expected a list of texts"),
    ("a.jsonl", [PAIR | {"negatives": "c"}], "'negatives' is \"c\", expected a list of texts"),
    ("a.jsonl", [PAIR | {"negatives": [1, 2]}], "'negatives' is 1, expected a string or null"),
    ("a.jsonl", [TWO | {"negative": "e"}], "two columns for hard_neg: 'negatives' and 'negative'"),
    ("a.jsonl", [TWO | {"negative_1": "e"}], "'negatives', a list, and 'negative_1'"),
    ("a.jsonl", [PAIR | {"neg_1": "c", "negative_1": "d"}], "two columns for hard_neg"),
    ("a.jsonl", [PAIR | {"negative_1": "c", "negative_2": None}], "'negative_2' is empty"),
    ("a.csv", "anchor,positive,negative_1,negative_2\na,b,c,\n", "line 2: a hard negative"),
    ("a.csv", "anchor,positive,negatives\na,b,\"['c', 'd']\"\n", "expected a list of texts"),
    ("a.jsonl", [PAIR, PAIR | {"hard_neg": "c"}], "line 2 has 'hard_neg', but line 1 has not"),
    ("a.jsonl", [PAIR, PAIR | {"label": 1}], "line 2 has 'label', but line 1 has not"),
    ("a.jsonl", [PAIR, PAIR | {"negatives": []}], "line 2 has 'negatives', but line 1 has not"),
    ("a.jsonl", [{"text": "a"}, {"text": "b", "sent1": "c"}], "line 2 has 'sent1'"),
    ("a.jsonl", [PAIR | {"scores": 0.5}], "the column 'scores' next to sent0, sent1"),
    ("a.jsonl", [PAIR | {"similarity_score": 0.5}], "'similarity_score' next to"),
    ("a.jsonl", [PAIR | {"positive_2": "x"}], "'positive_2' next to"),
    ("a.jsonl", [PAIR | {"labels": [1]}], "'labels' next to"),
    ("a.jsonl", [PAIR | {"sent0": "x"}], "two columns for sent0: 'anchor' and 'sent0'"),
    ("a.jsonl", '{"text": "a", "text": "b"}\n', "line 1 has the key 'text' twice"),
    ("a.csv", f"sent0,sent1,hard_neg{'9' * 5000}\na,b,c\n", "hard_neg9999"),
    ("a.csv", "sent0,sent1,hard_neg,hard_neg\na,b,c,d\n", "has the column 'hard_neg' twice"),
    ("a.tsv", "sent0\tsent1\tsent1\na\tb\tc\n", "has the column 'sent1' twice"),
    ("a.csv", "sent0,Sent0 ,sent1\na,b,c\n", "two columns for sent0"),
    ("a.csv", "text,sentence\na,b\n", "two columns for sentence: 'text' and 'sentence'"),
]


@pytest.mark.parametrize(("name", "content", "says"), REFUSED)
def test_input_that_would_be_ignored_is_refused(
    make: Make, name: str, content: Any, says: str
) -> None:
    with pytest.raises(CorpusError) as caught:
        list(make(name, content).rows())
    assert says in caught.value.message
    assert "\n" not in caught.value.message + (caught.value.hint or "")


def test_a_parquet_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    columns = [pyarrow.array([text]) for text in "abc"]
    table = pyarrow.Table.from_arrays(columns, names=["sent0", "sent1", "sent1"])
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match="has the column 'sent1' twice"):
        open_corpus_file(tmp_path / "a.parquet", cache=tmp_path)


def test_a_nul_in_a_list_is_found(make: Make) -> None:
    with pytest.raises(CorpusError, match="NUL"):
        make("a.parquet", {"anchor": ["a"], "positive": ["b"], "negatives": [["c", "d\0"]]})


@pytest.mark.parametrize("label", [0.0, 1.0, "0.0", "2.0"])
def test_whole_numbers_as_pandas_writes_them_have_a_hint_of_their_own(
    make: Make, label: object
) -> None:
    with pytest.raises(CorpusError) as caught:
        list(make("a.jsonl", [PAIR | {"label": label}]).rows())
    hint = caught.value.hint or ""
    assert "astype({'label': int})" in hint and "name the column 'score'" in hint


def test_the_index_of_pandas_has_a_hint_of_its_own(make: Make) -> None:
    with pytest.raises(CorpusError) as caught:
        make("a.csv", ",sent0,sent1\n0,a,b\n")
    assert "to_csv(..., index=False)" in (caught.value.hint or "")
