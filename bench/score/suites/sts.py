"""The seven STS tasks as SimCSE and the papers after it score them: protocol ``senteval-all/1``.

A pair's prediction is the cosine of its two vectors; a task's value is one Spearman correlation over the pairs of all its
sub-datasets together ("all"), x 100. No regressor is trained. "mean" and "wmean" over sub-datasets, which earlier papers
print, and Pearson stand in ``detail``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.base.errors import DataMissing, RunFailed
from bench.data.sets import DataFolder, data_set
from bench.data.sets.cxc import RatedCaptions
from bench.data.sets.sts import STS_TASKS, SentencePairs, read_sts
from bench.score.metrics.correlation import (
    Grouped,
    correlate_groups,
    paired_cosine,
    pearson,
    spearman,
)
from bench.score.suites import (
    Arrays,
    LoadedTask,
    Suite,
    Task,
    TaskResult,
    TaskScore,
    Vectors,
    check_variety,
    check_vectors,
)

PROTOCOL = "senteval-all/1"
AT_ONCE = 8192  # pairs: bounds the copies of their vectors
WITH_ALL_SPLITS = "SICK-R"  # also scored on train, dev and test together, as mteb does
SAME_COSINES = "the model gives every pair the same similarity: did its training collapse?"


@dataclass(frozen=True)
class LoadedPairs(LoadedTask):
    """Pairs that a cosine scores. ``whole`` holds all splits of the set, where they are scored beside the test split."""

    task: Task
    data: SentencePairs
    whole: SentencePairs | None = None

    @property
    def sentences(self) -> list[str]:
        source = self.whole or self.data  # all splits contain the test split
        return source.sentences1 + source.sentences2

    def score(self, vectors: Vectors) -> TaskResult:
        """The task's result. Raises RunFailed where the vectors cannot be scored."""
        name, pairs = self.task.name, self.data
        predictions: dict[str, np.ndarray] = {
            "prediction": cosines(pairs.sentences1, pairs.sentences2, vectors, name),
            "gold": pairs.gold,
            "subset": np.array(pairs.subset, dtype=str),
        }
        if np.ptp(predictions["prediction"]) == 0:
            check_variety(
                vectors(pairs.sentences1), pairs.sentences1, name
            )  # names the sentence, if that is why
        if isinstance(pairs, RatedCaptions):
            predictions |= {
                "image": pairs.image,
                "caption1": pairs.caption1,
                "caption2": pairs.caption2,
            }
        if self.whole is not None:
            predictions["all_splits_prediction"] = cosines(
                self.whole.sentences1, self.whole.sentences2, vectors, name
            )
            predictions["all_splits_gold"] = self.whole.gold
        return self.result(predictions)


def dev_task(data: DataFolder, text: str | None = None) -> LoadedPairs:
    """STS-B dev, which checkpoints are selected on: 1,500 pairs; the tokenised form where it is there, else another."""
    return LoadedPairs(_task("STS-B"), read_sts(data, "STS-B", text=text or "any", split="dev"))


CLEAN_DEV = "sts-dev-clean"


@dataclass(frozen=True)
class LoadedCleanDev(LoadedTask):
    """Pairs to select checkpoints on that no set of the suite tests: of STS-B dev and of SICK's trial split.

    Scored by the mean of the two Spearman correlations, for the two were rated on other scales.
    """

    parts: tuple[SentencePairs, ...]
    dropped: tuple[int, ...]  # of each part, pairs that are test pairs

    @property
    def sentences(self) -> list[str]:
        return [
            sentence for part in self.parts for sentence in (*part.sentences1, *part.sentences2)
        ]

    @property
    def form(self) -> str | None:
        return self.parts[0].form

    @property
    def sha256(self) -> str:
        """Over the text and the gold score of every pair that is left, in order."""
        rows = [
            row
            for part in self.parts
            for row in zip(part.sentences1, part.sentences2, part.gold.tolist(), strict=True)
        ]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    @property
    def n(self) -> int:
        return sum(len(part) for part in self.parts)

    def score(self, vectors: Vectors) -> TaskResult:
        """Raises RunFailed where the vectors cannot be scored."""
        each = {}
        for part in self.parts:
            cosine = cosines(part.sentences1, part.sentences2, vectors, f"{CLEAN_DEV}, {part.name}")
            try:
                each[part.name] = spearman(cosine, part.gold)
            except ValueError as error:
                raise RunFailed(
                    f"{CLEAN_DEV}, {part.name}: {error}", "did the training collapse?"
                ) from None
        return TaskResult(
            suite="sts",
            task=CLEAN_DEV,
            protocol=PROTOCOL,
            metric="spearman",
            value=sum(each.values()) / len(each),
            n=self.n,
            text=self.form,
            detail={"each": each},
        )


def pair_key(first: str, second: str) -> tuple[str, str]:
    """Two pairs with one key are one pair: by letters and digits, whatever their case, order, spaces and punctuation."""
    lower, upper = sorted(
        "".join(filter(str.isalnum, sentence.lower())) for sentence in (first, second)
    )
    return lower, upper


def find_test_sets(pairs: SentencePairs, data: DataFolder) -> list[tuple[str, ...]]:
    """Of each pair, the sets of the suite in whose test split it is. Raises DataMissing where one is not here."""
    tests: dict[str, set[tuple[str, str]]] = {}
    for name in STS_TASKS:
        test = read_sts(data, name, text="any")
        tests[name] = set(map(pair_key, test.sentences1, test.sentences2))
    keys = map(pair_key, pairs.sentences1, pairs.sentences2)
    return [tuple(name for name, test in tests.items() if key in test) for key in keys]


