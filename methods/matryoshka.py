"""SimCSE on prefixes: Matryoshka Representation Learning (Kusupati et al., NeurIPS 2022, arXiv
2205.13147) for sentence vectors.

SimCSE's loss of the whole vectors plus its loss of their first 512, 256, 128 and 64 coordinates
(methods/prefixes.py). There is no head: it would be the head's output that is trained to be cut,
while the encoder's is scored. ``truncated`` scores a finished run by its first coordinates. CoSENT,
AnglE and CLAIF have the same as a variant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from bench.method import Batch, BenchError, Loss, Recipe, Value
from bench.methods.prefixes import check_prefixes, on_prefixes
from bench.methods.simcse import SimCSE

CODE = "sentence-transformers matryoshka_nli.py"


class Matryoshka(SimCSE):
    """Matryoshka SimCSE: SimCSE's loss on the whole vectors and again on their first coordinates.

    Take it if shorter vectors are to be stored; ``truncated`` scores the cut ones.

    Example:
        bench run --method matryoshka --setting unsupervised --backbone bert-base-uncased

    Relations: the same is a variant of CoSENT and AnglE (``+matryoshka``).
    """

    name = "matryoshka"
    summary = "SimCSE on whole vectors and on their first 512 to 64 numbers"
    paper = "Kusupati et al.: Matryoshka Representation Learning, NeurIPS 2022, arXiv 2205.13147"
    trains = "the whole encoder"
    variants = dict[str, Any]()
    defaults = {
        **SimCSE.defaults,
        "pooling": Value("avg", CODE + ":59", "SimCSE: cls"),
        "head": Value(False, CODE + ":59", "a head's output would be cut, not what is scored"),
        "matryoshka": Value(
            "512 256 128 64",
            CODE + ":37",
            "sizes of the prefixes; those that are no shorter than a vector are left out",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        super().check(recipe, backbone)
        check_prefixes(recipe)
        if recipe.mlm:
            raise BenchError("mlm=true does not combine with matryoshka", "--set mlm=false")

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        simcse = super().loss
        return on_prefixes(lambda *z: simcse(z, batch), views, self.recipe.matryoshka)
