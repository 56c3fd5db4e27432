"""Rated sentence pairs.

The prediction for a pair is the cosine of its two vectors; nothing is trained.

Suite sts, protocol ``senteval-all/1``: the seven STS tasks as SimCSE and the papers after it score
them. A task's value is one Spearman correlation over the pairs of all its sub-datasets together
("all"), x 100. The detail has "mean" and "wmean" over sub-datasets, which earlier papers print, and
Pearson. Protocol ``senteval-all-raw/1`` has the texts as their organisers published them.
Protocols ``senteval-all-without-4-tokens/1`` to 64 are the same on texts from which the most
frequent tokens of STS-B test are removed (ConPVP Figure 5).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from msgspec import structs

from bench.base.errors import DataMissing, RunFailed
from bench.data.sets import RAW, TOKENISED, DataFolder, data_set
from bench.data.sets.cxc import RatedCaptions
from bench.data.sets.sts import STS_TASKS, SentencePairs, read_sts
from bench.records.names import WITHOUT_TOKENS, with_text
from bench.score.metrics.correlation import (
    Grouped,
    correlate_groups,
    paired_cosine,
    pearson,
    spearman,
)
from bench.score.metrics.metric import SPEARMAN
from bench.score.suites.frequent import REMOVED, Tokens, most_frequent, without_tokens, words
from bench.score.suites.task import (
    Arrays,
    LoadedTask,
    RunPlace,
    Suite,
    Task,
    TaskResult,
    TaskScore,
    Vectors,
)
from bench.score.suites.vectors import check_variety, check_vectors, scoring

PROTOCOL = "senteval-all/1"
RAW_PROTOCOL = with_text(PROTOCOL, RAW)
COUNTED = "STS-B"  # whose test split's tokens are counted
REMOVED_TOKENS = "removed_tokens"
AT_ONCE = 8192  # pairs: bounds the copies of their vectors
WITH_ALL_SPLITS = "SICK-R"  # also scored on train, dev and test together, as mteb does
SAME_COSINES = "the model gives every pair the same similarity: did its training collapse?"


@dataclass(frozen=True)
class LoadedPairs(LoadedTask):
    """Pairs that are scored by the cosines of their vectors."""

    task: Task
    data: SentencePairs
    # all splits of the set, if they are scored in addition to the test split
    whole: SentencePairs | None = None

    @property
    def sentences(self) -> list[str]:
        source = self.whole or self.data  # all splits contain the test split
        return source.sentences1 + source.sentences2

    def score(self, vectors: Vectors) -> TaskResult:
        return self.score_sides(vectors, vectors)

    def score_sides(self, of_first: Vectors, of_second: Vectors) -> TaskResult:
        """Score the pairs; each side may have its own vectors.

        Raises RunFailed if the vectors cannot be scored.
        """
        name, pairs = self.task.name, self.data
        predictions: dict[str, np.ndarray] = {
            "prediction": cosines(pairs.sentences1, pairs.sentences2, of_first, name, of_second),
            "gold": pairs.gold,
            "subset": np.array(pairs.subset, dtype=str),
        }
        if np.ptp(predictions["prediction"]) == 0:
            # names the sentence, if that is why
            check_variety(of_first(pairs.sentences1), pairs.sentences1, name)
        if isinstance(pairs, RatedCaptions):
            predictions |= {
                "image": pairs.image,
                "caption1": pairs.caption1,
                "caption2": pairs.caption2,
            }
        if self.whole is not None:
            predictions["all_splits_prediction"] = cosines(
                self.whole.sentences1, self.whole.sentences2, of_first, name, of_second
            )
            predictions["all_splits_gold"] = self.whole.gold
        return self.result(predictions)


@dataclass(frozen=True)
class LoadedWithoutTokens(LoadedPairs):
    """Pairs without the k tokens of the encoder that are most frequent in STS-B test.

    If an encoder's tokens are not known, its tokens are the words between white space.
    """

    counted: SentencePairs | None = None
    k: int = 0

    @property
    def sha256(self) -> str:
        """Hash of the pairs and of the texts that are counted."""
        assert self.counted is not None
        both = f"{self.data.sha256} {self.counted.sha256}"
        return hashlib.sha256(both.encode()).hexdigest()

    def score(self, vectors: Vectors) -> TaskResult:
        return self.score_without(words, vectors)

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        return self.score_without(place.tokens or words, vectors)

    def score_without(self, tokens: Tokens, vectors: Vectors) -> TaskResult:
        """Score the pairs without the most frequent of these tokens."""
        assert self.counted is not None
        texts = self.counted.sentences1 + self.counted.sentences2
        gone = most_frequent(texts, tokens, self.k)
        reduced = replace(
            self.data,
            sentences1=without_tokens(self.data.sentences1, tokens, gone),
            sentences2=without_tokens(self.data.sentences2, tokens, gone),
        )
        result = LoadedPairs(self.task, reduced).score(vectors)
        return structs.replace(result, detail={**result.detail, REMOVED_TOKENS: gone})


def dev_task(data: DataFolder, text: str | None = None) -> LoadedPairs:
    """Read STS-B dev, 1,500 pairs that select checkpoints.

    Takes the tokenised form if it is available, else another one.
    """
    return LoadedPairs(_task("STS-B"), read_sts(data, "STS-B", text=text or "any", split="dev"))


CLEAN_DEV = "sts-dev-clean"


@dataclass(frozen=True)
class LoadedCleanDev(LoadedTask):
    """Pairs of STS-B dev and SICK's trial split that no set of the suite tests.

    Checkpoints are selected by the mean of the two Spearman correlations, because the two sets were
    rated on different scales.
    """

    parts: tuple[SentencePairs, ...]

    @property
    def sentences(self) -> list[str]:
        return [
            sentence for part in self.parts for sentence in (*part.sentences1, *part.sentences2)
        ]

    @property
    def sha256(self) -> str:
        """Hash of the text and the gold score of every remaining pair, in order."""
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
        """Score both parts. Raises RunFailed if the vectors cannot be scored."""
        each = {}
        for part in self.parts:
            cosine = cosines(part.sentences1, part.sentences2, vectors, f"{CLEAN_DEV}, {part.name}")
            with scoring(f"{CLEAN_DEV}, {part.name}", "did the training collapse?"):
                each[part.name] = spearman(cosine, part.gold)
        return TaskResult(
            suite="sts",
            task=CLEAN_DEV,
            protocol=PROTOCOL,
            metric=SPEARMAN.name,
            value=sum(each.values()) / len(each),
            n=self.n,
            detail={"each": each},
        )


def pair_key(*pair: str) -> frozenset[str]:
    """Letters and digits of a pair, lower-cased, without its order and punctuation."""
    return frozenset("".join(filter(str.isalnum, sentence.lower())) for sentence in pair)


def find_test_sets(pairs: SentencePairs, data: DataFolder) -> list[tuple[str, ...]]:
    """Find the sets of the suite that have each pair in their test split. Raises DataMissing."""
    tests = {
        test.name: set(map(pair_key, test.sentences1, test.sentences2))
        for test in (read_sts(data, name, text="any") for name in STS_TASKS)
    }
    return [
        tuple(name for name, test in tests.items() if key in test)
        for key in map(pair_key, pairs.sentences1, pairs.sentences2)
    ]


def clean_dev_task(data: DataFolder, text: str = "any") -> LoadedCleanDev:
    """Read SICK trial and STS-B dev without the pairs that a set of the suite tests.

    Needs the test splits of all of them: raises DataMissing if one is missing.
    """
    parts = []
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
    return LoadedCleanDev(tuple(parts))


def cosines(
    sentences1: Sequence[str],
    sentences2: Sequence[str],
    vectors: Vectors,
    task: str,
    of_second: Vectors | None = None,
) -> np.ndarray:
    """Compute the cosine of every pair, (N,) float32.

    It is computed in float64, and rounded to the precision of an encoder's float32 vectors. A pair
    of identical sentences has exactly 1 (0 for a zero vector). ``of_second``: the second sentences
    have other vectors, also of identical ones. Raises RunFailed, naming the task and the first bad
    sentence, for vectors of a wrong shape or with NaN or infinity.
    """
    of_second = of_second or vectors
    if len(sentences1) > AT_ONCE:
        return np.concatenate(
            [
                cosines(
                    sentences1[i : i + AT_ONCE],
                    sentences2[i : i + AT_ONCE],
                    vectors,
                    task,
                    of_second,
                )
                for i in range(0, len(sentences1), AT_ONCE)
            ]
        )
    a_ND = check_vectors(vectors(sentences1), sentences1, task)
    b_ND = np.array(check_vectors(of_second(sentences2), sentences2, task))
    if a_ND.shape != b_ND.shape:
        raise RunFailed(f"{task}: vectors of {a_ND.shape[1]} and {b_ND.shape[1]} dimensions")
    if of_second is vectors:
        # an encoder may round one sentence in two ways; its two vectors still mean the same
        same = [i for i, sentence in enumerate(sentences1) if sentence == sentences2[i]]
        b_ND[same] = a_ND[same]
    return paired_cosine(a_ND, b_ND).astype(np.float32)


def score_pairs(predictions: Arrays, task: str) -> TaskScore:
    """Score stored predictions, as ``LoadedPairs.score`` does after encoding."""
    ranked, linear = correlations(predictions, task)
    detail: dict[str, Any] = {
        "mean": ranked.mean,
        "wmean": ranked.wmean,
        "pearson": {"all": linear.all, "mean": linear.mean, "wmean": linear.wmean},
        "subsets": by_subset(ranked, linear),
    }
    if "all_splits_prediction" in predictions:
        both = predictions["all_splits_prediction"], predictions["all_splits_gold"]
        with scoring(task, SAME_COSINES):
            detail["all_splits"] = {
                "spearman": spearman(*both),
                "pearson": pearson(*both),
                "n": len(both[0]),
            }
    return TaskScore(ranked.all, len(predictions["prediction"]), detail=detail)


def correlations(predictions: Arrays, task: str) -> tuple[Grouped, Grouped]:
    """Compute Spearman and Pearson with gold, over all items and within sub-datasets.

    Raises RunFailed if one is undefined over all items.
    """
    sides = predictions["prediction"], predictions["gold"], predictions["subset"].tolist()
    with scoring(task, SAME_COSINES):
        return correlate_groups(*sides, spearman), correlate_groups(*sides, pearson)


def by_subset(ranked: Grouped, linear: Grouped) -> dict[str, dict[str, Any]]:
    """Return correlations and number of items of each sub-dataset, for a record's detail."""
    return {
        name: {"spearman": ranked.each[name], "pearson": linear.each[name], "n": n}
        for name, n in ranked.sizes.items()
    }


