"""The items on which two runs disagree most: pairs that they rank furthest apart, texts that one of them alone classifies right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, UnknownName
from bench.compare.statistics.table import AVERAGE
from bench.runs.predictions import read_predicted
from bench.runs.record import ScoreKey
from bench.runs.run import Run
from bench.score.suites import RANKED

if TYPE_CHECKING:
    import numpy as np

    from bench.runs.predicted import Predicted


Texts = Callable[[ScoreKey, "np.ndarray"], "list[tuple[str, ...]] | None"]
"""The texts of every item of a task whose gold values are given; None where they are not at hand."""


@dataclass(frozen=True)
class ItemValue:
    """A number of one item. ``place``: by rank among all items, 0 to 100; None for classes. Where only the order is known, that is the value
    and ``text`` is empty."""

    text: str
    value: float
    place: float | None = None


@dataclass(frozen=True)
class Item:
    """``number``: row in the data, from 1. ``apart``: how far the runs are from each other, 0 to 100."""

    number: int
    texts: tuple[str, ...] | None
    gold: ItemValue
    first: ItemValue
    second: ItemValue
    apart: float


@dataclass(frozen=True)
class Disagreement:
    """One task: the items on which two runs disagree most, the furthest first."""

    key: ScoreKey
    metric: str
    n: int
    differ: int  # items on which they disagree at all
    items: tuple[Item, ...]

    @property
    def ranked(self) -> bool:
        return self.metric in RANKED


def disagreements(
    first: Run, second: Run, *, texts: Texts, tasks: Sequence[str] = (), top: int = 10
) -> list[Disagreement]:
    """What both runs have predictions of, in the first one's order; one protocol of each task and text form is enough.

    Raises BenchError where the runs share no task, or UnknownName for a task that they do not share.
    """
    keys = {score.key: score.metric for score in first[0].scores if score.task != AVERAGE}
    theirs = {score.key for score in second[0].scores}
    shared = [
        key for key, metric in keys.items() if key in theirs and metric in (*RANKED, "accuracy")
    ]
    for task in tasks:
        if task not in {key[1] for key in shared}:
            raise UnknownName("task", task, {key[1] for key in shared}, "among what both runs have")
    by_task: dict[tuple[str, str, str | None], Disagreement] = {}
    reasons = []
    for key in shared:
        suite, task, _, text = key
        if (tasks and task not in tasks) or (suite, task, text) in by_task:
            continue
        try:
            by_task[suite, task, text] = _disagreement(key, first, second, texts, top)
        except BenchError as error:
            reasons.append(error)
    if not by_task:
        raise (
            reasons[0]
            if reasons
            else BenchError("these two runs share no task with predictions", "bench runs RUN")
        )
    return list(by_task.values())


def _disagreement(key: ScoreKey, first: Run, second: Run, texts: Texts, top: int) -> Disagreement:
    import numpy as np

    from bench.runs.predicted import same_items

    a, b = read_predicted([first], key), read_predicted([second], key)
    try:
        same_items(a, b)
    except ValueError as error:
        raise BenchError(str(error)) from None
    if a.prediction_SN.shape != b.prediction_SN.shape:
        raise BenchError(f"{key[1]}: the two runs have predictions of different shapes")
    gold_N = np.asarray(a.gold_N)
    said = gold_N, a.prediction_SN[0], b.prediction_SN[0]
    describe: Callable[[np.ndarray, Sequence[int]], list[ItemValue]]
    if a.metric in RANKED:
        describe, apart_N = _ranked, np.abs(_places(said[1]) - _places(said[2]))
    else:
        describe, apart_N = (
            partial(_classed, first.score(key).detail.get("classes")),
            100 * np.abs(_right(a) - _right(b)),
        )
    rows = [i for i in np.argsort(-apart_N, kind="stable")[:top].tolist() if apart_N[i] > 0]
    shown = texts(key, gold_N)
    items = tuple(
        Item(i + 1, None if shown is None else shown[i], gold, one, other, float(apart_N[i]))
        for i, gold, one, other in zip(
            rows, *(describe(values_N, rows) for values_N in said), strict=True
        )
    )
    return Disagreement(key, a.metric, len(gold_N), int((apart_N > 0).sum()), items)


def _places(values_N: np.ndarray) -> np.ndarray:
    """(N,) place by mean rank: 0 for the lowest, 100 for the highest."""
    from bench.score.metrics.correlation import mean_ranks

    return 100 * (mean_ranks(values_N) - 1) / max(len(values_N) - 1, 1)


def _right(p: Predicted) -> np.ndarray:
    """(N,) share of right answers: 0 or 1, or over the draws in which the item was tested."""
    import numpy as np

    said = p.prediction_SN[0].reshape(p.n_items, -1)
    right = said == np.asarray(p.gold_N)[:, None]
    return right.sum(axis=1) / np.maximum((said != -1).sum(axis=1), 1)


def _ranked(values_N: np.ndarray, rows: Sequence[int]) -> list[ItemValue]:
    places_N = _places(values_N)
    if values_N.dtype.kind != "f":  # of a version that keeps their order alone
        return [ItemValue("", float(places_N[i]), float(places_N[i])) for i in rows]
    return [
        ItemValue(
            f"{values_N[i]:.3f}".rstrip("0").rstrip("."), float(values_N[i]), float(places_N[i])
        )
        for i in rows
    ]


def _classed(names: object, values_N: np.ndarray, rows: Sequence[int]) -> list[ItemValue]:
    import numpy as np

    def name(value: float) -> str:
        return (
            str(names[int(value)])
            if isinstance(names, list) and 0 <= value < len(names)
            else f"{value:g}"
        )

    classes = []
    for i in rows:
        said = np.atleast_1d(values_N[i])
        said = said[said != -1] if said.size > 1 else said
        parts = [
            name(value) + (f" x{count}" if said.size > 1 else "")
            for value, count in Counter(said.tolist()).most_common()
        ]
        classes.append(ItemValue(", ".join(parts), float(said[0]) if said.size else -1.0))
    return classes


# --- the texts behind stored predictions: read from the evaluation data where it is at hand, in the order of the predictions ---


class TextsOf:
    """Reads texts of tasks from ``data``; ``reasons`` collects why there are none, one line a task."""

    def __init__(self, data: Path | None) -> None:
        self.data, self.reasons = data, dict[str, str]()

    def __call__(self, key: ScoreKey, gold_N: np.ndarray) -> list[tuple[str, ...]] | None:
        import numpy as np

        from bench.data.sets.folder import DataFolder
        from bench.score.suites.from_predictions import find_task

        name, task, _, text = key
        try:
            scored = find_task(key)
            if scored is None:
                raise BenchError(f"the suite {name} has no task of this name and protocol")
            loaded = scored.load(DataFolder(self.data, offline=True), text or "any")
        except BenchError as error:
            self.reasons[task] = error.message
            return None
        rows = _rows(loaded)
        if rows is None or not np.array_equal(rows[1], gold_N):
            self.reasons[task] = "the data that is there is not what the runs were scored on"
            return None
        return rows[0]


def _rows(loaded: Any) -> tuple[list[tuple[str, ...]], np.ndarray] | None:
    """(texts, gold) of every predicted item; None for data of another kind."""
    data: Any = getattr(loaded, "data", loaded)
    if hasattr(data, "sentences1"):
        return list(zip(data.sentences1, data.sentences2, strict=True)), data.gold
    if hasattr(data, "labels") and hasattr(data, "split"):
        rows = (data.split == "test").nonzero()[0]
        return [tuple(side[row] for side in data.texts) for row in rows], data.labels[rows]
    return None
