"""The items that two runs disagree about most: pairs that they rank furthest apart, texts that only
one of them classifies right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import BenchError, UnknownName
from bench.compare.statistics.table import AVERAGE
from bench.data.sets import DataFolder
from bench.records.names import protocol_text
from bench.records.predictions import Predicted, read_predicted, same_items
from bench.records.record import ScoreKey
from bench.records.run import Run
from bench.score.metrics.correlation import mean_ranks
from bench.score.metrics.metric import Metric
from bench.score.suites import OWN, Task, find_metric, find_task

DOCUMENTS = "documents"
"""The array of a search with the ids of the first documents of each query."""
FIRST_DOCUMENTS = 3
"""Documents of a query that are shown."""
Texts = list[tuple[str, ...]]
ReadTexts = Callable[[ScoreKey, np.ndarray], Texts | None]
"""Reads the texts of every item of a task with these gold values; raises BenchError if they are not
available.
"""


@dataclass(frozen=True)
class ItemValue:
    """A number of one item. ``place``: by rank among all items, 0 to 100; None for classes. Where
    only the order is known, that is the value and ``text`` is empty."""

    text: str
    value: float
    place: float | None = None


@dataclass(frozen=True)
class Item:
    """``number``: row in the data, from 1. ``apart``: how far the runs are from each other, 0 to
    100."""

    number: int
    texts: tuple[str, ...] | None
    gold: ItemValue
    first: ItemValue
    second: ItemValue
    apart: float


@dataclass(frozen=True)
class Disagreement:
    """The items of one task that two runs disagree about most, the furthest first."""

    key: ScoreKey
    metric: str
    n: int
    differ: int  # items on which they disagree at all
    items: tuple[Item, ...]
    no_texts: str = ""  # the reason why items have no texts


def disagreements(
    first: Run, second: Run, *, texts: ReadTexts, tasks: Sequence[str] = (), top: int = 10
) -> list[Disagreement]:
    """Compare the tasks that both runs have predictions for, in the first run's order; one protocol
    for the same texts.

    Raises BenchError if the runs share no task, or UnknownName for a task that they do not
    share.
    """
    theirs = {score.key for score in second.record.scores}
    shared: dict[ScoreKey, Metric] = {}
    for score in first.record.scores:
        metric = find_metric(score.suite, score.metric)
        has_items = metric.ranked or metric.answers or metric.averaged
        if score.task != AVERAGE and score.key in theirs and has_items:
            shared[score.key] = metric
    known = {key.task for key in shared}
    for task in tasks:
        if task not in known:
            raise UnknownName("task", task, known, "among the tasks of both runs")
    by_task: dict[tuple[str, str, str], Disagreement] = {}
    error = BenchError("these two runs share no task with predictions", "bench runs RUN")
    for key, metric in shared.items():
        place = (key.suite, key.task, protocol_text(key.protocol))
        if (key.task in tasks or not tasks) and place not in by_task:
            try:
                by_task[place] = _disagreement(key, metric, first, second, texts, top)
            except BenchError as why_not:
                error = why_not
    if not by_task:
        raise error
    return list(by_task.values())


def _disagreement(
    key: ScoreKey, metric: Metric, first: Run, second: Run, texts: ReadTexts, top: int
) -> Disagreement:
    a = read_predicted([first], key, by_query=metric.by_query)
    b = read_predicted([second], key, by_query=metric.by_query)
    try:
        metric.check_dimensions(a)
        metric.check_dimensions(b)
        same_items(a, b)
    except ValueError as error:
        raise BenchError(str(error)) from None
    if a.prediction_SN.shape != b.prediction_SN.shape:
        raise BenchError(f"{key.task}: the two runs have predictions of different shapes")
    values = np.asarray(a.gold_N), a.prediction_SN[0], b.prediction_SN[0]
    if metric.ranked:
        describe = _ranked
        apart_N = np.abs(_places(values[1]) - _places(values[2]))
    elif metric.averaged:
        describe = _scored
        apart_N = 100 * np.abs(values[1] - values[2])
    else:
        describe = partial(_classed, first.score(key).detail.get("classes"))
        apart_N = 100 * np.abs(_right(a) - _right(b))
    rows = [i for i in np.argsort(-apart_N, kind="stable")[:top].tolist() if apart_N[i] > 0]
    shown: Texts | None = None
    no_texts = ""
    try:
        shown = texts(key, values[0])
    except BenchError as error:
        no_texts = error.message
    gold, of_a, of_b = (describe(values_N, rows) for values_N in values)
    if metric.averaged:
        of_a, of_b = (
            _with_documents(first, key, of_a, rows),
            _with_documents(second, key, of_b, rows),
        )
    items = []
    for k, i in enumerate(rows):
        text = shown[i] if shown else None
        items.append(Item(i + 1, text, gold[k], of_a[k], of_b[k], float(apart_N[i])))
    different = int((apart_N > 0).sum())
    return Disagreement(key, a.metric, len(values[0]), different, tuple(items), no_texts)


def _places(values_N: np.ndarray) -> np.ndarray:
    """Return (N,) place by mean rank: 0 for the lowest, 100 for the highest."""
    return 100 * (mean_ranks(values_N) - 1) / max(len(values_N) - 1, 1)


def _right(p: Predicted) -> np.ndarray:
    """Return (N,) shares of correct answers: 0 or 1, or over the draws that tested the item."""
    predicted = p.prediction_SN[0].reshape(p.n_items, -1)
    right = predicted == np.asarray(p.gold_N)[:, None]
    return right.sum(axis=1) / np.maximum((predicted != -1).sum(axis=1), 1)


def _ranked(values_N: np.ndarray, rows: Sequence[int]) -> list[ItemValue]:
    places_N = _places(values_N)
    if values_N.dtype.kind != "f":  # of a version that stores their order alone
        return [ItemValue("", float(places_N[i]), float(places_N[i])) for i in rows]
    return [
        ItemValue(
            f"{values_N[i]:.3f}".rstrip("0").rstrip("."), float(values_N[i]), float(places_N[i])
        )
        for i in rows
    ]


def _scored(values_N: np.ndarray, rows: Sequence[int]) -> list[ItemValue]:
    """Return each item's score; a whole number, such as a count of answers, without decimals."""
    return [
        ItemValue(f"{values_N[i]:.{0 if values_N.dtype.kind in 'iu' else 3}f}", float(values_N[i]))
        for i in rows
    ]


