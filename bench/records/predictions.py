"""The predictions of one method on one task: the numbers that every test and interval starts from.

Legend: S training seeds, N items, R repetitions of one run (k-means seeds, draws of few examples).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.base.errors import BenchError, DataDamaged, DataMissing
from bench.data.sets.shared_sentences import sentence_numbers
from bench.records.record import ScoreKey
from bench.records.run import Run

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of one method on one task, with all its training seeds. Compared by identity.

    Raises ValueError for shapes that do not fit, repeated seeds, and values that are not finite.
    """

    task: str
    metric: str
    """Its name in run records."""
    seeds: tuple[int | None, ...]
    """(S,) training seeds; None: nothing in this method is random. Only a single seed may be None.
    """
    prediction_SN: NDArray[np.generic]
    """(S, N), or (S, N, R) for clusterings and few-shot draws (-1: not tested in this draw); items
    in the data's order.
    """
    gold_N: NDArray[np.generic]
    fold_N: NDArray[np.generic] | None = None
    """The fold that each item was tested in, if there are any. The value is the mean over folds,
    with equal weights.
    """
    query_N: NDArray[np.generic] | None = None
    """The query of each pair, if a metric weighs by query. All queries have equal weights, shared
    by their pairs.
    """
    shared_NK: NDArray[np.integer] | None = None
    """(N, 1) or (N, 2): numbers, from 0, of the units that an item may share with others: its two
    sentences, the images of its two captions. None: pairs share their query, other items share
    nothing.
    """
    universe: str = ""
    """Tasks with the same universe share the units with the same numbers.

    Empty: the numbers are of this task alone.
    """
    score_S: Floats | None = None
    """(S,) the recorded values, if the statistic has to equal the printed number: SentEval rounds
    within folds, CxC samples.
    """

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise ValueError(f"{self.task}: {problem}")

    def _problem(self) -> str:
        """Describe the first array that does not fit the others; "" if all do."""
        shape = np.shape(self.prediction_SN)
        items = len(self.gold_N)
        seeds = self.seeds
        if len(shape) not in (2, 3) or shape[:2] != (len(seeds), items) or 0 in shape:
            return f"predictions of shape {shape} for {len(seeds)} seeds and {items} items"
        if len(set(seeds)) < len(seeds) or (None in seeds and len(seeds) > 1):
            return f"the seeds {seeds} are not those of different runs of one method"
        shapes: tuple[tuple[str, Any, tuple[tuple[int, ...], ...]], ...] = (
            ("fold_N", self.fold_N, ((items,),)),
            ("query_N", self.query_N, ((items,),)),
            ("shared_NK", self.shared_NK, ((items, 1), (items, 2))),
            ("score_S", self.score_S, ((len(seeds),),)),
        )
        for name, value, fitting in shapes:
            if value is not None and np.shape(value) not in fitting:
                return f"{name} has the shape {np.shape(value)}, there are {items} items"
        for values in (self.prediction_SN, self.gold_N, self.score_S):
            if values is not None and not np.isfinite(values).all():
                return "NaN or infinity among the values"
        return ""

    @property
    def n_items(self) -> int:
        return len(self.gold_N)

    @property
    def ids_NK(self) -> NDArray[np.integer] | None:
        """The units that items share with others; None if they share nothing."""
        if self.shared_NK is None and self.query_N is not None:
            _, query_N = np.unique(self.query_N, return_inverse=True)
            return query_N.reshape(-1, 1)
        return self.shared_NK

    def of_seeds(self, seeds: Sequence[int | None]) -> Predicted:
        """Return the predictions of these seeds in this order. Raises ValueError for others."""
        if tuple(seeds) == self.seeds:
            return self
        rows = [self.seeds.index(seed) for seed in seeds]
        return replace(
            self,
            seeds=tuple(seeds),
            prediction_SN=self.prediction_SN[rows],
            score_S=None if self.score_S is None else self.score_S[rows],
        )


def same_items(a: Predicted, b: Predicted) -> None:
    """Raise ValueError if two methods differ in task, metric, gold values, queries or sentences."""
    if (a.task, a.metric) != (b.task, b.metric):
        raise ValueError(f"{a.task} by {a.metric} and {b.task} by {b.metric} are different tasks")
    if np.shape(a.prediction_SN)[2:] != np.shape(b.prediction_SN)[2:]:
        raise ValueError(f"{a.task}: the two runs have different numbers of repetitions")
    for name, label in (
        ("gold_N", "gold values"),
        ("query_N", "queries"),
        ("shared_NK", "sentences"),
    ):
        if not _are_equal(getattr(a, name), getattr(b, name)):
            raise ValueError(f"{a.task}: the two runs have different {label}")


def _are_equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    """Return True if both are equal arrays, or both are None."""
    if a is b:
        return True
    return a is not None and b is not None and np.array_equal(a, b)


QUERIES = {
    "cxc-promcse/1": "image",
    "cxc-promcse-raw/1": "image",
    "cxc-parekh/1": "caption1",
    "cxc-parekh-raw/1": "caption1",
}
"""The array that holds every pair's query, by protocol."""
SENTENCES = "sentences of the STS sets"


