"""Made-up queries and documents that share words: as files, and as a task of mteb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata

WORDS = [
    "man",
    "woman",
    "dog",
    "cat",
    "runs",
    "sleeps",
    "plays",
    "guitar",
    "grass",
    "paris",
    "rain",
    "car",
    "onion",
    "market",
    "red",
]


def made(queries: int = 25, documents: int = 160) -> dict[str, list[dict[str, Any]]]:
    """Return queries, documents of which some are there twice, and grades by shared words."""
    drawn = np.random.default_rng(2)
    corpus = []
    for number in range(documents):
        words = drawn.choice(WORDS, 6).tolist()
        corpus.append({"_id": f"d{number}", "title": words[0], "text": " ".join(words[1:])})
    corpus[-1] |= {key: corpus[0][key] for key in ("title", "text")}
    asked = []
    qrels = []
    for number in range(queries):
        words = drawn.choice(WORDS, 4, replace=False).tolist()
        asked.append({"_id": f"q{number}", "text": " ".join(words)})
        for row in corpus:
            shared = len({row["title"], *row["text"].split()} & {*words})
            if shared > 1:
                found = {"query-id": f"q{number}", "corpus-id": row["_id"], "score": shared - 2}
                qrels.append(found)
    return {"queries": asked, "corpus": corpus, "qrels": qrels}


def write_lines(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_table(file: Path, rows: list[dict[str, Any]]) -> None:
    lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_folder(place: Path) -> Path:
    """Write the data in BEIR's layout."""
    data = made()
    place.mkdir()
    write_lines(place / "queries.jsonl", data["queries"])
    write_lines(place / "corpus.jsonl", data["corpus"])
    write_table(place / "qrels.tsv", data["qrels"])
    return place


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
