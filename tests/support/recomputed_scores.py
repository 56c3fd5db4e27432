"""Scores of a version's runs, and how far each item moves them, with numpy and scipy alone.

Written from docs/statistics.md and its sources for ``recomputed.py``. Ranks and their derivatives
come from sums over the items below, which tests/golden/test_version.py compares with sums over
all pairs of items.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyarrow import parquet
from scipy import optimize

SENTENCES = Path(__file__).parents[2] / "bench" / "data" / "sets" / "shared_sentences.npz"
STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


@dataclass(frozen=True)
class Answer:
    """One run's answer to one task."""

    # by repetition, in points; without repetitions one
    values_Q: np.ndarray
    # how far each item moves the value, over the number of items
    moved_N: np.ndarray
    weight_N: np.ndarray
    # the two things that an item shares with others; twice the same for an item of its own
    pairs_N2: np.ndarray


def arrays_of(version: Path, file: str) -> dict[str, np.ndarray]:
    """Read predictions and gold values of one task of a run.

    ``file``: "runs/ID/predictions/STS12.npz".
    """
    if (version / "predictions.parquet").is_file():
        packed = packed_arrays(version / "predictions.parquet")
        if file not in packed:  # clustering, as v5 has it
            file = file.replace(".npz", "@sccl.npz")
        return packed[file]
    with np.load(version / file, allow_pickle=False) as stored:
        return dict(stored)


