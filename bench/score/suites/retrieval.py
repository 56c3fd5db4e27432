"""Retrieval: does the search for a query find the documents that answer it?

All documents are ranked by the cosine of their vectors with the query's. A task's value is the mean
nDCG@10 of its queries, x 100; its details are MRR@10, recall@100 and MAP@100. If cosines are equal,
the document with the greater id comes first, as in trec_eval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bench.base.sides import DOCUMENT, QUERY
from bench.data.own.retrieval import JudgedQueries
from bench.records.record import BESIDE
from bench.score.metrics.retrieval import (
    TOP,
    average_precision_of_ranks,
    discounted_gain,
    ideal_gain,
    recall,
    reciprocal_rank,
    search,
)
from bench.score.suites.task import (
    Arrays,
    LoadedTask,
    RunPlace,
    Task,
    TaskResult,
    TaskScore,
    Vectors,
)
from bench.score.suites.vectors import check_variety, check_vectors, scoring

AT_ONCE = 16_384
"""Documents of a block: bounds the copies of their vectors."""


@dataclass(frozen=True)
class LoadedRetrieval(LoadedTask):
    """Queries that are answered by the nearest documents."""

    task: Task
    data: JudgedQueries

    @cached_property
    def ranked_ids(self) -> list[str]:
        """The ids of the documents in the order that ranks equal cosines."""
        return sorted(self.data.documents, reverse=True)

    @property
    def sentences(self) -> list[str]:
        return [*self.data.queries.values(), *self.data.documents.values()]

    @property
    def sides(self) -> dict[str, list[str]]:
        return {
            QUERY: list(self.data.queries.values()),
            DOCUMENT: list(self.data.documents.values()),
        }

    def score(self, vectors: Vectors) -> TaskResult:
        return self.score_sides(vectors, vectors)

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        return self.score_sides(place.sides.get(QUERY, vectors), place.sides.get(DOCUMENT, vectors))

    def score_sides(self, of_queries: Vectors, of_documents: Vectors) -> TaskResult:
        """Score the queries. Raises RunFailed if the vectors cannot be scored."""
        name = self.task.name
        queries = list(self.data.queries.values())
        query_QD = check_vectors(of_queries(queries), queries, name)
        if len(queries) > 1:
            check_variety(query_QD, queries, name)
        with scoring(name):
            place_QK = search(query_QD, self._blocks(of_documents))
        return self.result(self._predictions(place_QK))

    def _blocks(self, vectors: Vectors) -> Iterator[np.ndarray]:
        """Yield the vectors of all documents in their order."""
        ids = self.ranked_ids
        for start in range(0, len(ids), AT_ONCE):
            texts = [self.data.documents[one] for one in ids[start : start + AT_ONCE]]
            yield check_vectors(vectors(texts), texts, self.task.name)

    def _predictions(self, place_QK: np.ndarray) -> dict[str, np.ndarray]:
        """Return the arrays of the queries: how good each ranking is, and its first documents."""
        relevances = list(self.data.relevance.values())
        answers_Q = self.data.gold
        ids_QK = [self._ids(place_K) for place_K in place_QK]
        relevance_QK = np.array(
            [
                [grades.get(one, 0) for one in ids_K]
                for grades, ids_K in zip(relevances, ids_QK, strict=True)
            ]
        )
        ideal_Q = ideal_gain(grades.values() for grades in relevances)
        return {
            "prediction": discounted_gain(relevance_QK) / ideal_Q,
            "gold": answers_Q,
            "ideal": ideal_Q,
            "documents": np.array([ids_K[:TOP] for ids_K in ids_QK], dtype=str),
            "relevance": relevance_QK[:, :TOP],
            "recall": recall(relevance_QK, answers_Q),
            "average_precision": average_precision_of_ranks(relevance_QK, answers_Q),
        }

    def _ids(self, place_K: np.ndarray) -> Sequence[str]:
        """Return the ids of a ranking; "" after the last document."""
        return [self.ranked_ids[place] if place >= 0 else "" for place in place_K.tolist()]


def score_rankings(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions. Raises ValueError if they contradict each other."""
    relevance_QK = predictions["relevance"]
    ndcg_Q = discounted_gain(relevance_QK) / predictions["ideal"]
    if not np.allclose(ndcg_Q, predictions["prediction"], rtol=0, atol=1e-9):
        raise ValueError("a query's nDCG is not that of its documents")
    beside = {
        "MRR@10": reciprocal_rank(relevance_QK),
        "recall@100": predictions["recall"],
        "MAP@100": predictions["average_precision"],
    }
    # a version stores numbers in as few bits as hold them, too few for their mean
    means = {name: 100 * float(values_Q.mean(dtype="f8")) for name, values_Q in beside.items()}
    return TaskScore(100 * float(ndcg_Q.mean()), len(ndcg_Q), detail={BESIDE: means})
