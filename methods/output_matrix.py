"""The matrix with which a decoder predicts its next token."""

from __future__ import annotations

from torch import Tensor

from bench.method import Backbone, BenchError


def output_matrix(backbone: Backbone) -> Tensor:
    """Return a decoder's output matrix, (V, H), in float32; of an encoder, its word embeddings.

    Raises BenchError if it is not as wide as the states.
    """
    try:
        matrix_VH = backbone.lm_matrix()
    except BenchError:  # an encoder
        words: Tensor = backbone.encoder.get_input_embeddings().weight
        matrix_VH = words.detach().clone().float()
    if matrix_VH.shape[1] != backbone.hidden_size:
        raise BenchError(
            f"the output matrix of {backbone.name} is {matrix_VH.shape[1]} wide, its states "
            f"{backbone.hidden_size}",
            "take another backbone",
        )
    return matrix_VH
