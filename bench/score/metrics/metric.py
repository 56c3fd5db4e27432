"""Metrics: how a score is named, printed, compared and tested. A new metric is one object.

Legend: N items, R repetitions of one run (k-means seeds, draws of few examples), S seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench.score.influence import (
    Influence,
    move_accuracy,
    move_matched_accuracy,
    move_mean,
    move_sampled_spearman,
    move_spearman,
)
from bench.score.metrics.geometry import move_alignment, move_uniformity
from bench.score.metrics.judged_influence import (
    move_average_precision,
    move_best_accuracy,
    move_best_f1,
)

if TYPE_CHECKING:
    from bench.records.predictions import Predicted


@dataclass(frozen=True, kw_only=True)
class Metric:
    """How the scores of a task are shown, compared and checked.

        SHARE = Metric(name="share-right", label="share of right answers in %")
        TASK = Task(metric=SHARE, ...)

    Shapes: N items, R repetitions of one run (k-means seeds, draws of few examples).

    Attributes:
        name: Name in records and files.
        label: Words for readers of tables; the name if empty.
        decimals: Decimals that tables print. Values that are printed alike share a mark.
        higher_is_better: False if less is better: then tables do not rank their rows by it.
        ranked: True if the score depends only on the order of a run's predictions.
        answers: True if predictions are classes, and right if they equal the gold value.
        averaged: True if a prediction is the score of its item, from 0 to 1, and the task's score
            their mean x 100.
        by_query: True if predictions have an array with the query of each pair, and all queries
            weigh the same. The recorded value is a mean over draws of one pair for each query.
        has_gold: False if the items have no gold values.
        dimensions: How many dimensions the predictions of one run may have: 1 for (N,), 2 for (N,
            R).
        influence: Computes how far each item moves the score; tables compute intervals and tests
            from it. Without it there are none.
        exact: True if the values of ``influence`` are the recorded ones, up to rounding within
            folds.
    """

    name: str
    label: str = ""
    decimals: int = 2
    higher_is_better: bool = True
    ranked: bool = False
    answers: bool = False
    averaged: bool = False
    by_query: bool = False
    has_gold: bool = True
    dimensions: tuple[int, ...] = (1,)
    influence: Callable[[Predicted], Influence] | None = None
    exact: bool = True

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.name)

    def move(self, p: Predicted) -> Influence:
        """Compute how far each item moves the value of each seed.

        Args:
            p: Predictions of several seeds.

        Returns:
            The value of each seed, and the influence of each item.

        Raises:
            ValueError: If the metric has no influence function, the predictions have other
                dimensions than it takes, or a value is undefined (one side of a correlation is
                constant).
        """
        if self.influence is None:
            raise ValueError(f"{p.task}: no statistics of {self.name}")
        self.check_dimensions(p)
        return self.influence(p)

    def check_dimensions(self, p: Predicted) -> None:
        """Check the dimensions of predictions.

        Args:
            p: Predictions of several seeds.

        Raises:
            ValueError: If they have other dimensions than the metric takes.
        """
        shape = np.shape(p.prediction_SN)
        if len(shape) - 1 not in self.dimensions:
            for_whom = f"{len(p.seeds)} seeds and {p.n_items} items"
            raise ValueError(f"{p.task}: predictions of shape {shape} for {for_whom}")


SPEARMAN = Metric(
    name="spearman",
    label="Spearman's rank correlation × 100",
    ranked=True,
    influence=move_spearman,
)
SPEARMAN_BOOTSTRAP = Metric(
    name="spearman-bootstrap",
    label="Spearman's rank correlation × 100, mean over 1,000 draws of the protocol",
    ranked=True,
    by_query=True,
    influence=move_sampled_spearman,
    exact=False,
)
ACCURACY = Metric(
    name="accuracy",
    label="accuracy in %",
    answers=True,
    dimensions=(1, 2),
    influence=move_accuracy,
)
NDCG = Metric(
    name="ndcg@10",
    label="nDCG@10 × 100",
    averaged=True,
    influence=move_mean,
)
AVERAGE_PRECISION = Metric(
    name="average-precision",
    label="average precision × 100",
    ranked=True,
    influence=move_average_precision,
)
BEST_F1 = Metric(
    name="best-f1",
    label="F1 × 100 at its best threshold",
    ranked=True,
    influence=move_best_f1,
)
BEST_ACCURACY = Metric(
    name="best-accuracy",
    label="accuracy in % at its best threshold",
    ranked=True,
    influence=move_best_accuracy,
)
CLUSTERING_ACCURACY = Metric(
    name="clustering-accuracy",
    label="accuracy in % under the best matching of clusters and classes",
    dimensions=(2,),
    influence=move_matched_accuracy,
)
ALIGNMENT = Metric(
    name="alignment",
    decimals=3,
    higher_is_better=False,
    influence=move_alignment,
)
UNIFORMITY = Metric(
    name="uniformity",
    decimals=3,
    higher_is_better=False,
    has_gold=False,
    influence=move_uniformity,
)

SUITE_METRICS = (
    SPEARMAN,
    SPEARMAN_BOOTSTRAP,
    ACCURACY,
    NDCG,
    AVERAGE_PRECISION,
    BEST_F1,
    BEST_ACCURACY,
    CLUSTERING_ACCURACY,
    ALIGNMENT,
    UNIFORMITY,
)
"""The metrics of this package's own suites."""
METRICS = {metric.name: metric for metric in SUITE_METRICS}
"""Name -> the metric that this package knows by it."""


def metric_named(name: str) -> Metric:
    """Return the metric of this package with that name, or a metric with nothing but the name."""
    return METRICS.get(name) or Metric(name=name)
