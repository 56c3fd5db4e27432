"""Numbers the sentences of the STS sets, so that pairs that share a sentence are known."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.data.sets.sts import STS_TASKS, Numbers
from bench.data.sets.sts_multi import TRACKS, TRANSLATIONS

# Stored predictions hold no sentences, so the numbers are kept here, by task and by the gold scores
# in their order (``shared_sentences.npz`` of the suite sts, ``shared_in_tracks.npz`` of STS 2017's
# tracks, made by ``python tools/make_shared_sentences.py DIR``; no text is in them). Sentences with
# the same letters and digits are one; so both text forms have the same numbers. A translation of
# STS-B has the pairs of the original in its order, and so its numbers: what makes a pair hard, its
# content and its ratings, is the same in all languages.

STORED = Path(__file__).with_name("shared_sentences.npz")
STORED_TRACKS = Path(__file__).with_name("shared_in_tracks.npz")


def sentence_numbers(task: str, gold_N: NDArray[np.generic]) -> Numbers | None:
    """Return (N, 2) the numbers of both sentences of every pair; None where these are not the
    scores of a known set. For the sentences of a set, first sides before second, which have no
    scores: of every sentence its pair and itself.
    """
    if task in TRANSLATIONS or task == "alignment":
        task = "STS-B"
    if task == "uniformity":
        return _sentences_of("STS-B", len(gold_N))
    known = _stored().get(task)
    return known[1] if known is not None and known[0] == gold_hash(gold_N) else None


def _sentences_of(task: str, n: int) -> Numbers | None:
    """Return (N, 2) the numbers of every sentence's pair and of the sentence; None if the set has
    another number of sentences."""
    _, numbers = _stored()[task]
    pairs = len(numbers)
    if n != 2 * pairs:
        return None
    pair_N = np.tile(np.arange(pairs), 2)
    sentence_N = numbers.T.reshape(-1)
    return np.stack([pair_N, pairs + sentence_N], axis=1)


def gold_hash(gold_N: NDArray[np.generic]) -> str:
    """Return the hash of the scores as 32-bit floats, because some files store them so."""
    return hashlib.sha256(np.ascontiguousarray(gold_N, dtype="<f4").tobytes()).hexdigest()


@cache
def _stored() -> dict[str, tuple[str, Numbers]]:
    """Return task -> (hash of its gold scores, (N, 2) numbers)."""
    return _read_numbers(STORED, STS_TASKS) | _read_numbers(STORED_TRACKS, tuple(TRACKS))


def _read_numbers(file: Path, tasks: Sequence[str]) -> dict[str, tuple[str, Numbers]]:
    with np.load(file, allow_pickle=False) as stored:
        hashes = stored["gold"].tolist()
        parts = np.split(stored["numbers"].astype(np.int64), np.cumsum(stored["items"])[:-1])
    return {task: (hashes[i], parts[i]) for i, task in enumerate(tasks)}