def _with_documents(
    run: Run, key: ScoreKey, values: Sequence[ItemValue], rows: Sequence[int]
) -> list[ItemValue]:
    """Add the ids of the first documents that a run found for each query."""
    documents = run.predictions(key, [DOCUMENTS], shared=True).get(DOCUMENTS)
    if documents is None or documents.ndim != 2 or len(documents) <= max(rows, default=0):
        return list(values)
    named = []
    for value, i in zip(values, rows, strict=True):
        ids = [str(one) for one in documents[i, :FIRST_DOCUMENTS].tolist() if one != ""]
        named.append(replace(value, text=" ".join([value.text, *ids])))
    return named


def _classed(names: object, values_N: np.ndarray, rows: Sequence[int]) -> list[ItemValue]:
    """Return the class of each row; with several draws, each class with its count (-1: none)."""

    def name(value: float) -> str:
        if isinstance(names, list) and 0 <= value < len(names):
            return str(names[int(value)])
        return f"{value:g}"

    classes = []
    for i in rows:
        every = np.atleast_1d(values_N[i])
        counts = Counter(every[every != -1].tolist() if every.size > 1 else every.tolist())
        texts = []
        for value, times in counts.most_common():
            text = name(value)
            if counts.total() > 1:
                text += f" x{times}"
            texts.append(text)
        classes.append(ItemValue(", ".join(texts), float(next(iter(counts), -1))))
    return classes


def read_texts(
    data: Path | None, named: Mapping[str, Task], key: ScoreKey, gold_N: np.ndarray
) -> Texts:
    """Read the items from the evaluation data in the folder ``data``, in the order of the
    predictions. ``named``: the tasks of files that a user named, by protocol.

    Raises BenchError if they are not available.
    """
    if key.suite == OWN and key.protocol not in named:
        raise BenchError(f"name the file of {key.task}: --suite FILE")
    scored = named.get(key.protocol) or find_task(key)
    if scored is None:
        raise BenchError(f"the suite {key.suite} has no task of this name and protocol")
    loaded = scored.load(DataFolder(data, offline=True))
    about: Any = getattr(loaded, "data", loaded)
    texts: Texts = []
    gold = None
    if hasattr(about, "queries"):
        texts = list(about.queries.items())
        gold = about.gold
    elif hasattr(about, "sentences1"):
        texts = list(zip(about.sentences1, about.sentences2, strict=True))
        gold = about.gold
    elif hasattr(about, "labels") and hasattr(about, "split"):
        rows = (about.split == "test").nonzero()[0]
        texts = [tuple(side[i] for side in about.texts) for i in rows]
        gold = about.labels[rows]
    if gold is None or not np.array_equal(gold, gold_N):
        raise BenchError("the data here differs from the data that the runs were scored on")
    return texts
