"""The geometry of the sentence vectors of STS-B test: tasks alignment and uniformity.

Suite geometry, protocol ``geometry-stsb/1``, on unit vectors of every sentence occurrence of the
test split (Wang and Isola 2020; SimCSE's analysis):

    alignment    mean over pairs with gold > 4 of |x - y|^2
    uniformity   log of the mean over distinct pairs i < j of exp(-2 |x_i - x_j|^2)

Lower is better for both. The predictions also have the values that figures need: cosines by gold
level (PromCSE Figure 3). The detail has the correlation without the most frequent words of the set,
anisotropy and effective rank. (ConPVP Figure 5 removes tokens and averages seven sets: suite sts,
``senteval-all-without-4-tokens/1`` to 64.)
Protocol ``geometry-stsb-raw/1`` is the same on the raw texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.data.sets import RAW, TOKENISED, DataFolder
from bench.data.sets.sts import SentencePairs, read_sts
from bench.records.names import with_text
from bench.records.record import REDUCED
from bench.score.metrics.correlation import if_defined, spearman
from bench.score.metrics.geometry import (
    ABOVE,
    effective_rank,
    mean_cosines,
    potentials,
    singular_values,
    squared_distances,
    uniformity,
    unit,
)
from bench.score.metrics.metric import METRICS
from bench.score.suites.frequent import REMOVED, most_frequent, without_tokens, words
from bench.score.suites.sts import cosines
from bench.score.suites.task import Arrays, LoadedTask, Suite, Task, TaskResult, TaskScore, Vectors
from bench.score.suites.vectors import check_variety, check_vectors, scoring

PROTOCOL = "geometry-stsb/1"
RAW_PROTOCOL = with_text(PROTOCOL, RAW)
SET, SPLIT = "STS-B", "test"
ITEMS = {"alignment": 231, "uniformity": 2758}  # pairs with gold > 4; sentences


@dataclass(frozen=True)
class LoadedGeometry(LoadedTask):
    """The pairs of STS-B test. A sentence that occurs twice counts twice."""

    task: Task
    data: SentencePairs

    @property
    def sentences(self) -> list[str]:
        every = list(self.original)
        for first, second in self.reduced.values():
            every += first + second
        return every

    @property
    def original(self) -> list[str]:
        """Every occurrence in the data, first sides before second."""
        return self.data.sentences1 + self.data.sentences2

    @property
    def n(self) -> int:
        if self.task.name == "alignment":
            return int((self.data.gold > ABOVE).sum())
        return 2 * len(self.data)

    @cached_property
    def reduced(self) -> dict[str, tuple[list[str], list[str]]]:
        """Array of the predictions -> both sides of the pairs without the k most frequent words.

        Empty for uniformity.
        """
        if self.task.name != "alignment":
            return {}
        frequent = most_frequent(self.original, words, max(REMOVED))
        return {
            f"without_{k}_cosine": (
                remove_words(self.data.sentences1, frequent[:k]),
                remove_words(self.data.sentences2, frequent[:k]),
            )
            for k in REMOVED
        }

    def score(self, vectors: Vectors) -> TaskResult:
        """Score the task. Raises RunFailed if the vectors cannot be scored."""
        sentences, name = self.original, self.task.name
        pairs = self.data
        with scoring(name, "did the training collapse?"):
            x_ND = unit(
                check_variety(check_vectors(vectors(sentences), sentences, name), sentences, name)
            )
            if name == "alignment":
                sides = {"cosine": (pairs.sentences1, pairs.sentences2)} | self.reduced
                predictions = {
                    "prediction": squared_distances(x_ND[: len(pairs)], x_ND[len(pairs) :]),
                    "gold": pairs.gold,
                    "subset": np.full(len(pairs), SET),
                    **{key: cosines(*both, vectors, name) for key, both in sides.items()},
                }
            else:
                predictions = {
                    "prediction": potentials(x_ND),
                    "subset": np.full(len(x_ND), SET),
                    "mean_cosine": mean_cosines(x_ND),
                    "singular_values": singular_values(x_ND),
                }
            result = self.result(predictions)
        return replace(
            result,
            detail={
                "set": SET,
                "split": SPLIT,
                "zero_vectors": int((~x_ND.any(axis=1)).sum()),
                **result.detail,
            },
        )


def remove_words(sentences: Sequence[str], gone: Collection[str]) -> list[str]:
    """Remove words from sentences; a sentence without other words becomes a blank."""
    return [text.strip() or " " for text in without_tokens(sentences, words, gone)]


def score_geometry(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions. Raises ValueError if the value is undefined."""
    prediction_N, whole = predictions["prediction"], REDUCED not in predictions
    n, detail = len(prediction_N), dict[str, Any]()
    if task == "uniformity":
        if whole:
            detail = {
                "pairs": n * (n - 1) // 2,
                "anisotropy": float(predictions["mean_cosine"].mean()),
                "effective_rank": effective_rank(predictions["singular_values"]),
            }
        return TaskScore(uniformity(prediction_N), n, detail=detail)
    gold_N = predictions["gold"]
    positive_N = gold_N > ABOVE
    if not positive_N.any():
        raise ValueError(f"no pair with a gold score above {ABOVE:g}")
    if whole:
        arrays = {0: "cosine", **{k: f"without_{k}_cosine" for k in REMOVED}}
        detail = {
            "positive": f"gold > {ABOVE:g}",
            "without_frequent_words": [
                {"k": k, "spearman": if_defined(spearman, predictions[name], gold_N)}
                for k, name in arrays.items()
            ],
        }
    return TaskScore(float(prediction_N[positive_N].mean()), int(positive_N.sum()), detail=detail)


def _read(task: Task, data: DataFolder, *, text: str) -> LoadedGeometry:
    return LoadedGeometry(task, read_sts(data, SET, text=text, split=SPLIT))


def _task(name: str, protocol: str, text: str) -> Task:
    needs: tuple[str, ...] = ("prediction", "subset")
    if name == "alignment":
        needs = (*needs, "gold")
    return Task(
        suite="geometry",
        name=name,
        protocol=protocol,
        metric=METRICS[name],
        n=ITEMS[name],
        data=(SET,),
        read=partial(_read, text=text),
        rescore=score_geometry,
        needs=needs,
    )


SUITE = Suite(
    name="geometry",
    title="Geometry of the vectors",
    description=(
        "Are paraphrases close to each other, and all sentences spread evenly over the sphere? "
        "Alignment and uniformity on STS-B."
    ),
    tasks=tuple(_task(name, PROTOCOL, TOKENISED) for name in ITEMS),
    on_request=tuple(_task(name, RAW_PROTOCOL, RAW) for name in ITEMS),
    average=None,
    docs="suites.md#geometry",
    extra_detail=("set", "split", "zero_vectors", "cosine_edges", "cosine_by_gold"),
)
