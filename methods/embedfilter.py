"""EmbedFilter (arXiv 2606.07502, 2026). Untrained.

    W = U S V^T        the matrix (V, H) with which the decoder predicts its next token
    z = V_m^T h        h: PromptEOL's vector; V_m: the middle right-singular vectors of W

The first directions, in which the words of a vocabulary have most in common, and the last ones are
left out. The method is known here only from a reading note: which directions it leaves out is not
verified, and the two numbers are recipe values.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bench.method import Backbone, BenchError, Features, Portable, Recipe, Value
from bench.methods.bounds import check_at_least
from bench.methods.output_matrix import output_matrix
from bench.methods.prompteol import PromptEOL

NOTE = "a reading note of arXiv 2606.07502: thresholds 2 and 8"


class EmbedFilter(PromptEOL):
    """EmbedFilter: PromptEOL's vector without some directions of the decoder's own output matrix.

    Take it as a post-processing that needs no text to fit.

    Example:
        bench run --method embedfilter --setting none --backbone facebook/opt-125m

    Relations: whitening fits its map on text; PromptEOL is the vector before the map.
    """

    name = "embedfilter"
    settings = ("none",)
    by_dropout = ()
    summary = "PromptEOL without directions of the output matrix"
    paper = "EmbedFilter, arXiv 2606.07502 (2026), known from a reading note"
    trains = "nothing"
    variants = dict[str, Any]()
    defaults = {
        "template": PromptEOL.defaults["template"],
        "drop_first": Value(2, NOTE, "directions with the largest singular values; not verified"),
        "drop_last": Value(8, NOTE, "directions with the smallest singular values; not verified"),
        "layer": PromptEOL.defaults["layer"],
        "clean_at_test": PromptEOL.defaults["clean_at_test"],
    }

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        hidden = backbone.hidden_size
        check_at_least(recipe, 0, "drop_first", "drop_last")
        if recipe.drop_first + recipe.drop_last >= hidden:
            raise BenchError(
                f"drop_first={recipe.drop_first} and drop_last={recipe.drop_last} leave nothing "
                f"of {hidden} directions",
                "--set drop_first=2 --set drop_last=8",
            )
        self.register_buffer("kept", self.middle_directions(), persistent=False)

    def middle_directions(self) -> Tensor:
        """Return the right-singular vectors that are kept, (k, H), largest singular value first."""
        matrix_VH = output_matrix(self.backbone)
        # the eigenvectors of W^T W, which is small, in ascending order
        values_and_vectors = torch.linalg.eigh(matrix_VH.double().T @ matrix_VH.double())
        directions_HH = values_and_vectors.eigenvectors.flip(1).T
        last = len(directions_HH) - self.recipe.drop_last
        return directions_HH[self.recipe.drop_first : last].float().contiguous()

    def embed(self, features: Features) -> Tensor:
        vectors_nH = super().embed(features)
        kept: Tensor = self.kept  # type: ignore[assignment]
        return vectors_nH @ kept.to(vectors_nH.dtype).T

    def portable(self) -> Portable:
        kept: Tensor = self.kept  # type: ignore[assignment]
        return self.portable_reader({"pooling": "last"}, {"map": kept})
