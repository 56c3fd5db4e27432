"""Queries and documents are encoded in two ways, where an encoder or an option has two."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import rated_pairs, tiny_encoder
from scored import IMPORTS, cosines, spearman, words_in
from started import bench, python, record, run_folders
from test_score_retrieval import made, write

PAIRS = rated_pairs(60, seed=5)
SIDED = f"""{IMPORTS}
{inspect.getsource(words_in)}
class Sided:
    def encode(self, texts):
        return words_in(texts)
    def encode_query(self, texts):
        return words_in([text + " lion" for text in texts])
    def encode_document(self, texts):
        return words_in([text + " tree tree" for text in texts])
for number, suite in enumerate(json.loads(sys.argv[1])):
    result = bench.evaluate(Sided(), suite, runs=f"runs/{{number}}", name="sided", progress=False)
    print(result.frame()["value"].item())
"""


def ndcg(queries: np.ndarray, documents: np.ndarray) -> float:
    """Return the mean nDCG@10 x 100 of the files of promise 32, for these vectors."""
    _, _, grades = made()
    total = 0.0
    for q, vector in enumerate(queries):
        cosine = cosines(np.tile(vector, (len(documents), 1)), documents)
        order = sorted(range(len(documents)), key=lambda d: (-round(cosine[d], 7), -d))
        gains = np.array([grades.get((q, d), 0) for d in order])
        discount = 1 / np.log2(np.arange(2, 12))
        total += gains[:10] @ discount / (np.sort(gains)[::-1][:10] @ discount)
    return 100 * total / len(queries)


def score_of(runs: Path) -> float:
    (run,) = run_folders(runs)
    (score,) = record(run)["scores"]
    return float(score["value"])


def write_pairs(folder: Path) -> None:
    """Write ``plain.tsv``, and the same as ``sided.tsv`` with a description of its sides."""
    rows = ["question\tanswer\tscore", *("\t".join(map(str, pair)) for pair in PAIRS)]
    for name in ("plain", "sided"):
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    description = 'sides = ["document", "query"]\n'
    (folder / "sided.toml").write_text(description, encoding="utf-8")


@pytest.mark.promise(33)
def test_an_objects_own_ways_are_taken_for_what_has_sides(tmp_path: Path) -> None:
    write(tmp_path)
    write_pairs(tmp_path)
    suites = [
        "retrieval:asked",
        "plain.tsv:question,answer,score",
        "sided.tsv:question,answer,score",
    ]
    done = python(SIDED, json.dumps(suites), cwd=tmp_path)
    search, plain, sided = (float(line) for line in done.out.split()[-3:])
    queries, documents, _ = made()
    of_queries = words_in([text + " lion" for text in queries])
    of_documents = words_in([text + " tree tree" for text in documents])
    assert search == pytest.approx(ndcg(of_queries, of_documents), abs=1e-6)
    assert abs(search - ndcg(words_in(queries), words_in(documents))) > 0.5
    first, second, ratings = (list(side) for side in zip(*PAIRS, strict=True))
    assert plain == pytest.approx(spearman(cosines(words_in(first), words_in(second)), ratings))
    of_first = words_in([text + " tree tree" for text in first])
    of_second = words_in([text + " lion" for text in second])
    assert sided == pytest.approx(spearman(cosines(of_first, of_second), ratings), abs=1e-6)
    assert abs(sided - plain) > 0.1


@pytest.mark.promise(33)
def test_a_prompt_for_each_side_is_put_before_its_texts(tmp_path: Path) -> None:
    write(tmp_path)
    queries, documents, _ = made()
    texts = [*(f"lion {text}" for text in queries), *(f"tree tree {text}" for text in documents)]
    np.savez(tmp_path / "words.npz", sentences=np.array(texts), vectors=words_in(texts))
    words = ["evaluate", "vectors:words.npz", "--suite", "retrieval:asked", "--runs", "runs"]
    words += ["--prompt-query", "lion ", "--prompt-document", "tree tree "]
    bench(*words, cwd=tmp_path)
    wanted = ndcg(words_in(texts[: len(queries)]), words_in(texts[len(queries) :]))
    assert score_of(tmp_path / "runs") == pytest.approx(wanted, abs=1e-6)
    (run,) = run_folders(tmp_path / "runs")
    model = record(run)["provenance"]["backbone"]["model"]
    assert model["sides"]["prompts"] == {"query": "lion ", "document": "tree tree "}


def router(folder: Path, tiny: Path) -> Any:
    """Save a model of sentence-transformers that pools queries in another way than documents."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    first, second = Transformer(str(tiny)), Transformer(str(tiny))
    size = first.get_embedding_dimension()
    routes = [[first, Pooling(size, "cls")], [second, Pooling(size, "mean")]]
    model = SentenceTransformer(modules=[Router.for_query_document(*routes)], device="cpu")
    model.prompts |= {"query": "the boat "}
    model.save(str(folder), create_model_card=False)
    return model


@pytest.mark.promise(33)
def test_a_folder_with_routes_and_prompts_is_encoded_by_its_library(tmp_path: Path) -> None:
    write(tmp_path)
    tiny_encoder(tmp_path / "tiny")
    model = router(tmp_path / "routed", tmp_path / "tiny")
    words = ["evaluate", "routed", "--suite", "retrieval:asked", "--runs", "runs"]
    bench(*words, cwd=tmp_path)
    queries, documents, _ = made()
    vectors = model.encode_query(queries), model.encode_document(documents)
    wanted = ndcg(*vectors)
    assert score_of(tmp_path / "runs") == pytest.approx(wanted, abs=0.05)
    assert abs(wanted - ndcg(model.encode(queries), model.encode(documents))) > 0.5
