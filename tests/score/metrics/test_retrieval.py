"""Search and the measures of a ranking, against plain searches, pytrec_eval and mteb."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from bench.score.metrics.retrieval import (
    average_precision_of_ranks,
    discounted_gain,
    ideal_gain,
    recall,
    reciprocal_rank,
    search,
)

QUERIES, DOCUMENTS, DEPTH = 30, 400, 100


@pytest.fixture(scope="module")
def judged() -> tuple[dict[str, dict[str, int]], np.ndarray]:
    """Return relevances from 0 to 3, and a ranking for each query that begins with many answers."""
    drawn = np.random.default_rng(3)
    qrels = {}
    places: list[np.ndarray] = []
    for query in range(QUERIES):
        chosen = drawn.choice(DOCUMENTS, 1 + query % 13, replace=False)
        grades = drawn.integers(0, 4, len(chosen))
        grades[0] = 2
        qrels[f"q{query}"] = {
            f"d{one}": int(grade) for one, grade in zip(chosen, grades, strict=True)
        }
        order = drawn.permutation(DOCUMENTS)
        far = 0.6 * ~np.isin(order, chosen) + drawn.random(DOCUMENTS)
        places.append(order[np.argsort(far)[:DEPTH]])
    return qrels, np.array(places)


def test_measures_are_those_of_pytrec_eval_and_mteb(
    judged: tuple[dict[str, dict[str, int]], np.ndarray],
) -> None:
    qrels, place_QK = judged
    run = {
        query: {f"d{place}": float(-rank) for rank, place in enumerate(row)}
        for query, row in zip(qrels, place_QK, strict=True)
    }
    names = {"ndcg_cut.10", "recall.100", "map_cut.100"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    relevance_QK = np.array(
        [
            [grades.get(f"d{place}", 0) for place in row]
            for grades, row in zip(qrels.values(), place_QK, strict=True)
        ]
    )
    answers_Q = np.array([sum(grade > 0 for grade in row.values()) for row in qrels.values()])
    ndcg_Q = discounted_gain(relevance_QK) / ideal_gain(row.values() for row in qrels.values())
    ours = {
        "ndcg_cut_10": ndcg_Q,
        "recall_100": recall(relevance_QK, answers_Q),
        "map_cut_100": average_precision_of_ranks(relevance_QK, answers_Q),
    }
    for name, values_Q in ours.items():
        assert values_Q == pytest.approx([theirs[query][name] for query in qrels], abs=1e-9), name
        assert 0.1 < values_Q.mean() < 0.95
    rr_Q = reciprocal_rank(relevance_QK)
    # to load mteb takes seconds
    from mteb._evaluators.retrieval_metrics import calculate_retrieval_scores

    mteb = calculate_retrieval_scores(run, qrels, [10, 100])
    assert rr_Q.mean() == pytest.approx(mteb.mrr["MRR@10"], abs=1e-9)
    assert 0.1 < rr_Q.mean() < 0.95


def test_fewer_documents_than_ten_are_a_short_ranking() -> None:
    relevance_QK = np.array([[0, 1, 0]])
    assert discounted_gain(relevance_QK) == pytest.approx([1 / np.log2(3)])
    assert ideal_gain([[1, 1]]) == pytest.approx([1 + 1 / np.log2(3)])


@pytest.mark.parametrize("size", [70, 1000])
def test_a_search_in_blocks_is_a_search_of_all(size: int) -> None:
    drawn = np.random.default_rng(5)
    queries_QD = drawn.normal(size=(300, 16)).astype(np.float32)
    documents_ND = drawn.normal(size=(900, 16)).astype(np.float32)
    # texts that are there twice, and a text without a direction
    documents_ND[500:600] = documents_ND[:100]
    documents_ND[700] = 0
    blocks = (documents_ND[start : start + size] for start in range(0, 900, size))
    a_QD = queries_QD / np.linalg.norm(queries_QD.astype(float), axis=1, keepdims=True)
    lengths_N = np.linalg.norm(documents_ND.astype(float), axis=1, keepdims=True)
    b_ND = documents_ND / np.where(lengths_N == 0, 1, lengths_N)
    cosine_QN = np.round(a_QD @ b_ND.T, 9)
    wanted_QK = np.argsort(-cosine_QN, axis=1, kind="stable")[:, :100]
    assert (search(queries_QD, blocks) == wanted_QK).all()


def test_places_without_a_document_are_marked() -> None:
    place_QK = search(np.eye(2, 3), iter([np.eye(3)]), depth=5)
    assert place_QK.tolist() == [[0, 1, 2, -1, -1], [1, 0, 2, -1, -1]]