def _read(task: Task, data: DataFolder, *, text: str) -> LoadedPairs:
    pairs, whole = read_sts(data, task.name, text=text), None
    if task.name == WITH_ALL_SPLITS:
        # the other splits are for comparison only; the protocol needs the test split alone
        with contextlib.suppress(DataMissing):
            whole = read_sts(data.as_it_is, task.name, text=text, split="all")
    return LoadedPairs(task, pairs, whole)


def _read_without_tokens(task: Task, data: DataFolder, *, k: int) -> LoadedWithoutTokens:
    pairs, counted = read_sts(data, task.name), read_sts(data, COUNTED)
    return LoadedWithoutTokens(task, pairs, counted=counted, k=k)


def _task_without_tokens(name: str, k: int) -> Task:
    return replace(
        _task(name),
        protocol=with_text(PROTOCOL, WITHOUT_TOKENS.format(k)),
        data=tuple(dict.fromkeys((name, COUNTED))),
        read=partial(_read_without_tokens, k=k),
    )


def _task(name: str, protocol: str = PROTOCOL, text: str = TOKENISED) -> Task:
    known = data_set(name)
    gold = {
        str(file.subset): file.filled or file.rows for file in known.files if file.role == "gold"
    }
    return Task(
        suite="sts",
        name=name,
        protocol=protocol,
        metric=SPEARMAN,
        n=known.items["test"],
        data=(name,),
        subsets=gold or {name: known.items["test"]},
        read=partial(_read, text=text),
        rescore=score_pairs,
        needs=("prediction", "gold", "subset"),
    )


SUITE = Suite(
    name="sts",
    title="Semantic textual similarity",
    description=(
        "Do cosines of sentence vectors rank pairs as people do? Seven English sets, no training "
        "on them."
    ),
    tasks=tuple(_task(name) for name in STS_TASKS),
    on_request=(
        *(_task(name, RAW_PROTOCOL, RAW) for name in STS_TASKS),
        *(_task_without_tokens(name, k) for k, name in product(REMOVED, STS_TASKS)),
    ),
    average=STS_TASKS,
    docs="suites.md#sts",
    extra_detail=(REMOVED_TOKENS,),
)
