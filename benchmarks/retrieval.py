"""Search a million mapped vectors, beside sentence-transformers' ``semantic_search``.

    python benchmarks/retrieval.py [--documents 1000000] [--queries 1000] [--dimensions 384]
                                   [--threads 1] [--side bench|peer|whole]

The vectors (float32, normal, seed 0) lie in a file that is mapped; each side runs in a process of
its own and finds the first 100 documents of each query. ``whole`` is the whole command: texts with
these vectors, given by a function, are scored by ``bench.evaluate``. Prints seconds by the clock and
of the processor, and the most memory beside the mapped file (anonymous pages, every 20 ms) above
that of the libraries.
Exit code 1 if the two sides find other documents for more than one query in a thousand, or ours
needs more than 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]
LIMIT = 1_000
"""Megabytes beside the vectors."""
BLOCK = 16_384


def anonymous() -> float:
    """Return the megabytes of this process that are not pages of files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


@contextmanager
def measured(facts: dict[str, float]) -> Iterator[None]:
    """Note the seconds of a block, and the most memory above that at its beginning."""
    before, most, done = anonymous(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], anonymous())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began, computed = time.perf_counter(), time.process_time()
    yield
    facts["seconds"] = round(time.perf_counter() - began, 1)
    facts["cpu"] = round(time.process_time() - computed, 1)
    done.set()
    watcher.join()
    facts["megabytes"] = round(most[0] - before)


def vectors(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Map the vectors of queries and documents."""
    return np.load(folder / "queries.npy"), np.load(folder / "documents.npy", mmap_mode="r")


def search_ours(folder: Path) -> dict[str, float]:
    from bench.score.metrics.retrieval import search

    facts: dict[str, float] = {}
    queries, documents = vectors(folder)
    with measured(facts):
        starts = range(0, len(documents), BLOCK)
        found = search(queries, (documents[at : at + BLOCK] for at in starts))
    np.save(folder / "ours.npy", found)
    return facts


def search_theirs(folder: Path) -> dict[str, float]:
    import torch
    from sentence_transformers.util import semantic_search

    facts: dict[str, float] = {}
    queries, documents = vectors(folder)
    with measured(facts):
        mapped = torch.from_numpy(documents)
        found = semantic_search(torch.from_numpy(queries), mapped, top_k=100)
    np.save(folder / "theirs.npy", [[one["corpus_id"] for one in row] for row in found])
    return facts


def score_whole(folder: Path) -> dict[str, float]:
    """Score texts by ``bench.evaluate``: the million documents as a user has them."""
    import bench

    queries, documents = vectors(folder)
    data = folder / "data"
    data.mkdir(exist_ok=True)
    with (data / "queries.tsv").open("w") as file, (data / "qrels.tsv").open("w") as judged:
        file.write("id\ttext\n")
        judged.write("query-id\tcorpus-id\tscore\n")
        for number in range(len(queries)):
            file.write(f"q{number}\tquery {number}\n")
            judged.write(f"q{number}\td{number}\t1\n")
    with (data / "corpus.tsv").open("w") as file:
        file.write("id\ttext\n")
        file.writelines(f"d{number}\tdocument {number}\n" for number in range(len(documents)))

    def encode(texts: list[str]) -> np.ndarray:
        rows = [text.rpartition(" ")[2] for text in texts]
        numbers = np.array([int(row) if row.isdigit() else 0 for row in rows]) % len(documents)
        is_query = np.array([text.startswith("query ") for text in texts])
        found = np.asarray(documents[numbers])
        found[is_query] = queries[numbers[is_query] % len(queries)]
        return found

    facts: dict[str, float] = {}
    with measured(facts):
        bench.evaluate(encode, f"retrieval:{data}", runs=folder / "runs", progress=False)
    return facts


SIDES = {"bench": search_ours, "peer": search_theirs, "whole": score_whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--threads", default="1")
    parser.add_argument("--side", choices=SIDES, action="append")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.folder is not None:  # one side, in a process of its own
        print(json.dumps(SIDES[options.side[0]](options.folder)))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        drawn = np.random.default_rng(0)
        shape = options.documents, options.dimensions
        mapped = np.lib.format.open_memmap(folder / "documents.npy", "w+", np.float32, shape)
        for start in range(0, options.documents, BLOCK):
            rows = len(mapped[start : start + BLOCK])
            mapped[start : start + BLOCK] = drawn.normal(size=(rows, options.dimensions))
        mapped.flush()
        del mapped
        queries = drawn.normal(size=(options.queries, options.dimensions))
        np.save(folder / "queries.npy", queries.astype(np.float32))
        sides = options.side or [*SIDES]
        most = 0
        for side in sides:
            words = [sys.executable, __file__, "--side", side, "--folder", place]
            environment = os.environ | {"OMP_NUM_THREADS": options.threads}
            done = subprocess.run(
                words, env=environment, check=True, capture_output=True, text=True
            )
            facts = json.loads(done.stdout.splitlines()[-1])
            seconds = f"{facts['seconds']:8} s {facts['cpu']:8} CPU s"
            print(f"{side:6} {seconds} {facts['megabytes']:8,} MB", flush=True)
            if side != "peer":
                most = max(most, facts["megabytes"])
        different = 0.0
        if {"bench", "peer"} <= {*sides}:
            a, b = np.load(folder / "ours.npy"), np.load(folder / "theirs.npy")
            different = float((np.sort(a) != np.sort(b)).any(axis=1).mean())
            print(f"queries with other documents: {different:.2%}")
    raise SystemExit(most > LIMIT or different > 0.001)


if __name__ == "__main__":
    main()
