"""``--corpus hub:owner/name:column`` on the stand-in hub: rows, revisions, resuming, refusals."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from commands import argv
from hub import StandInHub

from bench.base.errors import BenchError, CorpusError
from bench.data.corpora import Corpus
from bench.data.corpora.hub import HubName, first_fetch_of, hub_corpus

REPO = "someone/texts"


def parquet(**columns: list[Any]) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out, row_group_size=2)
    return out.getvalue()


def jsonl(*rows: dict[str, Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def opened(text: str, cache: Path, **options: Any) -> Corpus:
    path, name = hub_corpus(text, cache=cache, **options)
    return Corpus(path, name, cache)


def rows(corpus: Corpus) -> list[tuple[str, ...]]:
    return list(corpus.rows())


@pytest.mark.parametrize(
    "text",
    argv(
        """
    hub:name:text hub:o/n:a,b,c,d hub:o/n:a#0
    """
    ),
)
def test_bad_names_of_hub_corpora_are_refused(text: str) -> None:
    with pytest.raises(CorpusError, match="expected hub:OWNER/NAME:COLUMN"):
        HubName.of(text)


def test_parquet_in_several_files_is_read_in_their_order_and_the_test_split_is_left_out(
    hub: StandInHub, tmp_path: Path
) -> None:
    revision = hub.add(
        "dataset",
        REPO,
        {
            "README.md": b"---\nlicense: cc0-1.0\n---\n",
            "data/train-00001-of-00002.parquet": parquet(text=["d", None], other=[4, 5]),
            "data/train-00000-of-00002.parquet": parquet(
                text=["a é", "b\u2028c", "c"], other=[1, 2, 3]
            ),
            "data/test-00000-of-00001.parquet": parquet(text=["not this"], other=[9]),
        },
    )
    corpus = opened(f"hub:{REPO}:text", tmp_path)
    assert rows(corpus) == [("a é",), ("b\u2028c",), ("c",), ("d",), (" ",)]
    assert corpus.columns == ("sentence",) and corpus.name == f"hub:{REPO}@{revision}:text"
    said = first_fetch_of(corpus.path)
    assert said.startswith(f"hub data set {REPO} at {revision}: data/train-00000-of-00002.parquet")
    assert said.count("sha256") == 2 and "test" not in said
    assert [p.name for p in corpus.path.parent.iterdir()].count("parts") == 0, (
        "nothing of the data set's own files stays"
    )


def test_triplets_and_labelled_pairs(hub: StandInHub, tmp_path: Path) -> None:
    hub.add(
        "dataset",
        REPO,
        {
            "triplet/train.parquet": parquet(negative=["n"], anchor=["a"], positive=["p"]),
            "pair-class/train.parquet": parquet(
                premise=["a", "b", "c"], hypothesis=["x", "y", "z"], label=[2, -1, 0]
            ),
        },
    )
    triplets = opened(f"hub:{REPO}/triplet:negative,anchor,positive", tmp_path)
    assert (triplets.kind, rows(triplets)) == ("triplets", [("a", "p", "n")])
    pairs = opened(f"hub:{REPO}/pair-class:premise,hypothesis,label", tmp_path)
    wanted = ("labelled", [("a", "x", "contradiction"), ("c", "z", "entailment")])
    assert (pairs.kind, rows(pairs)) == wanted
    with pytest.raises(CorpusError, match="has 2 there") as caught:
        opened(f"hub:{REPO}:anchor", tmp_path)
    assert "pair-class and triplet" in str(caught.value.hint)


def test_a_corpus_that_is_here_needs_no_network(hub: StandInHub, tmp_path: Path) -> None:
    old = hub.add("dataset", REPO, {"train.jsonl": jsonl({"text": "old"})})
    first = opened(f"hub:{REPO}:text", tmp_path)
    new = hub.add("dataset", REPO, {"train.jsonl": jsonl({"text": "new"})})
    asked = len(hub.requests)
    again = opened(f"hub:{REPO}:text", tmp_path, offline=True)
    assert (again.sha256, again.name, len(hub.requests)) == (first.sha256, first.name, asked)
    assert old in first.name
    assert rows(opened(first.name, tmp_path)) == [("old",)], "its name finds it again"
    assert rows(opened(f"hub:{REPO}@{new}:text", tmp_path)) == [("new",)]


def test_a_cut_download_goes_on_and_an_interrupted_data_set_keeps_what_it_had(
    hub: StandInHub, tmp_path: Path
) -> None:
    """The second file fails for good; the next command takes the first one's rows as they are, at
    the same revision.
    """
    big = jsonl(*({"text": f"row {k} " + "x" * 50} for k in range(3000)))
    files = {"train-0.jsonl": big, "train-1.jsonl": jsonl({"text": "last"})}
    revision = hub.add("dataset", REPO, files)
    hub.fault("train-0.jsonl", cut_after=100_000)
    hub.fault("train-1.jsonl", status=403)
    with pytest.raises(BenchError):
        opened(f"hub:{REPO}:text", tmp_path)
    asked = len(hub.asked("train-0.jsonl", "GET"))
    hub.add("dataset", REPO, files | {"train-1.jsonl": jsonl({"text": "changed meanwhile"})})
    corpus = opened(f"hub:{REPO}:text", tmp_path)
    found = rows(corpus)
    assert len(found) == 3001 and found[-1] == ("last",) and revision[:12] in corpus.name
    assert len(hub.asked("train-0.jsonl", "GET")) == asked, "what is here is not fetched again"


@pytest.mark.parametrize(
    ("files", "text", "said"),
    [
        (
            {"train.jsonl": jsonl({"sentence": "a", "n": 1})},
            "text",
            "train.jsonl: no column 'text'; it has sentence, n",
        ),
        ({"train.jsonl": jsonl({"sentence": "a"})}, "", "name the columns"),
        (
            {"train.jsonl": jsonl({"text": "a"}, {"other": "b"})},
            "text",
            "train.jsonl: line 2 has no 'text', but line 1 has",
        ),
        ({"train.parquet": b"PAR1 broken"}, "text", "is not a readable Parquet file"),
        (
            {"README.md": b"", "model.bin": b""},
            "text",
            "expected one table of training text, and .* has 0 there",
        ),
    ],
)
def test_what_is_refused_is_one_line(
    hub: StandInHub, tmp_path: Path, files: dict[str, bytes], text: str, said: str
) -> None:
    hub.add("dataset", REPO, files)
    with pytest.raises(CorpusError, match=said) as caught:
        opened(f"hub:{REPO}:{text}", tmp_path)
    assert "\n" not in caught.value.message
    assert not list(tmp_path.rglob("about.json"))