@functools.cache
def packed_arrays(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Read file -> name -> array from a version's one file of predictions; text is left out."""
    rows = parquet.read_table(path).to_pylist()
    files: dict[str, dict[str, np.ndarray]] = {}
    made: dict[int, np.ndarray] = {}  # a row comes after the row that it refers to
    for number, row in enumerate(rows):
        if row["dtype"] == "U":
            continue
        if row["dtype"] == "d2":
            low, high = np.frombuffer(row["data"], np.uint8).reshape(2, -1).astype(int)
            moved = (made[row["same"]] + low + 256 * high + 2**15) % 2**16 - 2**15
            made[number] = moved.astype(np.int16)
        elif row["same"] is None:
            made[number] = np.frombuffer(row["data"], "<" + row["dtype"]).reshape(row["shape"])
        else:
            made[number] = made[row["same"]]
        files.setdefault(row["file"], {})[row["array"]] = made[number]
    return files


@functools.cache
def sentences_of_pairs() -> dict[str, np.ndarray]:
    """Task -> (N, 2) numbers of the sentences."""
    with np.load(SENTENCES, allow_pickle=False) as stored:
        pairs, items = stored["numbers"], stored["items"]
    return dict(zip(STS, np.split(pairs, np.cumsum(items)[:-1]), strict=True))


def spearman(x_N: np.ndarray, y_N: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the correlation of ranks in points, and (N,) its derivative by each item's share, over
    N. ``by_all_comparisons`` of tests/golden/test_version.py is the same in the slow way.
    """
    n = len(x_N)
    of_x, of_y = (_LevelsOf(one.astype(np.float64)) for one in (x_N, y_N))
    # twice the centred rank, as a share
    u, v = (2 * of.share_below(np.full(n, 1 / n)) - 1 for of in (of_x, of_y))
    a = (u * v).mean()
    b = (u * u).mean()
    c = (v * v).mean()

    def moved(of: _LevelsOf, other: np.ndarray) -> np.ndarray:
        """Return the effect of more of an item on the mean of ``other`` times the ranks."""
        return other.mean() - 2 * of.share_below(other / n)

    of_a = u * v + moved(of_x, v) + moved(of_y, u) - 3 * a
    of_b, of_c = u * u + 2 * moved(of_x, u) - 3 * b, v * v + 2 * moved(of_y, v) - 3 * c
    rho = a / math.sqrt(b * c)
    return 100 * rho, 100 / n * (of_a / math.sqrt(b * c) - rho / 2 * (of_b / b + of_c / c))


def answer_sts(arrays: dict[str, np.ndarray], task: str) -> Answer:
    """Spearman's correlation over all pairs, which share sentences across the STS sets."""
    score, moved_N = spearman(arrays["prediction"], arrays["gold"])
    weight_N = np.full(len(moved_N), 1 / len(moved_N))
    return Answer(np.array([score]), moved_N, weight_N, sentences_of_pairs()[task])


def answer_cxc(arrays: dict[str, np.ndarray], query: str) -> Answer:
    """Spearman's correlation with equal weight for each query; pairs share the images of captions.

    The published value is a mean over 1,000 draws; this is what it is the mean of, but for terms
    that vanish with the number of queries.
    """
    _, query_N, size_Q = np.unique(arrays[query], return_inverse=True, return_counts=True)
    weight_N = 1 / (len(size_Q) * size_Q[query_N])
    of_x, of_y = (_LevelsOf(arrays[name].astype(np.float64)) for name in ("prediction", "gold"))
    u = of_x.share_below(weight_N) - 0.5
    v = of_y.share_below(weight_N) - 0.5
    a, b, c = ((weight_N * one).sum() for one in (u * v, u * u, v * v))
    of_a = u * v - of_x.share_below(weight_N * v) - of_y.share_below(weight_N * u) - 3 * a
    of_b = u * u - 2 * of_x.share_below(weight_N * u) - 3 * b
    of_c = v * v - 2 * of_y.share_below(weight_N * v) - 3 * c
    rho = a / math.sqrt(b * c)
    moved_N = 100 * weight_N * (of_a / math.sqrt(b * c) - rho / 2 * (of_b / b + of_c / c))
    return Answer(np.array([100 * rho]), moved_N, weight_N, images_of_pairs(arrays))


def images_of_pairs(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """(N, 2) the images of both captions; a caption that is never the first has one of its own."""
    image_of = dict(zip(arrays["caption1"].tolist(), arrays["image"].tolist(), strict=True))
    unknown = int(arrays["image"].max()) + 1
    pairs = []
    for image, other in zip(arrays["image"].tolist(), arrays["caption2"].tolist(), strict=True):
        pairs.append((image, image_of.get(other, unknown + other)))
    return np.array(pairs)


class _LevelsOf:
    """The items of each value, from the lowest to the highest."""

    def __init__(self, values_N: np.ndarray) -> None:
        levels, self.level_N = np.unique(values_N, return_inverse=True)
        self.count = len(levels)

    def share_below(self, part_N: np.ndarray) -> np.ndarray:
        """(N,) the sum of the parts of lower items, and half of those of equal ones."""
        of_level = np.zeros(self.count)
        np.add.at(of_level, self.level_N, part_N)
        below = np.concatenate([[0.0], np.cumsum(of_level)[:-1]])
        return (below + of_level / 2)[self.level_N]


def answer_transfer(arrays: dict[str, np.ndarray], task: str) -> Answer:
    """Accuracy, the mean over folds, each rounded as SentEval does; no item shares anything."""
    folds = arrays.get("fold", np.zeros(len(arrays["gold"]), int))
    _, fold_N, size_F = np.unique(folds, return_inverse=True, return_counts=True)
    weight_N = 1 / (len(size_F) * size_F[fold_N])
    right_N = (arrays["prediction"] == arrays["gold"]).astype(float)
    score = float((weight_N * right_N).sum())
    moved_N = 100 * weight_N * (right_N - score)
    rounded = [round(100 * right_N[fold_N == fold].mean(), 2) for fold in range(len(size_F))]
    return Answer(np.array([np.mean(rounded)]), moved_N, weight_N, _alone(len(right_N)))


def answer_clustering(arrays: dict[str, np.ndarray], task: str) -> Answer:
    """Accuracy under the best matching of clusters and classes, for each of ten clusterings."""
    gold_N = np.unique(arrays["gold"], return_inverse=True)[1]
    values, moved = [], []
    for labels_N in arrays["prediction"].T:
        cluster_N = np.unique(labels_N, return_inverse=True)[1]
        together = np.zeros((cluster_N.max() + 1, gold_N.max() + 1))
        np.add.at(together, (cluster_N, gold_N), 1)
        of_cluster = dict(zip(*optimize.linear_sum_assignment(-together), strict=True))
        right_N = np.array([of_cluster.get(one, -1) for one in cluster_N.tolist()]) == gold_N
        values.append(100 * right_N.mean())
        moved.append(100 * (right_N - right_N.mean()) / len(gold_N))
    weight_N = np.full(len(gold_N), 1 / len(gold_N))
    return Answer(np.array(values), np.mean(moved, axis=0), weight_N, _alone(len(gold_N)))


def answer_fewshot(arrays: dict[str, np.ndarray], task: str) -> Answer:
    """Accuracy for each of ten draws, over the items that the draw did not take as examples."""
    asked_NQ = arrays["prediction"] >= 0
    right_NQ = (arrays["prediction"] == arrays["gold"][:, None]) & asked_NQ
    asked_Q = asked_NQ.sum(axis=0)
    share_Q = right_NQ.sum(axis=0) / asked_Q
    moved_NQ = 100 * (right_NQ - share_Q * asked_NQ) / asked_Q
    items = len(asked_NQ)
    return Answer(100 * share_Q, moved_NQ.mean(axis=1), np.full(items, 1 / items), _alone(items))


def _alone(items: int) -> np.ndarray:
    return np.repeat(np.arange(items)[:, None], 2, axis=1)


QUERIES = {"cxc-promcse/1": "image", "cxc-parekh/1": "caption1"}


def answer(version: Path, run: str, suite: str, protocol: str, task: str) -> Answer:
    """Return one run's answer to one task."""
    arrays = arrays_of(version, f"runs/{run}/predictions/{task}.npz")
    if suite == "cxc":
        return answer_cxc(arrays, QUERIES[protocol])
    by_suite: dict[str, Callable[[dict[str, np.ndarray], str], Answer]] = {
        "sts": answer_sts,
        "transfer": answer_transfer,
        "clustering": answer_clustering,
        "fewshot": answer_fewshot,
    }
    return by_suite[suite](arrays, task)
