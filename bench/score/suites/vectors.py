"""Checks of vectors, for every suite: vectors that cannot be scored are refused, with a reason."""

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
    """Turn a metric's ValueError into RunFailed, with the task's name: an undefined score fails a
    run.

        with scoring("Odd"):
            value = spearman(prediction, gold)

    Args:
        task: Name of the task, for the message.
        hint: What to do about the model. If gold values are the cause, the hint says so instead.

    Raises:
        RunFailed: Instead of a ValueError.
    """
    try:
        yield
    except UnusableGold as error:
        raise RunFailed(f"{task}: {error}", GOLD_IS_THE_CAUSE) from None
    except ValueError as error:
        raise RunFailed(f"{task}: {error}", hint) from None


def check_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """Check shape, type and finiteness of vectors.

    Args:
        vectors: Vectors of these sentences.
        sentences: n texts.
        task: Name of the task, for the message.

    Returns:
        The vectors as an (n, dim) array.

    Raises:
        RunFailed: For a wrong shape or type, NaN or infinity, naming the first bad sentence.
    """
    vectors_ND = np.asarray(vectors)
    if vectors_ND.ndim != 2 or len(vectors_ND) != len(sentences) or vectors_ND.shape[1] == 0:
        shape, count = vectors_ND.shape, len(sentences)
        raise RunFailed(
            f"{task}: vectors of shape {shape} for {count} sentences, expected (n, dim)"
        )
    if not np.issubdtype(vectors_ND.dtype, np.floating):
        raise RunFailed(f"{task}: vectors of type {vectors_ND.dtype}, expected float32")
    bad = np.flatnonzero(~np.isfinite(vectors_ND).all(axis=1))
    if len(bad):
        share, first = f"{len(bad)} of {len(sentences)}", sentences[bad[0]][:60]
        raise RunFailed(
            f"{task}: {share} vectors hold NaN or infinity, first for the sentence '{first}'",
            "the training diverged, or the backbone's weights are damaged: "
            "try a lower --set learning_rate=, or another backbone",
        )
    return vectors_ND


def float32_vectors(vectors: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """Check vectors in float32, in which a number that is too large is infinity.

    Args:
        vectors: Vectors of these sentences.
        sentences: n texts.
        task: Name of the task, for the message.

    Returns:
        (n, dim) float32.

    Raises:
        RunFailed: As ``check_vectors`` does.
    """
    checked_ND = check_vectors(vectors, sentences, task)
    with np.errstate(over="ignore"):
        return check_vectors(np.asarray(checked_ND, dtype=np.float32), sentences, task)


def check_variety(vectors_ND: np.ndarray, sentences: Sequence[str], task: str) -> np.ndarray:
    """Check that vectors are not all the same: then nothing can be scored.

    Args:
        vectors_ND: Vectors of these sentences.
        sentences: n texts.
        task: Name of the task, for the message.

    Returns:
        The vectors.

    Raises:
        RunFailed: If all are the same.
    """
    if (vectors_ND == vectors_ND[0]).all():
        count, first = len(sentences), sentences[0][:60]
        raise RunFailed(
            f"{task}: all {count} vectors are constant, the same as for the sentence '{first}'",
            "did the training collapse (curve.jsonl in the run's folder has its losses), "
            "or is a prefix or prompt as long as all that the model reads?",
        )
    return vectors_ND
