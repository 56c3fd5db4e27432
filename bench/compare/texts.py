"""The texts behind stored predictions: read from the evaluation data where it is at hand, in the order of the predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import BenchError
from bench.runs.predictions import Key

if TYPE_CHECKING:
    import numpy as np


class TextsOf:
    """Reads texts of tasks from ``data``; ``reasons`` collects why there are none, one line a task."""

    def __init__(self, data: Path | None) -> None:
        self.data, self.reasons = data, dict[str, str]()

    def __call__(self, key: Key, gold_N: np.ndarray) -> list[tuple[str, ...]] | None:
        import numpy as np

        from bench.datasets import DataFolder
        from bench.suites import suite

        name, task, protocol, text = key
        try:
            found = next((one for one in suite(name).tasks if (one.name, one.protocol) == (task, protocol)), None)
            if found is None:
                raise BenchError(f"the suite {name} has no task of this name and protocol")
            loaded: Any = found.load(DataFolder(self.data, offline=True), text or "any")
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
