"""Crisscrossed Captions: mean and standard deviation of Spearman's correlation over 1,000 draws.

Suite cxc, in the two protocols behind printed numbers. ``cxc-promcse/1``: a query is an image, a
draw takes 2,500 of 5,000 with replacement, by the random calls of PromCSE's code; for PromCSE's own
rows. ``cxc-parekh/1``: a query is a caption, 12,500 of 25,000 without replacement; for the rows
from Parekh et al. and Jain et al. (GloVe, ALIGN, MURAL). Both take one rated pair of each query,
among those that have it as their first caption. Both tasks store the same predictions.
``cxc-promcse-raw/1`` and ``cxc-parekh-raw/1`` are the same on COCO's own captions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from bench.data.sets import RAW, TOKENISED, DataFolder, data_set
from bench.data.sets.cxc import CXC, read_cxc
from bench.data.sets.cxc import OFFICIAL as CXC_OFFICIAL
from bench.records.names import with_text
from bench.score.metrics.metric import SPEARMAN_BOOTSTRAP
from bench.score.metrics.sampled import (
    DRAWS,
    SEED,
    Draw,
    draws_with_replacement,
    draws_without_replacement,
    rank_gold,
    sampled_spearman,
)
from bench.score.suites.sts import SAME_COSINES, LoadedPairs, by_subset, correlations
from bench.score.suites.task import Arrays, Suite, Task, TaskScore
from bench.score.suites.vectors import scoring


class CxcProtocol(NamedTuple):
    """The way in which a draw takes pairs of the predictions."""

    # the array of the predictions that has every pair's query
    query: str
    drawn: Callable[[np.ndarray], Iterator[np.ndarray]]
    summary: str


CXC_PROTOCOLS = {
    "cxc-promcse/1": CxcProtocol(
        "image", draws_with_replacement, "half of the images, with replacement"
    ),
    "cxc-parekh/1": CxcProtocol(
        "caption1", draws_without_replacement, "half of the captions, without replacement"
    ),
}


def drawn_scores(predictions: Arrays, protocol: str) -> np.ndarray:
    """Compute Spearman x 100 of every draw, (1000,); draw i is over the same pairs for every model.

    Raises ValueError if a draw has no correlation.
    """
    query_N = np.unique(predictions[CXC_PROTOCOLS[protocol].query], return_inverse=True)[1]
    gold_N = np.asarray(predictions["gold"], dtype=np.float64)
    draws = _draws(protocol, query_N.astype(np.int64).tobytes(), gold_N.tobytes())
    return sampled_spearman(predictions["prediction"], gold_N, draws)


@lru_cache(maxsize=len(CXC_PROTOCOLS))
def _draws(protocol: str, query: bytes, gold: bytes) -> tuple[Draw, ...]:
    """Draw once for all models, which takes as long as the correlations of one. 50 MB."""
    drawn = CXC_PROTOCOLS[protocol].drawn(np.frombuffer(query, np.int64))
    return tuple(rank_gold(np.frombuffer(gold), drawn))


def score_cxc(predictions: Arrays, task: str, protocol: str) -> TaskScore:
    """Score stored predictions: mean and standard deviation (of these draws, not n - 1)."""
    ranked, linear = correlations(predictions, task)
    with scoring(task, SAME_COSINES):
        values = drawn_scores(predictions, protocol)
    low, median, high = np.percentile(values, [2.5, 50, 97.5])
    n = len(predictions["gold"])
    return TaskScore(
        float(values.mean()),
        n,
        float(values.std()),
        {
            "draws": {
                "count": DRAWS,
                "seed": SEED,
                "of": CXC_PROTOCOLS[protocol].summary,
                "min": float(values.min()),
                "low": float(low),
                "median": float(median),
                "high": float(high),
                "max": float(values.max()),
            },
            "pooled": {"spearman": ranked.all, "pearson": linear.all, "n": n},
            "subsets": by_subset(ranked, linear),
        },
    )


def _read_cxc(task: Task, data: DataFolder, *, text: str) -> LoadedPairs:
    return LoadedPairs(task, read_cxc(data, text=text))


def _task(protocol: str, text: str) -> Task:
    return Task(
        suite="cxc",
        name=CXC,  # under both protocols: their predictions are the same
        protocol=protocol if text == TOKENISED else with_text(protocol, text),
        metric=SPEARMAN_BOOTSTRAP,
        n=data_set(CXC).items["test"],
        data=(CXC if text == TOKENISED else CXC_OFFICIAL,),
        read=partial(_read_cxc, text=text),
        rescore=partial(score_cxc, protocol=protocol),
        needs=("prediction", "gold", "subset", "image", "caption1", "caption2"),
    )


SUITE = Suite(
    name="cxc",
    title="Crisscrossed Captions",
    description=(
        "Do cosines rank pairs of image captions as people do? A domain that no other STS set "
        "shares; nothing is trained on it."
    ),
    tasks=tuple(_task(protocol, TOKENISED) for protocol in CXC_PROTOCOLS),
    on_request=tuple(_task(protocol, RAW) for protocol in CXC_PROTOCOLS),
    average=None,
    docs="suites.md#cxc",
)
