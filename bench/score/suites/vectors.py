"""Checks of vectors, for every suite: what cannot be scored is refused, with a reason."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from bench.base.errors import RunFailed
from bench.score.metrics.correlation import UnusableGold

GOLD_IS_THE_CAUSE = (
    "the gold values of the task's data are the cause, and no model: correct the data"
)


@contextlib.contextmanager
def scoring(task: str, hint: str | None = None) -> Iterator[None]:
    """A metric that is undefined, or cannot be computed, fails the run: its ValueError becomes RunFailed, with the task's name.

    ``hint`` is about the model; gold values that are the cause have a hint of their own."""
    try:
        yield
    except UnusableGold as error:
        raise RunFailed(f"{task}: {error}", GOLD_IS_THE_CAUSE) from None
    except ValueError as error:
        raise RunFailed(f"{task}: {error}", hint) from None


def check_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors as an array. Raises RunFailed for a wrong shape or type, NaN or infinity, naming the first bad sentence."""
    vectors_ND = np.asarray(vectors)
    if vectors_ND.ndim != 2 or len(vectors_ND) != len(sentences) or vectors_ND.shape[1] == 0:
        raise RunFailed(
            f"{task}: vectors of shape {vectors_ND.shape} for {len(sentences)} sentences, expected (n, dim)"
        )
    if not np.issubdtype(vectors_ND.dtype, np.floating):
        raise RunFailed(f"{task}: vectors of type {vectors_ND.dtype}, expected float32")
    if len(bad := np.flatnonzero(~np.isfinite(vectors_ND).all(axis=1))):
        raise RunFailed(
            f"{task}: {len(bad)} of {len(sentences)} vectors hold NaN or infinity, first for the sentence '{sentences[bad[0]][:60]}'",
            "the training diverged, or the backbone's weights are damaged: try a lower --set learning_rate=, or another backbone",
        )
    return vectors_ND


def float32_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """As :func:`check_vectors`, in float32: a number that does not fit is refused as infinity."""
    checked_ND = check_vectors(vectors, sentences, task)
    with np.errstate(over="ignore"):
        return check_vectors(np.asarray(checked_ND, dtype=np.float32), sentences, task)


def check_variety(vectors_ND: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """The vectors. Raises RunFailed if all of them are the same: nothing can be scored then."""
    if (vectors_ND == vectors_ND[0]).all():
        raise RunFailed(
            f"{task}: all {len(sentences)} vectors are constant, the same as for the sentence '{sentences[0][:60]}'",
            "did the training collapse (curve.jsonl in the run's folder has its losses), or is a prefix or prompt as long as all that the model reads?",
        )
    return vectors_ND
