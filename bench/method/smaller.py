"""Smaller vectors: the first numbers of each, and numbers of fewer bits, as sentence-transformers
makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bench.base.errors import RunFailed
from bench.records.record import DIMENSIONS, VECTOR_PRECISION

FLOAT32: Literal["float32"] = "float32"
INT8: Literal["int8"] = "int8"
BINARY = "binary"
PRECISIONS = (FLOAT32, INT8, BINARY)
Vectors = Callable[[Sequence[str]], np.ndarray]
AT_ONCE = 16_384
"""Vectors whose lowest and highest numbers are looked for at once."""


@dataclass(frozen=True)
class Smaller:
    """How vectors are made smaller."""

    # the first numbers of each that are kept; None: all
    dimensions: int | None = None
    precision: str = FLOAT32

    @classmethod
    def of(cls, recipe: Mapping[str, Any]) -> Smaller | None:
        """Return the sizes that a recipe asks for; None if it keeps whole vectors."""
        found = cls(recipe.get(DIMENSIONS), recipe.get(VECTOR_PRECISION) or FLOAT32)
        return None if found == cls() else found

    def values(self) -> dict[str, Any]:
        """Return the recipe values that say it."""
        values: dict[str, Any] = {}
        if self.dimensions is not None:
            values[DIMENSIONS] = self.dimensions
        if self.precision != FLOAT32:
            values[VECTOR_PRECISION] = self.precision
        return values

    def facts(self, dimension: int) -> dict[str, Any]:
        """Return the facts of such vectors of an encoder with so many numbers: a record's."""
        kept = dimension if self.dimensions is None else self.dimensions
        size = {FLOAT32: 4 * kept, INT8: kept, BINARY: (kept + 7) // 8}[self.precision]
        return {"dimension": kept, VECTOR_PRECISION: self.precision, "vector_bytes": size}

    def ranges(self, vectors: Vectors, sample: Sequence[str]) -> np.ndarray | None:
        """Return (2, D) the lowest and highest number of each dimension among the vectors of a
        sample, between which int8 has its 256 steps; None if it is not int8.

        Raises RunFailed for a task that does not say which sentences it needs.
        """
        if self.precision != INT8:
            return None
        if not sample:
            raise RunFailed(
                "int8 is calibrated on the sentences of a task, and this task names none",
                "leave int8 out",
            )
        ends = []
        for start in range(0, len(sample), AT_ONCE):
            x_ND = self._kept(vectors(sample[start : start + AT_ONCE]))
            ends += [x_ND.min(axis=0), x_ND.max(axis=0)]
        return np.stack([np.min(ends, axis=0), np.max(ends, axis=0)])

    def make(self, vectors: Vectors, ranges: np.ndarray | None) -> Vectors:
        """Return the function that gives these vectors made smaller.

        int8 vectors are compared as the numbers -128 to 127, bits as -1 and 1: their cosine falls
        with the number of bits that differ.
        """

        def smaller(sentences: Sequence[str]) -> np.ndarray:
            x_ND = self._kept(vectors(sentences))
            if self.precision == FLOAT32:
                return x_ND
            from sentence_transformers.util import quantize_embeddings

            if self.precision == INT8:
                codes_ND = np.asarray(quantize_embeddings(x_ND, INT8, ranges=ranges))
                return codes_ND.astype(np.float32)
            packed_NB = np.asarray(quantize_embeddings(x_ND, "ubinary"))
            bits_ND = np.unpackbits(packed_NB, axis=1, count=x_ND.shape[1])
            return 2 * bits_ND.astype(np.float32) - 1

        return smaller

    def _kept(self, x_ND: np.ndarray) -> np.ndarray:
        if self.dimensions is not None and self.dimensions > x_ND.shape[1]:
            raise RunFailed(
                f"dimensions={self.dimensions}: the vectors have {x_ND.shape[1]}",
                f"--dimensions {x_ND.shape[1]}, or less",
            )
        return np.asarray(x_ND, dtype=np.float32)[:, : self.dimensions]
