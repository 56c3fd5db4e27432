"""Compare k-means on the eight sets of the clustering suite with scikit-learn's.

    python benchmarks/clustering.py --data DATA [--vectors FOLDER] [--sets AgNews,Tweet]
                                    [--seeds 10] [--threads 2]

The peer is scikit-learn's KMeans in a loop with scipy's assignment. Both sides get the same vectors
(all-MiniLM-L6-v2, 384 wide, float32), seeds 0 to 9, n_init=10, max_iter=300, tol=1e-4 and number of
threads, and run in turn in one process, set by set. Encoding is not timed. ``--vectors`` keeps the
vectors as FOLDER/NAME.npy, so that encoding is done once. Prints wall-clock and processor seconds,
the ratios, and both accuracies. Exit code 1 if ours is not 3 times as fast over all sets, or if
mean accuracies differ by more than the spread over seeds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

TARGET = 3.0
LEAST_SPREAD = 0.25
"""Points: if all seeds of a side find one optimum, its spread is nearly 0, and rounding may lead
the other side to a neighbouring optimum."""


def peer(x_ND: Any, gold: Any, classes: int, seeds: Sequence[int]) -> list[float]:
    """Accuracy x 100 of every seed."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.cluster import KMeans
    from sklearn.metrics.cluster import contingency_matrix

    found = []
    for seed in seeds:
        labels = (
            KMeans(n_clusters=classes, n_init=10, max_iter=300, tol=1e-4, random_state=seed)
            .fit(x_ND)
            .labels_
        )
        table = contingency_matrix(gold, labels)
        found.append(100 * float(table[linear_sum_assignment(-table)].sum() / table.sum()))
    return found


def ours(x_ND: Any, gold: Any, classes: int, seeds: Sequence[int]) -> list[float]:
    from bench.score.metrics.clustering import confusion, matched_accuracy
    from bench.score.metrics.kmeans import kmeans

    return [matched_accuracy(confusion(one.labels_N, gold)) for one in kmeans(x_ND, classes, seeds)]


def clocked(side: Callable[..., list[float]], *given: Any) -> tuple[list[float], float, float]:
    """Accuracies, wall-clock and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = side(*given)
    return found, time.perf_counter() - wall, time.process_time() - cpu


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder with clustering/NAME.tsv")
    parser.add_argument("--vectors", type=Path, help="folder where the sets' vectors are kept")
    parser.add_argument("--sets", help="names, separated by commas  [default: all eight]")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2, help="of the matrix products, for both")
    parser.add_argument(
        "--model",
        help="a sentence-transformers folder  [default: all-MiniLM-L6-v2 from its PyPI package]",
    )
    return parser.parse_args()


def main() -> None:
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)  # before numpy is loaded

    import numpy as np
    from encoding import minilm_folder
    from encoding import ours as encoder
    from machine import describe_machine
    from threadpoolctl import threadpool_limits

    from bench.data.sets import DataFolder
    from bench.data.sets.clustering import CLUSTERING_TASKS, read_clustering

    print(describe_machine())
    encoder_of, seeds = cache(encoder), range(args.seeds)
    print(
        f"{args.seeds} seeds of 10 starts, {args.threads} threads; seconds are wall-clock "
        "(processor)"
    )
    print(
        f"{'set':15}{'n x classes':>13}{'scikit-learn':>20}{'bench':>18}{'ratio':>14}   accuracy: "
        "scikit-learn, bench"
    )
    total = np.zeros(4)
    apart = []
    names = args.sets.split(",") if args.sets else CLUSTERING_TASKS
    for name in names:
        data = read_clustering(DataFolder(args.data), name)
        kept = args.vectors / f"{name}.npy" if args.vectors else None
        if kept is not None and kept.is_file():
            x_ND = np.load(kept)
        else:
            x_ND = encoder_of(args.model or minilm_folder())(data.texts)
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                np.save(kept, x_ND)
        if x_ND.shape[0] != len(data):
            sys.exit(f"{kept}: {len(x_ND)} vectors for {len(data)} texts")
        classes = len(np.unique(data.labels))
        with threadpool_limits(args.threads):
            peers, *theirs = clocked(peer, x_ND, data.labels, classes, seeds)
            found, *taken = clocked(ours, x_ND, data.labels, classes, seeds)
        total += [*theirs, *taken]
        a, b = np.array(peers), np.array(found)
        if abs(a.mean() - b.mean()) > max(a.std(), b.std(), LEAST_SPREAD):
            apart.append(name)
        print(
            _line(name, f"{len(data):,} x {classes}", *theirs, *taken),
            f"  {a.mean():.2f} ± {a.std():.2f}, {b.mean():.2f} ± {b.std():.2f}",
            flush=True,
        )
    print(_line("all", "", *total))
    if apart:
        sys.exit(f"accuracies differ by more than the spread over seeds: {', '.join(apart)}")
    if total[0] < TARGET * total[2]:
        sys.exit(f"{total[0] / total[2]:.2f} times as fast; {TARGET} is the target")


def _line(name: str, size: str, wall: float, cpu: float, our_wall: float, our_cpu: float) -> str:
    peer_seconds, seconds = f"{wall:.2f} ({cpu:.2f})", f"{our_wall:.2f} ({our_cpu:.2f})"
    ratio = f"{wall / our_wall:.2f} ({cpu / our_cpu:.2f})"
    return f"{name:15}{size:>13}{peer_seconds:>20}{seconds:>18}{ratio:>14}"


if __name__ == "__main__":
    main()