def clean_dev_task(data: DataFolder, text: str = "any") -> LoadedCleanDev:
    """SICK trial and STS-B dev without the pairs that a set of the suite tests. Needs the test splits of all of them: DataMissing."""
    parts, dropped = [], []
    for name in ("STS-B", "SICK-R"):
        whole = read_sts(data, name, text=text, split="dev")
        remaining = [i for i, sets in enumerate(find_test_sets(whole, data)) if not sets]
        parts.append(
            replace(
                whole,
                sentences1=[whole.sentences1[i] for i in remaining],
                sentences2=[whole.sentences2[i] for i in remaining],
                gold=whole.gold[remaining],
                subset=[whole.subset[i] for i in remaining],
            )
        )
        dropped.append(len(whole) - len(remaining))
    return LoadedCleanDev(tuple(parts), tuple(dropped))


def cosines(
    sentences1: Sequence[str], sentences2: Sequence[str], vectors: Vectors, task: str
) -> np.ndarray:
    """Cosine of every pair, (N,) float32: computed in float64, and kept with the digits that an encoder's float32 vectors have. A pair
    of identical sentences has exactly 1 (0 for a zero vector).

    Raises RunFailed, naming the task and the first bad sentence, for vectors of a wrong shape or with NaN or infinity.
    """
    if len(sentences1) > AT_ONCE:
        parts = [slice(first, first + AT_ONCE) for first in range(0, len(sentences1), AT_ONCE)]
        return np.concatenate(
            [cosines(sentences1[part], sentences2[part], vectors, task) for part in parts]
        )
    a_ND = check_vectors(vectors(sentences1), sentences1, task)
    b_ND = np.array(check_vectors(vectors(sentences2), sentences2, task))
    if a_ND.shape != b_ND.shape:
        raise RunFailed(f"{task}: vectors of {a_ND.shape[1]} and of {b_ND.shape[1]} dimensions")
    same_N = np.array(
        [first == second for first, second in zip(sentences1, sentences2, strict=True)], dtype=bool
    )
    b_ND[same_N] = a_ND[
        same_N
    ]  # an encoder may round one sentence two ways; its two vectors still mean the same
    return paired_cosine(a_ND, b_ND).astype(np.float32)


def score_predictions(predictions: Arrays, task: str) -> TaskScore:
    """From stored predictions alone: what ``score`` does after encoding, and what a verifier repeats."""
    ranked, linear = correlations(predictions, task)
    detail: dict[str, Any] = {
        "mean": ranked.mean,
        "wmean": ranked.wmean,
        "pearson": {"all": linear.all, "mean": linear.mean, "wmean": linear.wmean},
        "subsets": by_subset(ranked, linear),
    }
    if "all_splits_prediction" in predictions:
        both = predictions["all_splits_prediction"], predictions["all_splits_gold"]
        try:
            detail["all_splits"] = {
                "spearman": spearman(*both),
                "pearson": pearson(*both),
                "n": len(both[0]),
            }
        except ValueError as error:
            raise RunFailed(f"{task}: {error}", SAME_COSINES) from None
    return TaskScore(ranked.all, len(predictions["prediction"]), detail=detail)


def correlations(predictions: Arrays, task: str) -> tuple[Grouped, Grouped]:
    """Spearman and Pearson of the predictions with gold, over all items and within sub-datasets. Raises RunFailed."""
    prediction, gold, groups = (
        predictions["prediction"],
        predictions["gold"],
        predictions["subset"].tolist(),
    )
    try:
        return correlate_groups(prediction, gold, groups, spearman), correlate_groups(
            prediction, gold, groups, pearson
        )
    except ValueError as error:
        raise RunFailed(f"{task}: {error}", SAME_COSINES) from None


def by_subset(ranked: Grouped, linear: Grouped) -> dict[str, dict[str, Any]]:
    """Of each sub-dataset both correlations and the number of items, for a record's detail."""
    return {
        name: {"spearman": ranked.each[name], "pearson": linear.each[name], "n": n}
        for name, n in ranked.sizes.items()
    }


def _read(task: Task, data: DataFolder, text: str) -> LoadedPairs:
    pairs = read_sts(data, task.name, text=text)
    if task.name == WITH_ALL_SPLITS:
        with contextlib.suppress(
            DataMissing
        ):  # the other splits are for comparison only; the protocol needs the test split alone
            return LoadedPairs(
                task,
                pairs,
                read_sts(data.as_it_is, task.name, text=pairs.form or "any", split="all"),
            )
    return LoadedPairs(task, pairs)


def _task(name: str) -> Task:
    known = data_set(name)
    gold = {
        str(file.subset): file.filled or file.rows for file in known.files if file.role == "gold"
    }
    return Task(
        suite="sts",
        name=name,
        protocol=PROTOCOL,
        metric="spearman",
        n=known.items["test"],
        data=(name,),
        subsets=gold or {name: known.items["test"]},
        read=_read,
        rescore=score_predictions,
        needs=("prediction", "gold", "subset"),
    )


SUITE = Suite(
    name="sts",
    title="Semantic textual similarity",
    description="Do cosines of sentence vectors rank pairs as people do? Seven English sets, no training on them.",
    tasks=tuple(_task(name) for name in STS_TASKS),
    average=STS_TASKS,
    docs="suites.md#sts",
)
