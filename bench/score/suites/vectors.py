"""What every suite asks of vectors before it scores them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bench.base.errors import RunFailed

Vectors = Callable[[Sequence[str]], np.ndarray]
"""Sentences to their vectors: (n, dim) float32, row i for sentence i."""


def check_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors as an array. Raises RunFailed for a wrong shape or type, NaN or infinity, naming the first bad sentence."""
    vectors_ND = np.asarray(vectors)
    if vectors_ND.ndim != 2 or len(vectors_ND) != len(sentences) or vectors_ND.shape[1] == 0:
        raise RunFailed(f"{task}: vectors of shape {vectors_ND.shape} for {len(sentences)} sentences, (n, dim) expected")
    if not np.issubdtype(vectors_ND.dtype, np.floating):
        raise RunFailed(f"{task}: vectors of type {vectors_ND.dtype}, float32 expected")
    bad = np.flatnonzero(~np.isfinite(vectors_ND).all(axis=1))
    if len(bad):
        shown = sentences[bad[0]][:60]
        raise RunFailed(
            f"{task}: {len(bad)} of {len(sentences)} vectors hold NaN or infinity, first for the sentence '{shown}'",
            "the training diverged, or the backbone's weights are damaged: bench run with a lower --set learning_rate=, or another backbone",
        )
    return vectors_ND


def check_variety(vectors_ND: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors. Raises RunFailed where all of them are the same: nothing can be told from them."""
    if (vectors_ND == vectors_ND[0]).all():
        shown = sentences[0][:60]
        raise RunFailed(
            f"{task}: all {len(sentences)} vectors are constant, the same as for the sentence '{shown}'",
            "did the training collapse? curve.jsonl in the run's folder has its losses",
        )
    return vectors_ND
