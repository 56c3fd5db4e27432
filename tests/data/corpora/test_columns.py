"""Labels, scores, one column of a wider corpus, and text that is kept as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.base.errors import CorpusError
from bench.data.corpora import Corpus, open_corpus_file
from bench.data.corpora.token_cache import as_text, tokenise
from bench.run.corpora import describe_corpus


def corpus(tmp_path: Path, name: str, content: str) -> Corpus:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return open_corpus_file(path, cache=tmp_path / "cache")


CSV = "sent0,sent1,label\na b,c,entailment\nd,e f,2\ng,h,Neutral\n"
JSON = (
    '{"premise": "a b", "hypothesis": "c", "label": 0}\n'
    '{"premise": "d", "hypothesis": "e f", "label": 2}\n'
)


def test_labels_are_words_or_the_hubs_numbers(tmp_path: Path) -> None:
    made = corpus(tmp_path, "l.csv", CSV)
    assert (made.columns, made.kind) == (("sent0", "sent1", "label"), "labelled")
    wanted = [("a b", "c", "entailment"), ("d", "e f", "contradiction"), ("g", "h", "neutral")]
    assert list(made.rows()) == wanted
    wanted = [("a b", "c", "entailment"), ("d", "e f", "contradiction")]
    assert list(corpus(tmp_path, "l.jsonl", JSON).rows()) == wanted


def test_a_row_without_a_gold_label_is_named(tmp_path: Path) -> None:
    made = corpus(tmp_path, "l.csv", "sent0,sent1,label\na,b,0\nc,d,-1\n")
    with pytest.raises(
        CorpusError,
        match="line 3 has the label '-1'; expected entailment \\(0\\), neutral \\(1\\)",
    ):
        len(made)


def test_labels_are_tokenised_as_their_number(tmp_path: Path) -> None:
    made = corpus(tmp_path, "l.csv", CSV)
    ready = tokenise(
        made, lambda texts: [[7] * len(t) for t in texts], "sevens", 500, cache=tmp_path / "cache"
    )
    assert [ids.tolist() for ids in ready.column(2).rows([0, 1, 2])] == [[0], [2], [1]]
    assert [ids.tolist() for ids in ready.column(0).rows([0, 1])] == [[7, 7, 7], [7]]


GRADED = {
    "g.csv": 'sentence1,sentence2,score\na b,c,0.25\n"d, e",f,1\n',
    "g.jsonl": '{"sentence1": "a b", "sentence2": "c", "score": 0.25, "genre": "x"}\n'
    '{"sentence1": "d, e", "sentence2": "f", "score": "1"}\n',
}


def same_graded(made: Corpus, cache: Path) -> None:
    assert (made.columns, made.kind) == (("sent0", "sent1", "score"), "graded")
    assert list(made.rows()) == [("a b", "c", "0.25"), ("d, e", "f", "1.0")]
    ready = tokenise(made, lambda texts: [[7] * len(t) for t in texts], "7", 8, cache=cache)
    assert [row.tolist() for row in ready.column(2).rows([0, 1])] == [[0.25], [1.0]]
    again = tokenise(made, lambda texts: [[0]], "7", 8, cache=cache)
    assert [row.tolist() for row in again.column(2).rows([1, 0])] == [[1.0], [0.25]], (
        "from the cache"
    )
    assert [row[0] for row in made.only("all").rows()] == ["a b", "c", "d, e", "f"]


@pytest.mark.parametrize("name", GRADED)
def test_scores_are_numbers(tmp_path: Path, name: str) -> None:
    same_graded(corpus(tmp_path, name, GRADED[name]), tmp_path / "cache")


def parquet(tmp_path: Path, **columns: list[object]) -> Corpus:
    path = tmp_path / "g.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=1)
    return open_corpus_file(path, cache=tmp_path / "cache")


def test_a_parquet_file_is_a_corpus(tmp_path: Path) -> None:
    columns = {"sentence1": ["a b", "d, e"], "sentence2": ["c", "f"], "score": [0.25, 1.0]}
    made = parquet(tmp_path, split=["x", None], **columns)
    same_graded(made, tmp_path / "cache")
    assert list(made.unchanged_rows()) == list(made.rows())
    sha256 = made.sha256
    again = parquet(tmp_path, **(columns | {"score": [0.25, 0.5]}))
    assert again.sha256 != sha256 and len(again) == 2


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"text": [b"a", b"\xff"]}, "row 2: 'text' has bytes that are not UTF-8 text"),
        ({"sent0": ["a"], "sent1": ["b"], "score": [None]}, "row 1 has the score None"),
    ],
)
def test_a_parquet_file_that_is_no_corpus_is_one_line(tmp_path, columns, problem) -> None:
    with pytest.raises(CorpusError, match=problem) as caught:
        len(parquet(tmp_path, **columns))
    assert "\n" not in caught.value.message


def test_texts_that_are_stored_as_bytes_are_decoded(tmp_path: Path) -> None:
    made = parquet(tmp_path, text=["é".encode(), None, b"b"])
    assert list(made.rows()) == [("é",), (" ",), ("b",)]


def test_a_row_without_a_score_is_named(tmp_path: Path) -> None:
    made = corpus(tmp_path, "g.tsv", "sent0\tsent1\tscore\na\tb\t0\nc\td\t1,5\n")
    with pytest.raises(
        CorpusError, match="line 3 has the score '1,5'; expected a number"
    ) as caught:
        len(made)
    assert "decimal point: 1.5" in str(caught.value.hint)


def test_one_column_of_a_wider_corpus(tmp_path: Path) -> None:
    made = corpus(tmp_path, "t.csv", "sent0,sent1,hard_neg\na,b,c\nd,e,f\n")
    assert list(made.only("sent1").rows()) == [("b",), ("e",)]
    every = made.only("all")
    assert (every.columns, every.kind, len(every)) == (("sentence",), "sentences", 6)
    assert [row[0] for row in every.rows()] == ["a", "b", "c", "d", "e", "f"]
    assert (len(made), len(made.only("sent0"))) == (2, 2)  # each keeps its own survey
    assert made.only("sent0").sha256 == made.sha256
    with pytest.raises(CorpusError, match="has no column 'sentence': sent0, sent1, hard_neg"):
        made.only("sentence")


LINE = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r\0\ufeff"), max_size=40
).filter(str.strip)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINE, min_size=1, max_size=12))
def test_text_comes_back_letter_by_letter(tmp_path: Path, lines: list[str]) -> None:
    made = corpus(tmp_path, "t.txt", "".join(line + "\n" for line in lines))
    ready = as_text(made, tmp_path / "cache")
    assert ready.column(0).rows(np.arange(len(lines))) == lines


def test_texts_that_a_column_had_before_are_counted_and_a_plan_says_so(tmp_path: Path) -> None:
    made = corpus(tmp_path, "t.csv", "sent0,sent1,score\na,b,1\na,c,1\na,b,0\nd,a,1\n")
    assert made.repeated == {"sent0": 2, "sent1": 1}
    (note,) = describe_corpus(made)
    assert "sent0 2, sent1 1" in note and "duplicates=drop" in note
    assert describe_corpus(made.only("sent1"))[0].startswith("t.csv: texts")
    assert describe_corpus(corpus(tmp_path, "u.txt", "a\nb\n")) == []
