"""Clustering of short texts, the eight sets of SCCL.

Suite clustering, protocol ``sccl-kmeans/1``, as the evaluation behind the papers ran it: k-means on
the unchanged vectors (not normalised), as many clusters as classes, k-means++ with ten starts (the
one with the least inertia counts) for each of the seeds 0 to 9; accuracy under the best one-to-one
matching of clusters and classes. The value is the mean over the ten seeds, ``std`` their standard
deviation (of these ten, not n - 1). Protocol ``sccl-kmeans-raw/1`` is the same on the texts that
four sets' own authors published.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.data.sets import RAW, TOKENISED, DataFolder, data_set
from bench.data.sets.clustering import (
    CLUSTERING_TASKS,
    ORIGINAL,
    RAW_TASKS,
    ClassedTexts,
    read_clustering,
)
from bench.records.names import with_text
from bench.score.metrics.clustering import summarise_clusterings
from bench.score.metrics.kmeans import kmeans
from bench.score.metrics.metric import CLUSTERING_ACCURACY
from bench.score.suites.task import Arrays, LoadedTask, Suite, Task, TaskResult, TaskScore, Vectors
from bench.score.suites.vectors import check_variety, float32_vectors, scoring

PROTOCOL = "sccl-kmeans/1"
RAW_PROTOCOL = with_text(PROTOCOL, RAW)
SEEDS = tuple(range(10))
STARTS = 10
ITERATIONS = 300
TOLERANCE = 1e-4


@dataclass(frozen=True)
class LoadedTexts(LoadedTask):
    """Texts to cluster by their vectors."""

    task: Task
    data: ClassedTexts

    @property
    def sentences(self) -> list[str]:
        return self.data.texts

    def score(self, vectors: Vectors) -> TaskResult:
        """Cluster the texts. Raises RunFailed if the vectors cannot be clustered."""
        name, texts = self.data.name, self.data.texts
        x_ND = check_variety(float32_vectors(vectors(texts), texts, name), texts, name)
        with scoring(
            name, "did the training collapse? curve.jsonl in the run's folder has its losses"
        ):
            clusterings = kmeans(
                x_ND,
                len(np.unique(self.data.labels)),
                SEEDS,
                starts=STARTS,
                max_iterations=ITERATIONS,
                tolerance=TOLERANCE,
            )
        return self.result(
            {
                "prediction": np.stack(
                    [clustering.labels_N for clustering in clusterings], axis=1
                ).astype(np.int16),
                "gold": self.data.labels,
                "subset": np.full(len(texts), name),
                "inertia": np.array([clustering.inertia for clustering in clusterings]),
            }
        )


def score_clusters(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions, which have one column of clusters for each seed."""
    with scoring(task):
        agreement = summarise_clusterings(predictions["prediction"], predictions["gold"])
    return TaskScore(
        agreement["accuracy"]["mean"],
        len(predictions["prediction"]),
        agreement["accuracy"]["std"],
        {
            "classes": len(np.unique(predictions["gold"])),
            "seeds": list(range(predictions["prediction"].shape[1])),
            **agreement,
            "inertia": predictions["inertia"].tolist(),
        },
    )


def _read(task: Task, data: DataFolder, *, text: str) -> LoadedTexts:
    return LoadedTexts(task, read_clustering(data, task.name, text=text))


def _task(name: str, protocol: str, text: str) -> Task:
    set_name = name if text == TOKENISED else f"{name}-{ORIGINAL}"
    return Task(
        suite="clustering",
        name=name,
        protocol=protocol,
        metric=CLUSTERING_ACCURACY,
        n=data_set(set_name).items["test"],
        data=(set_name,),
        read=partial(_read, text=text),
        rescore=score_clusters,
    )


SUITE = Suite(
    name="clustering",
    title="Short-text clustering",
    description=(
        "Are the vectors of one topic a cluster? K-means on eight sets of short texts; nothing is "
        "trained on them."
    ),
    tasks=tuple(_task(name, PROTOCOL, TOKENISED) for name in CLUSTERING_TASKS),
    on_request=tuple(_task(name, RAW_PROTOCOL, RAW) for name in RAW_TASKS),
    average=CLUSTERING_TASKS,
    docs="suites.md#clustering",
)
