"""Compare evaluating a ready-made encoder on the seven STS sets with sentence-transformers.

    python benchmarks/evaluate.py FOLDER --data DIR [--repeats 1] [--sides st,object,folder]

The sides: sentence-transformers' own evaluators, ``bench.evaluate`` of the live object, and
``bench.evaluate`` of the folder. Each begins with the folder and ends with seven scores: loading,
encoding, scoring, and on our sides the record with its predictions. sentence-transformers'
evaluators encode every pair of a set, in batches of 32 (their default); ours encode each distinct
sentence of all sets once. Prints wall-clock and CPU seconds of each side (the latter do not depend
on what else the machine does), and the largest difference between two scores of one set.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from machine import describe_machine


def by_sentence_transformers(folder: str, data: Path) -> dict[str, float]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator

    from bench.data.sets import DataFolder
    from bench.data.sets.sts import STS_TASKS
    from bench.score.suites import suite

    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    scores = {}
    for name in STS_TASKS:
        pairs = suite("sts").task(name).load(DataFolder(data)).data
        evaluator = EmbeddingSimilarityEvaluator(
            pairs.sentences1,
            pairs.sentences2,
            pairs.gold.tolist(),
            main_similarity="cosine",
            write_csv=False,  # type: ignore[attr-defined]
        )
        scores[name] = 100 * float(evaluator(model)["spearman_cosine"])
    return scores


def by_object(folder: str, data: Path) -> dict[str, float]:
    from sentence_transformers import SentenceTransformer

    return _ours(SentenceTransformer(folder, device="cpu", local_files_only=True), data)


def by_folder(folder: str, data: Path) -> dict[str, float]:
    return _ours(folder, data)


def _ours(model: object, data: Path) -> dict[str, float]:
    import bench
    from bench.data.sets.sts import STS_TASKS

    with tempfile.TemporaryDirectory() as runs:
        result = bench.evaluate(
            model, suites=["sts"], data=data, runs=runs, device="cpu", progress=False
        )
        return {name: result[name].value for name in STS_TASKS}


SIDES: dict[str, Callable[[str, Path], dict[str, float]]] = {
    "st": by_sentence_transformers,
    "object": by_object,
    "folder": by_folder,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--sides", default="st,object,folder")
    args = parser.parse_args()
    import sentence_transformers  # noqa: F401  # what importing takes is nobody's

    import bench.cli.evaluate
    import bench.training.loop  # noqa: F401

    print(describe_machine(), flush=True)
    names, scores = args.sides.split(","), {}
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(args.repeats):
        for name in names:
            began, used = time.perf_counter(), time.process_time()
            scores[name] = SIDES[name](args.folder, args.data)
            wall[name].append(time.perf_counter() - began)
            cpu[name].append(time.process_time() - used)
            print(f"{name:8} {wall[name][-1]:8.1f} s  {cpu[name][-1]:8.1f} CPU s", flush=True)
    for task in scores[names[0]]:
        print(f"{task:8}", *(f"{name} {scores[name][task]:.4f}" for name in names))
    apart = 0.0
    for task in scores[names[0]]:
        values = [scores[name][task] for name in names]
        apart = max(apart, max(values) - min(values))
    print(f"most apart: {apart:.5f}")
    if "st" in names:
        for name in names:
            print(
                f"{name:8} CPU time of sentence-transformers' over ours: "
                f"{min(cpu['st']) / min(cpu[name]):.2f}"
            )


if __name__ == "__main__":
    main()
