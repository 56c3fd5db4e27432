"""The built-in check suite: does the machinery train, encode and score? Not evidence about any method.

1,000 generated sentence pairs whose gold value, 0 to 5, is the number of meaning slots that they share by construction
(bench/builtin/README.md). Protocol ``check/1``: Spearman x 100 of cosine against gold over all pairs together; "reworded",
"close" and "swapped" are its sub-datasets.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.datasets import DataFolder
from bench.errors import DataDamaged
from bench.suites import Suite, TaskResult
from bench.suites.sts import cosines, score_predictions
from bench.suites.vectors import Vectors

PROTOCOL = "check/1"
DATA = Path(__file__).parent.parent / "builtin" / "data"
ITEMS = {"dev": 300, "test": 1000}


@dataclass(frozen=True)
class LoadedCheck:
    """The pairs of one split."""

    task: str
    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    gold: np.ndarray
    kind: tuple[str, ...]
    sha256: str
    form: None = None  # it has one text form

    @property
    def sentences(self) -> list[str]:
        return [*self.sentences1, *self.sentences2]

    @property
    def n(self) -> int:
        return len(self.gold)

    def score(self, vectors: Vectors) -> TaskResult:
        """The task's result. Raises RunFailed where the vectors cannot be scored."""
        predictions = {
            "prediction": cosines(self.sentences1, self.sentences2, vectors, self.task),
            "gold": self.gold,
            "subset": np.array(self.kind, dtype=str),
        }
        value, detail = score_predictions(predictions, self.task)
        return TaskResult(
            suite="check", task=self.task, protocol=PROTOCOL, metric="spearman",
            value=value, n=self.n, detail=detail, predictions=predictions,
        )  # fmt: skip


@dataclass(frozen=True)
class CheckTask:
    name: str = "CHECK"
    suite: str = "check"
    protocol: str = PROTOCOL
    metric: str = "spearman"
    data: tuple[str, ...] = ()  # it lies in the package
    n: int = ITEMS["test"]

    def load(self, data: DataFolder | None = None, text: str | None = None) -> LoadedCheck:
        """The 1,000 test pairs; ``data`` and ``text`` are not asked. Raises DataDamaged."""
        return _read("test", self.name)


def check_dev_task(data: DataFolder | None = None, text: str | None = None) -> LoadedCheck:
    """The 300 dev pairs, for choosing a checkpoint where there is no STS-B. Raises DataDamaged."""
    return _read("dev", "CHECK dev")


def _read(split: str, task: str) -> LoadedCheck:
    path = DATA / f"check-{split}.tsv"
    hint = "install the package again"
    try:
        content = path.read_bytes()
        rows = [line.split("\t") for line in content.decode().splitlines()[1:]]
        first, second, gold, kind = zip(*rows, strict=True)
        values = np.array(gold, dtype=np.float64)
    except (OSError, ValueError) as error:
        raise DataDamaged(f"{task}: {path}: {error}", hint) from None
    if len(rows) != ITEMS[split]:
        raise DataDamaged(f"{task}: {len(rows)} pairs found, {ITEMS[split]} expected, in {path}", hint)
    return LoadedCheck(task, first, second, values, kind, hashlib.sha256(content).hexdigest())


SUITE = Suite(
    name="check",
    title="Built-in check",
    description="Does the machinery train, encode and score? Generated pairs inside the package; not evidence about a method.",
    tasks=(CheckTask(),),
    average=None,
    docs="suites/check.md",
)
