"""The sentence pairs of the suite ``check`` of an earlier bench, protocol ``check/1``, and how they
are scored.

Records of that protocol exist and are verified against the hashes that bench keeps of its gold
values. Tests need such records in numbers, and these are scored in a moment. A small grammar made
the pairs: a sentence tells one event with five slots, and the gold value is the number of slots
that both sentences fill with the same concept.
"""

from __future__ import annotations

import functools
import hashlib
import lzma
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.score.suites import TaskResult, Vectors
from bench.score.suites.check import GENERATED
from bench.score.suites.sts import cosines, score_pairs


@dataclass(frozen=True)
class GeneratedPairs:
    """The pairs of a split, scored as any pairs are."""

    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    gold: np.ndarray
    kind: tuple[str, ...]
    sha256: str

    @property
    def sentences(self) -> list[str]:
        return [*self.sentences1, *self.sentences2]

    def score(self, vectors: Vectors) -> TaskResult:
        found = cosines(self.sentences1, self.sentences2, vectors, "CHECK")
        subset = np.array(self.kind, dtype=str)
        predictions = {"prediction": found, "gold": self.gold, "subset": subset}
        score = score_pairs(predictions, "CHECK")
        cell = {"suite": "check", "task": "CHECK", "protocol": GENERATED, "metric": "spearman"}
        more = {"detail": score.detail, "predictions": predictions}
        return TaskResult(value=score.value, n=score.n, **cell, **more)


@functools.cache
def generated(split: str = "test") -> GeneratedPairs:
    """Read the pairs of a split: "test" (1,000) or "dev" (300)."""
    packed = Path(__file__).parent / "data" / f"check-1-{split}.tsv.xz"
    content = lzma.decompress(packed.read_bytes())
    rows = [line.split("\t") for line in content.decode().splitlines()[1:]]
    first, second, values, kind = zip(*rows, strict=True)
    gold = np.array(values, dtype=np.float64)
    return GeneratedPairs(first, second, gold, kind, hashlib.sha256(content).hexdigest())
