"""What runs said of every item of one task, put together for statistics: read when asked for, and only what is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import BenchError, DataDamaged, DataMissing
from bench.data.sets.sts import sentence_numbers
from bench.runs.predicted import METRICS, Predicted
from bench.runs.record import ScoreKey
from bench.runs.run import Run

QUERIES = {"cxc-promcse/1": "image", "cxc-parekh/1": "caption1"}
"""The array that holds every pair's query, by protocol."""
SENTENCES = "sentences of the STS sets"


def read_predicted(runs: Sequence[Run], key: ScoreKey) -> Predicted:
    """What the runs of one method, one per seed, said on the task of ``key``: float64 or whole numbers as stored.

    Raises DataMissing where a run has no such score or no predictions of it, DataDamaged where a file is none or does not fit,
    BenchError where the runs saw different items, or where the metric has no statistics.
    """
    if not runs:
        raise DataMissing(f"{key.task}: no runs")
    scores = [run.score(key) for run in runs]
    metric = scores[0].metric
    stored: list[Any] = [_arrays(run, key, metric) for run in runs]
    first = stored[0]
    for run, arrays in zip(runs, stored, strict=True):
        pair = f"{key.task}: {run.record.run_id} and {runs[0].record.run_id}"
        for name in ("gold", "fold", "query", "shared"):
            if not np.array_equal(arrays.get(name), first.get(name)):  # None equals None
                raise BenchError(f"{pair} differ in the items' {name}")
        if arrays["prediction"].shape != first["prediction"].shape:
            raise BenchError(f"{pair} have predictions of different shapes")
    try:
        return Predicted(
            task=key.task,
            metric=metric,
            seeds=tuple(run.record.seed for run in runs),
            prediction_SN=np.stack([arrays["prediction"] for arrays in stored]),
            gold_N=first["gold"],
            fold_N=first.get("fold"),
            query_N=first.get("query"),
            shared_NK=first.get("shared"),
            universe=SENTENCES if metric == "spearman" else "",
            score_S=np.array([score.value for score in scores]),
        )
    except ValueError as error:
        raise DataDamaged(f"predictions of {runs[0].record.run_id}: {error}") from None


def has_statistics(metric: str) -> bool:
    """Whether cells of this metric have statistics."""
    return metric in METRICS


def _arrays(run: Run, key: ScoreKey, metric: str) -> dict[str, np.ndarray]:
    """ "prediction", "gold" and, where the task has them, "fold", "query" and "shared", what items share with others."""
    if not has_statistics(metric):
        raise BenchError(f"{key.task}: no statistics of {metric}")
    names = {name: name for name in ("prediction", "gold", "fold", "image", "caption1", "caption2")}
    if metric == "spearman-bootstrap":
        names["query"] = QUERIES.get(key.protocol, "query")
    stored = run.predictions(key, names.values())
    arrays = {name: stored[source] for name, source in names.items() if source in stored}
    _check(arrays, run.predictions_file(key), metric)
    wide = {"f": "float64", **dict.fromkeys("iub", "int64")}  # text stays as it is
    arrays = {
        name: array.astype(wide.get(array.dtype.kind, array.dtype))
        for name, array in arrays.items()
    }
    if (shared := _shared(key.task, arrays)) is not None:
        arrays["shared"] = shared
    return arrays


def _shared(task: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """(N, 2) the sentences of every pair, or the images of its two captions, as numbers; None where that is not known."""
    if not {"image", "caption1", "caption2"} <= set(arrays):
        return sentence_numbers(task, arrays["gold"])
    captions, first = np.unique(arrays["caption1"], return_index=True)
    place = np.minimum(np.searchsorted(captions, arrays["caption2"]), len(captions) - 1)
    met = captions[place] == arrays["caption2"]
    alone = np.unique(arrays["caption2"], return_inverse=True)[1] + int(arrays["image"].max()) + 1
    other = np.where(met, arrays["image"][first][place], alone)
    return np.stack([arrays["image"], other], axis=1)


def _check(arrays: Mapping[str, np.ndarray], path: Path, metric: str) -> None:
    for name in ("prediction", "gold", *(("query",) if metric == "spearman-bootstrap" else ())):
        if name not in arrays:
            raise DataDamaged(f"{path}: no {name} for every item")
    rows = arrays["gold"].shape[0] if arrays["gold"].ndim == 1 else -1
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub" and name in ("prediction", "gold"):
            raise DataDamaged(f"{path}: {name} holds no numbers")
        if array.ndim < 1 or array.shape[0] != rows:
            raise DataDamaged(
                f"{path}: {name} has the shape {array.shape}, for {max(rows, 0)} items"
            )
