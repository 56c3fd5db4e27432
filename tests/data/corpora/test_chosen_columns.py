"""Columns of a file that a user named; several files; folders of ``save_to_disk``."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from bench.base.errors import CorpusError
from bench.data.corpora import Corpus, open_corpus_file
from bench.data.corpora.joined import JoinedCorpus
from bench.data.corpora.token_cache import tokenise

datasets.disable_progress_bars()
ROWS = [
    {"id": "1", "question": "a b", "answer": "c", "rating": "0.5"},
    {"id": "2", "question": "d", "answer": "e, f", "rating": "1"},
]
HEAD = list(ROWS[0])


def csv_text(separator: str) -> str:
    lines = [separator.join(HEAD)]
    for row in ROWS:
        cells = [f'"{cell}"' if "," in cell and separator == "," else cell for cell in row.values()]
        lines.append(separator.join(cells))
    return "\n".join(lines) + "\n"


def write(folder: Path, name: str) -> Path:
    """The rows in the format of the name."""
    path = folder / name
    if name == "saved":
        datasets.Dataset.from_list(ROWS).save_to_disk(path)
    elif name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif ".jsonl" in name:
        content = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    else:
        path.write_text(csv_text("\t" if ".tsv" in name else ","), encoding="utf-8")
    return path


FORMATS = ["r.csv", "r.jsonl.gz", "saved"]


def opened(path: Path, *columns: str) -> Corpus:
    return open_corpus_file(path, cache=path.parent / "cache", columns=columns)


@pytest.mark.parametrize("name", FORMATS)
def test_named_columns_are_read_in_every_format(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    one = opened(path, "answer")
    assert (one.columns, list(one.rows())) == (("sentence",), [("c",), ("e, f",)])
    pairs = opened(path, "answer", "question")
    assert (pairs.columns, pairs.name) == (("sent0", "sent1"), f"{name}:answer,question")
    assert list(pairs.unchanged_rows()) == [("c", "a b"), ("e, f", "d")]
    graded = opened(path, "question", "answer", "rating=score")
    assert (graded.kind, len(graded)) == ("graded", 2)
    assert list(graded.rows()) == [("a b", "c", "0.5"), ("d", "e, f", "1.0")]
    assert list(graded.only("all").rows()) == [("a b",), ("c",), ("d",), ("e, f",)]


def test_a_missing_column_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    path = write(tmp_path, "r.csv")
    with pytest.raises(
        CorpusError, match="has no column 'query'; it has id, question, answer and rating"
    ):
        opened(path, "query", "answer")


def test_numbers_are_no_text_unless_the_user_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, "r.csv")
    for columns in (("question", "answer", "rating"), ("rating",), ("id", "answer")):
        with pytest.raises(CorpusError, match="would be read as a text, and its first row has"):
            opened(path, *columns)
    assert list(opened(path, "id=sentence").rows()) == [("1",), ("2",)]


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
def test_the_columns_count_in_the_hash_and_the_name_and_the_packing_do_not(
    tmp_path: Path, name: str
) -> None:
    path = write(tmp_path, name)
    pairs, turned = opened(path, "question", "answer"), opened(path, "answer", "question")
    one = opened(path, "question")
    assert len({pairs.sha256, turned.sha256, one.sha256, pairs.content_sha256}) == 4
    assert pairs.content_sha256 == turned.content_sha256 == one.content_sha256
    content = path.read_bytes()
    assert pairs.content_sha256 == hashlib.sha256(content).hexdigest()
    other = tmp_path / f"other{''.join(path.suffixes)}"
    other.write_bytes(path.read_bytes())
    assert opened(other, "question", "answer").sha256 == pairs.sha256
    assert opened(path, "question=sent0", "answer=sent1").sha256 == pairs.sha256
    if name == "r.jsonl":
        assert opened(write(tmp_path, "r.jsonl.gz"), "question").sha256 == one.sha256


def test_naming_the_columns_that_are_read_anyway_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a\nb\n", encoding="utf-8")
    plain = opened(tmp_path / "t.txt")
    assert opened(tmp_path / "t.txt", "text").sha256 == plain.sha256
    assert opened(tmp_path / "t.txt", "text").name == "t.txt"
    rows = [{"anchor": "a", "positive": "b", "negatives": ["c", "d"], "id": 1}]
    (tmp_path / "n.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    plain = opened(tmp_path / "n.jsonl")
    same = opened(tmp_path / "n.jsonl", "anchor", "positive", "negatives")
    assert (same.sha256, same.columns) == (plain.sha256, plain.columns)
    fewer = opened(tmp_path / "n.jsonl", "anchor", "positive")
    assert (fewer.kind, list(fewer.rows())) == ("pairs", [("a", "b")])
    assert fewer.sha256 != plain.sha256


def test_a_changed_file_is_not_taken_for_the_surveyed_one(tmp_path: Path) -> None:
    path = write(tmp_path, "r.csv")
    corpus = opened(path, "question")
    assert len(corpus) == 2
    path.write_text(path.read_text(encoding="utf-8") + "3,g,h,1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="changed while it was being read"):
        list(corpus.unchanged_rows())


def text(folder: Path, name: str, *lines: str) -> Corpus:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return opened(folder / name)


def test_several_texts_are_read_one_after_the_other(tmp_path: Path) -> None:
    a, b = text(tmp_path, "a.txt", "x", "y"), text(tmp_path, "b.txt", "y")
    questions = opened(write(tmp_path, "r.csv"), "question")
    whole = JoinedCorpus([a, b, questions])
    rows = [("x",), ("y",), ("y",), ("a b",), ("d",)]
    assert list(whole.rows()) == list(whole.unchanged_rows()) == rows
    assert (len(whole), whole.columns, whole.kind) == (5, ("sentence",), "sentences")
    assert whole.name == "a.txt,b.txt,r.csv:question"
    assert JoinedCorpus([a, b, a, b, a]).name == "a.txt,b.txt,a.txt and 2 more"
    ready = tokenise(
        whole, lambda texts: [[len(t)] for t in texts], "lengths", 9, cache=tmp_path / "cache"
    )
    assert [ids.tolist() for ids in ready.column(0).ids(np.arange(5))] == [[1], [1], [1], [3], [1]]


def test_content_and_order_of_several_texts_count(tmp_path: Path) -> None:
    a, b = text(tmp_path, "a.txt", "x"), text(tmp_path, "b.txt", "y")
    same = text(tmp_path, "c.txt", "x")
    hashes = [JoinedCorpus(parts).sha256 for parts in ([a, b], [b, a], [a, a], [a, b, a])]
    assert len({*hashes, a.sha256}) == 5
    assert JoinedCorpus([same, b]).sha256 == hashes[0]
    as_json = tmp_path / "d.jsonl"
    as_json.write_text('{"text": "x"}\n', encoding="utf-8")
    alike = tmp_path / "e.txt"
    alike.write_bytes(as_json.read_bytes())
    assert JoinedCorpus([opened(as_json), b]).sha256 != JoinedCorpus([opened(alike), b]).sha256


def saved(folder: Path, rows: list[dict[str, Any]], **more: Any) -> Path:
    datasets.Dataset.from_list(rows, **more).save_to_disk(folder)
    return folder


def test_the_names_of_classes_count_and_not_their_numbers(tmp_path: Path) -> None:
    names = ["contradiction", "entailment", "neutral"]
    features = datasets.Features(
        premise=datasets.Value("string"),
        hypothesis=datasets.Value("string"),
        label=datasets.ClassLabel(names=names),
    )
    rows = [{"premise": "a", "hypothesis": "b", "label": i} for i in range(3)]
    corpus = opened(saved(tmp_path / "nli", rows, features=features))
    assert [row[2] for row in corpus.rows()] == names


def test_of_a_data_set_with_splits_the_training_split_is_read(tmp_path: Path) -> None:
    splits = {
        name: datasets.Dataset.from_dict({"text": [f"{name} text"]})
        for name in ("test", "train", "validation")
    }
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "all")
    corpus = opened(tmp_path / "all")
    assert (corpus.name, list(corpus.rows())) == ("all/train", [("train text",)])
    other = opened(tmp_path / "all" / "test")
    assert (other.name, list(other.rows())) == ("all/test", [("test text",)])
    del splits["train"]
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "two")
    with pytest.raises(CorpusError, match="the splits test and validation, and none is called"):
        opened(tmp_path / "two")
    del splits["test"]
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "single")
    assert opened(tmp_path / "single").name == "single/validation"
