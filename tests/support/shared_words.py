"""Made-up queries and documents that share words, as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

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
