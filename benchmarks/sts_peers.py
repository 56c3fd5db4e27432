"""Score the STS sets on a run's vectors by SentEval, sentence-transformers, mteb and the harness.

    python benchmarks/sts_peers.py RUNS/RUN-ID --data DIR [--senteval CHECKOUT]
                                   [--text tokenised]

Nobody encodes: each side asks for a sentence's vector and gets the one that ``bench run`` stored.
``--senteval`` is a checkout of SentEval with the "all" setting (SimCSE's copy); only code that no
longer runs on today's Python is changed. mteb scores the text that it hosts: STS12 to STS16
tokenised, STS-B and SICK-R (all 9,927 pairs) raw. Prints four scores for each set, the largest
difference from ours, and seconds.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine

MTEB = {"STS-B": "STSBenchmark", "SICK-R": "SICK-R"}
ROWS = 128  # in a batch, as in SimCSE's evaluation
Lookup = Callable[[Sequence[str]], np.ndarray]


def ours(task: Any, vectors: Lookup) -> float:
    return float(task.score(vectors).value)


def senteval(checkout: Path, data: Path, text: str, name: str, vectors: Lookup) -> float:
    """SentEval's evaluation of one set, Spearman over all its pairs."""
    sys.path.insert(0, str(checkout))
    from senteval import sts
    from senteval.utils import dotdict

    downstream = data / {"tokenised": "senteval-moses", "raw": "senteval"}[text] / "downstream"
    places = {"STS-B": "STS/STSBenchmark", "SICK-R": "SICK"}
    classes = {"STS-B": "STSBenchmarkEval", "SICK-R": "SICKRelatednessEval"}
    task = getattr(sts, classes.get(name, f"{name}Eval"))(
        str(downstream / places.get(name, f"STS/{name}-en-test"))
    )
    params = dotdict({"batch_size": ROWS})
    task.do_prepare(params, lambda *_: None)
    found = task.run(params, lambda _, batch: vectors([" ".join(words) for words in batch]))
    return 100 * float(
        found["test"]["spearman"].statistic if "test" in found else found["all"]["spearman"]["all"]
    )


class Stored:
    """Enough of a SentenceTransformer for its evaluator: vectors by sentence."""

    similarity_fn_name = "cosine"

    def __init__(self, vectors: Lookup) -> None:
        self.vectors = vectors
        self.model_card_data: Any = None

    def encode(self, sentences: Sequence[str], **_: Any) -> np.ndarray:
        return self.vectors(list(sentences))


def sentence_transformers(task: Any, vectors: Lookup) -> float:
    from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator

    pairs = task.data
    evaluator = EmbeddingSimilarityEvaluator(
        pairs.sentences1,
        pairs.sentences2,
        pairs.gold.tolist(),
        main_similarity="cosine",
        write_csv=False,
    )
    evaluator.store_metrics_in_model_card_data = lambda *_, **__: None
    return 100 * float(evaluator(Stored(vectors))["spearman_cosine"])


def mteb(name: str, data: Any, vectors: Lookup) -> float:
    """Score with mteb's own code, on the user's files.

    `bench.score.suites.mteb_data` has shown that they hold the text that mteb hosts.
    """
    from bench.score.suites import RunPlace, suite

    (task,) = suite(f"mteb:{MTEB.get(name, name)}").tasks
    with tempfile.TemporaryDirectory() as folder:
        place = RunPlace("peers", "0" * 16, Path(folder))
        return float(task.load(data).score_in(place, vectors).value)  # type: ignore[attr-defined]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a run's folder whose vectors are still there")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--senteval", type=Path)
    parser.add_argument("--text", default="tokenised", choices=["tokenised", "raw"])
    return parser.parse_args()


def main() -> None:
    args = arguments()
    from bench.backbones import silence_transformers
    from bench.data.sets import DataFolder
    from bench.data.sets.sts import STS_TASKS
    from bench.records import RunsFolder
    from bench.records.names import VECTORS
    from bench.score.encoding import VectorStore
    from bench.score.suites import suite

    silence_transformers()
    warnings.filterwarnings("ignore")  # about correlations over the zeros
    logging.disable(logging.WARNING)
    record = RunsFolder(args.run.parent).read(args.run.name)
    stored, data = VectorStore(args.run / VECTORS, record.fingerprint[:16]), DataFolder(args.data)

    def vectors(sentences: Sequence[str]) -> np.ndarray:
        """Return the stored vectors, and zeros for sentences that are not stored.

        Peers that keep runs of white space ask for a sentence that no tokenizer tells from the
        stored one. SentEval also asks for train and dev splits, which do not count here; zeros in
        a test split would show in its score.
        """
        known = [s if s in stored else " ".join(s.split()) for s in sentences]
        found = np.zeros((len(known), width), dtype=np.float32)
        there = [i for i, s in enumerate(known) if s in stored]
        found[there] = stored([known[i] for i in there])
        return found

    protocol = "senteval-all-raw/1" if args.text == "raw" else "senteval-all/1"
    tasks = suite(f"sts:{protocol}")
    width = stored(tasks.task("STS12").load(data).sentences[:1]).shape[1]
    print(describe_machine())
    names = ["bench", *(["SentEval"] if args.senteval else []), "sentence-transformers", "mteb"]
    print(f"{args.text} text".ljust(16), *(name.rjust(22) for name in names))
    worst = dict.fromkeys(names, 0.0)
    spent = dict.fromkeys(names, 0.0)
    for name in STS_TASKS:
        task = tasks.task(name).load(data)
        sides: dict[str, Callable[[], float]] = {
            "bench": lambda task=task: ours(task, vectors),
            "SentEval": lambda name=name: senteval(
                args.senteval, args.data, args.text, name, vectors
            ),
            "sentence-transformers": lambda task=task: sentence_transformers(task, vectors),
        }
        if (args.text == "raw") == (name in MTEB):
            sides["mteb"] = lambda name=name: mteb(name, data, vectors)
        scores = {}
        for side in names:
            if side in sides:
                began = time.perf_counter()
                scores[side] = sides[side]()
                spent[side] += time.perf_counter() - began
        same = scores["bench"]
        if name == "SICK-R" and "mteb" in scores:
            same = task.score(vectors).detail["all_splits"]["spearman"]
        for side in scores:
            worst[side] = max(
                worst[side], abs(scores[side] - (same if side == "mteb" else scores["bench"]))
            )
        print(
            name.ljust(16),
            *(f"{scores[side]:22.5f}" if side in scores else " " * 22 for side in names),
        )
    print("most apart".ljust(16), *(f"{worst[side]:22.5f}" for side in names))
    print("seconds".ljust(16), *(f"{spent[side]:22.2f}" for side in names))


if __name__ == "__main__":
    main()