def read_predicted(
    runs: Sequence[Run], key: ScoreKey, *, by_query: bool = False, has_gold: bool = True
) -> Predicted:
    """Read the predictions of a method's runs, one per seed, on one task: float64, or integers as
    stored. ``by_query``: the metric needs the query of each pair; ``has_gold``: and gold values,
    which are 0 if it has none.

    Raises DataMissing if a run has no such score or no predictions of it, DataDamaged if a file is
    not a predictions file or does not fit, BenchError if the runs saw different items.
    """
    if not runs:
        raise DataMissing(f"{key.task}: no runs")
    scores = [run.score(key) for run in runs]
    metric = scores[0].metric
    stored: list[Any] = []
    for run in runs:
        arrays = _arrays(run, key, by_query=by_query, has_gold=has_gold)
        first = stored[0] if stored else arrays
        problem = _unlike(arrays, first)
        if problem:
            pair = f"{run.record.run_id} and {runs[0].record.run_id}"
            raise BenchError(f"{key.task}: {pair} {problem}")
        stored.append(arrays)
    first = stored[0]
    try:
        return Predicted(
            task=key.task,
            metric=metric,
            seeds=tuple(run.record.seed for run in runs),
            prediction_SN=np.stack([arrays["prediction"] for arrays in stored]),
            gold_N=first["gold"],
            fold_N=first.get("fold"),
            query_N=first.get("query"),
            shared_NK=_shared(key.task, first),
            universe="" if set(_UNITS) <= set(first) else SENTENCES,
            score_S=np.array([score.value for score in scores]),
        )
    except ValueError as error:
        raise DataDamaged(f"predictions of {runs[0].record.run_id}: {error}") from None


def _unlike(arrays: Mapping[str, np.ndarray], first: Mapping[str, np.ndarray]) -> str:
    """Describe what differs between two runs' arrays of the same items; "" if nothing does."""
    for name in ("gold", "fold", "query", *_UNITS):
        if (name in arrays or name in first) and not _are_equal(arrays.get(name), first.get(name)):
            return f"differ in the items' {'shared' if name in _UNITS else name}"
    if arrays["prediction"].shape != first["prediction"].shape:
        return "have predictions of different shapes"
    return ""


def _arrays(run: Run, key: ScoreKey, *, by_query: bool, has_gold: bool) -> dict[str, np.ndarray]:
    """Read "prediction", "gold" and, if the task has them, "fold", "query" and the ``_UNITS``."""
    wanted = list(_NAMES)
    query = QUERIES.get(key.protocol, "query")
    if by_query:
        wanted.append(query)
    stored = run.predictions(key, wanted, shared=True)
    arrays = {name: _widen(stored[name]) for name in _NAMES if name in stored}
    answers = stored.get("prediction")
    if answers is not None and answers.ndim == 2 and answers.dtype.kind == "i":
        arrays["prediction"] = answers  # several classes of each item: four times as large as int64
    if by_query and query in stored:
        arrays["query"] = _widen(stored[query])
    if not has_gold and "prediction" in arrays:
        arrays["gold"] = np.zeros(len(arrays["prediction"]))
    problem = _problem_of(arrays, by_query=by_query)
    if problem:
        raise DataDamaged(f"{run.predictions_file(key)}: {problem}")
    return arrays


def _widen(array: np.ndarray) -> np.ndarray:
    """Return the values as float64 or int64; text is unchanged."""
    if array.dtype.kind == "f":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind in "iub":
        return array.astype(np.int64, copy=False)
    return array


_UNITS = ("image", "caption1", "caption2")
"""Arrays that say which captions pairs share."""
_NAMES = ("prediction", "gold", "fold", *_UNITS)


def _shared(task: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Return (N, 2) numbers of the sentences of every pair, or of the images of its two captions;
    None if they are not known.
    """
    if not set(_UNITS) <= set(arrays):
        return sentence_numbers(task, arrays["gold"])
    captions, first = np.unique(arrays["caption1"], return_index=True)
    place = np.minimum(np.searchsorted(captions, arrays["caption2"]), len(captions) - 1)
    alone = np.unique(arrays["caption2"], return_inverse=True)[1] + int(arrays["image"].max()) + 1
    other = np.where(captions[place] == arrays["caption2"], arrays["image"][first][place], alone)
    return np.stack([arrays["image"], other], axis=1)


def _problem_of(arrays: Mapping[str, np.ndarray], *, by_query: bool) -> str:
    """Describe the first fault in the arrays of a predictions file; "" if there is none."""
    needed = ["prediction", "gold"]
    if by_query:
        needed.append("query")
    for name in needed:
        if name not in arrays:
            return f"no {name} for every item"
    rows = arrays["gold"].shape[0] if arrays["gold"].ndim == 1 else -1
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub" and name in ("prediction", "gold"):
            return f"{name} does not hold numbers"
        if array.ndim < 1 or array.shape[0] != rows:
            return f"{name} has the shape {array.shape} for {max(rows, 0)} items"
    return ""
