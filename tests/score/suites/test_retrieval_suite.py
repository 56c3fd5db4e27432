"""Retrieval on a user's own files: read in every form, and scored as mteb and sentence-transformers
score it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench, error_line
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.util import cos_sim
from shared_words import made, write_folder, write_table

from bench.base.errors import BenchError
from bench.data.own.naming import parse_own_file
from bench.data.own.retrieval import read_retrieval
from bench.data.sets import DataFolder
from bench.score.suites.own import task_of_file
from bench.score.suites.retrieval import score_rankings
from bench.score.suites.task import TaskResult

NAMES = {
    "ndcg_at_10": "nDCG@10",
    "mrr_at_10": "MRR@10",
    "recall_at_100": "recall@100",
    "map_at_100": "MAP@100",
}


def words_in(sentences: Sequence[str]) -> np.ndarray:
    """Encode without a model: the sum of a fixed random vector for every word."""
    sums = []
    for sentence in sentences:
        known = [
            np.random.default_rng(zlib.crc32(word.encode())).normal(size=24)
            for word in sorted(sentence.split())
        ]
        sums.append(np.sum(known, axis=0))
    return np.array(sums, dtype=np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "words")


def score(
    file: str | Path, vectors: Callable[[Sequence[str]], np.ndarray] = words_in
) -> TaskResult:
    loaded = task_of_file(parse_own_file(f"retrieval:{file}")).load(DataFolder(None))
    return loaded.score(vectors)


def numbers(result: TaskResult) -> dict[str, float]:
    return {"nDCG@10": result.value, **result.detail["beside"]}


def test_scores_are_mtebs(folder: Path, tmp_path: Path) -> None:
    import mteb
    from mteb.models import ModelMeta
    from mteb_tasks import Shared

    class Encoder:
        """The toy model as mteb calls one."""

        mteb_model_meta = ModelMeta.create_empty({"name": "bench/words"})

        def encode(self, inputs: Any, **_: Any) -> np.ndarray:
            return words_in([text for batch in inputs for text in batch["text"]])

        def similarity(self, a: Any, b: Any) -> Any:
            return cos_sim(a, b)

        similarity_pairwise = similarity

    ours = numbers(score(folder))
    done = mteb.evaluate(
        Encoder(), Shared(), cache=None, encode_kwargs={"show_progress_bar": False}
    )
    (theirs,) = done.task_results[0].scores["test"]
    for name, label in NAMES.items():
        assert ours[label] / 100 == pytest.approx(theirs[name], abs=1e-5), name
        assert 5 < ours[label] < 99.9


def test_scores_of_yes_or_no_are_sentence_transformers(folder: Path) -> None:
    data = made()
    right: dict[str, set[str]] = {}
    for row in data["qrels"]:
        row["score"] = 1
        right.setdefault(row["query-id"], set()).add(row["corpus-id"])
    write_table(folder / "qrels.tsv", data["qrels"])
    asked = {one["_id"]: one["text"] for one in data["queries"]}
    corpus = {one["_id"]: f"{one['title']} {one['text']}" for one in data["corpus"]}
    evaluator = InformationRetrievalEvaluator(asked, corpus, right)
    found = []
    for cosine_N in cos_sim(words_in([*asked.values()]), words_in([*corpus.values()])).numpy():
        # the library leaves the order of equal cosines to chance; here the greater id is first
        order = sorted(zip(np.round(cosine_N, 6), corpus, strict=True), reverse=True)
        found.append([{"corpus_id": one, "score": float(cosine)} for cosine, one in order[:100]])
    theirs = evaluator.compute_metrics(found)
    ours = numbers(score(folder))
    wanted = [theirs["ndcg@k"][10], theirs["mrr@k"][10], theirs["map@k"][100]]
    for label, value in zip(("nDCG@10", "MRR@10", "MAP@100"), wanted, strict=True):
        assert ours[label] == pytest.approx(100 * value, abs=1e-4), label


def test_numbers_that_are_stored_in_few_bits_have_the_same_means() -> None:
    found = np.arange(200) > 0
    stored = {
        "prediction": found.astype(np.float16),
        "relevance": np.where(found, 1, 0)[:, None],
        "ideal": np.ones(200, dtype=np.float16),
        "recall": found.astype(np.float16),
        "average_precision": found.astype(np.float16),
    }
    result = score_rankings(stored, "words")
    assert result.value == pytest.approx(99.5, abs=1e-9)
    assert [*result.detail["beside"].values()] == pytest.approx([99.5] * 3, abs=1e-9)


def test_a_folder_has_its_name_and_its_titles_however_they_are_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... the working directory, and columns in other letters."""
    monkeypatch.chdir(folder)
    lines = ["_ID,Title,TEXT", *(f"{one['_id']},boats,{one['text']}" for one in made()["corpus"])]
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.csv").write_text("\n".join(lines), encoding="utf-8")
    own = parse_own_file("retrieval:.")
    assert own.name == folder.name
    assert all(text.startswith("boats ") for text in read_retrieval(own).documents.values())


QRELS = "query-id\tcorpus-id\tscore\n"
TWO = '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n'
WRONG = {
    "unknown query": ({"qrels.tsv": QRELS + "x\ta\t1\n"}, ["qrels.tsv: line 2", "'x'"]),
    "judged twice": ({"qrels.tsv": QRELS + "a\ta\t1\na\ta\t1\n"}, ["line 3", "again"]),
    "huge": ({"qrels.tsv": QRELS + f"a\ta\t{10**20}\n"}, ["line 2", "1e+20", "1,000,000"]),
    "half": ({"qrels.tsv": QRELS + "a\ta\t0.5\n"}, ["line 2", "0.5", "whole"]),
    "empty query": ({"queries.jsonl": '{"_id": "a", "text": " "}\n'}, ["line 1", "empty query"]),
    "half an id": (
        {"corpus.jsonl": '{"_id": 1.5, "text": "x"}\n'},
        ["line 1", "1.5", "a whole number"],
    ),
    "no id": ({"corpus.jsonl": '{"text": "one"}\n'}, ["corpus.jsonl: expected the column _id"]),
    "other columns": (
        {"qrels.tsv": "a\tb\t1\nb\tb\t1\n"},
        ["qrels.tsv: expected the column query-id", "a, b, 1"],
    ),
    "two tables": ({"qrels.csv": "x\n"}, ["qrels.csv and qrels.tsv"]),
    "no table": ({"qrels.tsv": None}, ["no table 'qrels'"]),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_one_line_with_file_and_row(kind: str, tmp_path: Path) -> None:
    files: dict[str, str | None] = {
        "queries.jsonl": TWO,
        "corpus.jsonl": TWO,
        "qrels.tsv": QRELS + "a\ta\t1\nb\tb\t1\n",
    }
    changed, words = WRONG[kind]
    for name, content in (files | changed).items():
        if content is not None:
            (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(BenchError) as caught:
        task_of_file(parse_own_file(f"retrieval:{tmp_path}"))
    message = str(caught.value)
    assert "\n" not in caught.value.message
    assert all(word in message for word in words), message


def test_a_folder_that_is_not_there_is_no_unknown_suite(tmp_path: Path) -> None:
    done = bench("run", "cls", "--suite", f"retrieval:{tmp_path / 'none'}")
    assert done.exit_code == 2 and "no file at" in error_line(done)
    assert "--suite retrieval:FOLDER" in done.output
