"""Tasks of mteb that tests make: of rated pairs, and of shared_words.py.

To load mteb takes seconds: tests import this file, and mteb, when they run.
"""

from __future__ import annotations

import random
from typing import Any

from datasets import Dataset, DatasetDict
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from shared_words import made

WORDS = ["a", "cat", "dog", "bird", "sleeps", "runs", "sings", "on"]
WORDS += ["under", "the", "red", "old", "mat", "tree", "house"]


def meta(name: str, kind: Any, main: str, eval_langs: Any = ("eng-Latn",)) -> TaskMetadata:
    about: Any = {"description": "made by a test", "category": "t2t", "eval_splits": ["test"]}
    about |= {"dataset": {"path": "local", "revision": "r1"}, "eval_langs": eval_langs}
    return TaskMetadata(name=name, type=kind, main_score=main, **about)


def random_sentences(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=6)) for _ in range(n)]


class TinySts(AbsTaskSTS):
    metadata = meta("TinySts", "STS", "cosine_spearman")

    def load_data(self, **_: Any) -> None:
        first, second = random_sentences(40, 1), random_sentences(40, 2)
        both = zip(first, second, strict=True)
        gold = [float(len(set(a.split()) & set(b.split()))) for a, b in both]
        columns = {"sentence1": first, "sentence2": second, "score": gold}
        self.dataset = DatasetDict(test=Dataset.from_dict(columns))
        self.data_loaded = True


class TinyLanguages(TinySts):
    """Three subsets of ten to thirty pairs."""

    metadata = meta(
        "TinyLanguages",
        "STS",
        "cosine_spearman",
        eval_langs={"aa": ["aar-Latn"], "en": ["eng-Latn"], "es-es": ["spa-Latn"]},
    )

    def load_data(self, **_: Any) -> None:
        super().load_data()
        whole = self.dataset["test"]
        sizes = {"aa": 10, "en": 20, "es-es": 30}
        self.dataset = {
            name: DatasetDict(test=whole.select(range(sizes[name]))) for name in self.hf_subsets
        }


class Shared(AbsTaskRetrieval):
    """The same queries and documents as a task of mteb."""

    metadata = TaskMetadata(
        name="SharedWords",
        dataset={"path": "none", "revision": "1"},
        description="made up",
        type="Retrieval",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        data = made()
        grades: dict[str, dict[str, int]] = {}
        for row in data["qrels"]:
            grades.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
        self.dataset = {
            "default": {
                "test": {
                    "queries": Dataset.from_list(
                        [{"id": one["_id"], "text": one["text"]} for one in data["queries"]]
                    ),
                    "corpus": Dataset.from_list(
                        [
                            {"id": one["_id"], **{k: one[k] for k in ("title", "text")}}
                            for one in data["corpus"]
                        ]
                    ),
                    "relevant_docs": grades,
                    "top_ranked": None,
                }
            }
        }
        self.data_loaded = True
