"""The first coordinates of a ready-made encoder's vectors, to see how good a shorter vector is.

Everything else is as in ``pretrained``. It says how much of a model survives the cut, whether it
was trained for that (Matryoshka) or not: one row for each size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.method import Backbone, BenchError, Portable, Recipe, Value
from bench.methods.pretrained import Pretrained


class Truncated(Pretrained):
    """A ready-made encoder; its vectors are cut to their first numbers.

    Take it to see how short a vector may be.

    Example:
        bench run --method truncated+first-256 --backbone sentence-transformers/all-MiniLM-L6-v2

    Relations: Matryoshka trains for it; ``pretrained`` scores the whole vectors.
    """

    name = "truncated"
    summary = "the first numbers of a ready-made encoder's vectors"
    variants = {f"first-{size}": {"size": size} for size in (512, 256, 128, 64)}
    defaults = {
        **Pretrained.defaults,
        "size": Value(None, "to be given", "how many coordinates are kept"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        super().check(recipe, backbone)
        if not isinstance(recipe.size, int) or recipe.size < 1:
            raise BenchError(
                f"truncated needs a number of coordinates, not size={recipe.size}", "--set size=64"
            )

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        if recipe.size > self.dimension:
            raise BenchError(
                f"size={recipe.size}: vectors of {backbone.name} have {self.dimension} coordinates",
                f"--set size={self.dimension}",
            )

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        return super().encode(sentences)[:, : self.recipe.size]

    def portable(self) -> Portable:
        raise BenchError(
            "an export has the whole vectors",
            "export the run itself, and cut its vectors where they are read",
        )
