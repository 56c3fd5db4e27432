"""The built-in suite: pairs of image captions that people rated, carried by the package. Enough to see a method work, not a result.

Crisscrossed Captions' validation pairs (Parekh et al. 2021; bench/builtin/README.md has sources and licences), as far as
their captions were at hand, in a dev and a test part that share no caption and no image. Protocol ``check/2``: Spearman x 100 of cosine
against rating over all test pairs together; how a pair was sampled is its sub-dataset.
"""

from __future__ import annotations

import hashlib
import lzma
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.base.errors import DataDamaged
from bench.data.sets import DataFolder
from bench.data.sets.cxc import SAME_IMAGE, images
from bench.score.suites import Suite, TaskResult
from bench.score.suites.sts import cosines, score_predictions
from bench.score.suites.vectors import Vectors

PROTOCOL = "check/2"
GENERATED = "check/1"
"""The protocol of the pairs that this package made itself in earlier versions. Its scores follow from their predictions as these do."""
DATA = Path(__file__).parents[2] / "builtin" / "data"
ITEMS = {"dev": 1125, "test": 4742}
DEV = "captions dev"


@dataclass(frozen=True)
class LoadedCheck:
    """The pairs of one part; ``image``: of the first caption, numbered by first appearance."""

    task: str
    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    gold: np.ndarray
    kind: tuple[str, ...]
    caption1: np.ndarray
    caption2: np.ndarray
    image: np.ndarray
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
            "image": self.image,
            "caption1": self.caption1,
            "caption2": self.caption2,
        }
        value, detail = score_predictions(predictions, self.task)
        return TaskResult(
            suite="check", task=self.task, protocol=PROTOCOL, metric="spearman",
            value=value, n=self.n, detail=detail, predictions=predictions,
        )  # fmt: skip


@dataclass(frozen=True)
class CheckTask:
    name: str = "captions"
    suite: str = "check"
    protocol: str = PROTOCOL
    metric: str = "spearman"
    data: tuple[str, ...] = ()  # it lies in the package
    n: int = ITEMS["test"]

    def load(self, data: DataFolder | None = None, text: str | None = None) -> LoadedCheck:
        """The 4,742 test pairs; ``data`` and ``text`` are not asked. Raises DataDamaged."""
        return _read("test", self.name)


def check_dev_task(data: DataFolder | None = None, text: str | None = None) -> LoadedCheck:
    """The 1,125 dev pairs, for choosing a checkpoint where there is no STS-B. Raises DataDamaged."""
    return _read("dev", DEV)


def _read(part: str, task: str) -> LoadedCheck:
    path = DATA / f"check-{part}.tsv.xz"
    hint = "install the package again"
    try:
        content = lzma.decompress(path.read_bytes())
        rows = [line.split("\t") for line in content.decode().splitlines()[1:]]
        first, second, gold, kind, *ids = zip(*rows, strict=True)
        values, (caption1, caption2) = np.array(gold, dtype=np.float64), (np.array(one, dtype=np.int64) for one in ids)
        rings = [(a, b) for a, b, of in zip(*ids, kind, strict=True) if of == SAME_IMAGE]
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise DataDamaged(f"{task}: {path}: {error}", hint) from None
    if len(rows) != ITEMS[part]:
        raise DataDamaged(f"{task}: {len(rows)} pairs found, {ITEMS[part]} expected, in {path}", hint)
    sha256 = hashlib.sha256(content).hexdigest()
    return LoadedCheck(task, first, second, values, kind, caption1, caption2, images(ids[0], rings), sha256)


SUITE = Suite(
    name="check",
    title="Built-in check",
    description="Do cosines rank pairs of captions as people do? A small sample inside the package: to see a method work, not a result.",
    tasks=(CheckTask(),),
    average=None,
    docs="suites/check.md",
    earlier=(GENERATED,),
)
