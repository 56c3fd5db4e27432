"""What one method said on one task: the numbers that every test and interval starts from.

Legend: S training seeds, N items, R repetitions of one run (k-means seeds, draws of few examples).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DIMENSIONS = {
    "spearman": (2,),
    "spearman-bootstrap": (2,),
    "accuracy": (2, 3),
    "clustering-accuracy": (3,),
}
"""Metrics whose cells have statistics, by the names that run records use -> how many dimensions predictions have."""
METRICS = tuple(DIMENSIONS)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of one method on one task, all its training seeds. Two objects are equal only where they are one.

    Raises ValueError for a metric without statistics, for shapes that do not fit, seeds that are named twice, values that are
    not finite.
    """

    task: str
    metric: str
    """One of ``METRICS``."""
    seeds: tuple[int | None, ...]
    """(S,) training seeds; None: nothing in this method is random. Only a single seed may be None."""
    prediction_SN: NDArray[np.generic]
    """(S, N), or (S, N, R) for clusterings and few-shot draws (-1: not tested in this draw); items in the data's order."""
    gold_N: NDArray[np.generic]
    fold_N: NDArray[np.generic] | None = None
    """Accuracy only: the fold that each item was tested in. The value is the mean over folds, each as heavy as the next."""
    query_N: NDArray[np.generic] | None = None
    """"spearman-bootstrap" only: the query of each pair. Every query is as heavy as the next, its pairs share its weight."""
    shared_NK: NDArray[np.integer] | None = None
    """(N, 1) or (N, 2): numbers of what an item may share with others, from 0: its two sentences, the images of its two captions.
    None: pairs of one query share that, every other item stands for itself."""
    universe: str = ""
    """Whose numbers those are: tasks of one universe share what has one number. Empty: of this task alone."""
    moved_SN: Floats | None = None
    """(S, N) how far each item moves the value, in points, where the metric is none of ``METRICS``: as its suite's scorer says."""
    score_S: Floats | None = None
    """(S,) the recorded values, if the printed number is to be met exactly: SentEval rounds within folds, CxC samples."""

    def __post_init__(self) -> None:
        shape, items, seeds = np.shape(self.prediction_SN), len(self.gold_N), self.seeds
        numbers = (self.prediction_SN, self.gold_N, self.score_S)
        shapes: dict[str, list[tuple[int, ...]]] = {
            "fold_N": [(items,)],
            "query_N": [(items,)],
            "shared_NK": [(items, 1), (items, 2)],
            "score_S": [(len(seeds),)],
        }
        wrong = {
            f"no statistics for the metric '{self.metric}'; there are for {', '.join(METRICS)}": (
                self.metric not in METRICS and self.moved_SN is None
            ),
            f"predictions of shape {shape} for {len(seeds)} seeds and {items} items": (
                len(shape) not in DIMENSIONS.get(self.metric, (2,))
                or shape[:2] != (len(seeds), items)
                or 0 in shape
            ),
            f"the seeds {seeds} are not those of different runs of one method": (
                len(set(seeds)) < len(seeds) or (None in seeds and len(seeds) > 1)
            ),
            **{
                f"{name} has the shape {np.shape(value)}, there are {items} items": (
                    np.shape(value) not in fitting
                )
                for name, fitting in shapes.items()
                if (value := getattr(self, name)) is not None
            },
            "a sampled correlation needs the query of every pair": (
                self.metric == "spearman-bootstrap" and self.query_N is None
            ),
            "NaN or infinity among the values": not all(
                np.isfinite(values).all() for values in numbers if values is not None
            ),
        }
        problem = next((text for text, holds in wrong.items() if holds), "")
        if problem:
            raise ValueError(f"{self.task}: {problem}")

    @property
    def n_items(self) -> int:
        return len(self.gold_N)

    @property
    def ids_NK(self) -> NDArray[np.integer] | None:
        """What items share with others; None where they share nothing."""
        if self.shared_NK is None and self.query_N is not None:
            return np.unique(self.query_N, return_inverse=True)[1].reshape(-1, 1)
        return self.shared_NK

    def of_seeds(self, seeds: Sequence[int | None]) -> Predicted:
        """The same with these seeds only, in this order. Raises ValueError for one that is not there."""
        if tuple(seeds) == self.seeds:
            return self
        rows = [self.seeds.index(seed) for seed in seeds]
        score_S, moved_SN = (
            None if own is None else own[rows] for own in (self.score_S, self.moved_SN)
        )
        return replace(
            self,
            seeds=tuple(seeds),
            prediction_SN=self.prediction_SN[rows],
            score_S=score_S,
            moved_SN=moved_SN,
        )


def same_items(a: Predicted, b: Predicted) -> None:
    """Raises ValueError where two methods were not asked the same: another task, metric, gold value, query or sentence."""
    if (a.task, a.metric) != (b.task, b.metric):
        raise ValueError(f"{a.task} by {a.metric} and {b.task} by {b.metric} are not one task")
    if np.shape(a.prediction_SN)[2:] != np.shape(b.prediction_SN)[2:]:
        raise ValueError(f"{a.task}: the two runs have different numbers of repetitions")
    for name, words in (
        ("gold_N", "gold values"),
        ("query_N", "queries"),
        ("shared_NK", "sentences"),
    ):
        if not np.array_equal(getattr(a, name), getattr(b, name)):  # None equals None, and no array
            raise ValueError(f"{a.task}: the two runs have different {words}")
