"""A suite of three tiny tasks under one protocol: two of one metric, and one of another with a
scorer of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.data.sets import DataFolder
from bench.score.metrics.correlation import spearman
from bench.score.suites import (
    Arrays,
    LoadedTask,
    Suite,
    Task,
    TaskResult,
    TaskScore,
    check_variety,
    check_vectors,
)

GOLD = (5.0, 4.5, 4.0, 3.0, 2.0, 1.0, 0.5, 0.0)
OFFSET = 0.0
"""What a test adds to each score, as if the suite's code had changed."""
SETS = {"YesNo": GOLD, "First": GOLD[:6], "Second": GOLD[2:]}


@dataclass(frozen=True)
class Ratings:
    name: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()

    def __len__(self) -> int:
        return len(SETS[self.name])


@dataclass(frozen=True)
class LoadedRatings(LoadedTask):
    task: Task
    data: Ratings

    @property
    def sentences(self) -> Sequence[str]:
        return [f"{self.data.name} {i}" for i in range(len(self.data))]

    def score(self, vectors: Any) -> TaskResult:
        checked_ND = check_vectors(vectors(self.sentences), self.sentences, self.task.name)
        check_variety(checked_ND, self.sentences, self.task.name)
        gold_N = np.array(SETS[self.data.name])
        return self.result(
            {
                "prediction": checked_ND[:, 0].astype(float),
                "gold": gold_N,
                "subset": np.full(len(gold_N), self.data.name),
            }
        )


def score_ratings(arrays: Arrays, name: str) -> TaskScore:
    return TaskScore(OFFSET + spearman(arrays["prediction"], arrays["gold"]), len(arrays["gold"]))


def score_yes_no(arrays: Arrays, name: str) -> TaskScore:
    said = arrays["prediction"] > np.median(arrays["prediction"])
    return TaskScore(100 * float((said == (arrays["gold"] > 2.5)).mean()), len(said))


def read_ratings(task: Task, data: DataFolder) -> LoadedRatings:
    return LoadedRatings(task, Ratings(task.name))


def task_of(name: str, protocol: str = "three/1") -> Task:
    is_yes_no = name == "YesNo"
    return Task(
        suite="three",
        name=name,
        protocol=protocol,
        metric="yes-no-share" if is_yes_no else "spearman",
        n=len(SETS[name]),
        read=read_ratings,
        rescore=score_yes_no if is_yes_no else score_ratings,
    )


def suite_of(names: Sequence[str], averaged: Sequence[str] | None = ("First", "Second")) -> Suite:
    return Suite(
        name="three",
        title="Three tasks",
        description="A share and two rated sets",
        tasks=tuple(map(task_of, names)),
        average=None if averaged is None else tuple(averaged),
        docs="",
    )
