"""Ask an object for fixed sentences: the vectors identify it, and show if it can be scored.

A score means something only if a sentence has one vector. Two kinds of encoders give it several:
those with something random in them (a torch model left in training mode, with dropout), and those
that let the sentences of one call see each other (batch normalisation in training mode, vectors
centred by the mean of the call, padding that is not masked).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

PROBE = (
    "A man is playing a guitar.",
    "A woman is slicing an onion.",
    "Two dogs run through the snow.",
    "The market fell sharply on Monday.",
    "No one was hurt in the accident.",
    "She did not agree with him.",
    "42 people signed the letter in 1999.",
    "Yes",
    "What is the capital of France?",
    "The quick brown fox jumps over the lazy dog .",
    "naïve café, “quoted” – and a dash",
    "a",
    # longer than 64 tokens, and shorter than any encoder's 128 positions
    "On the first day the ship left the harbour before dawn, passed the old lighthouse, turned "
    "north along the coast and met "
    "a heavy swell that lasted until the evening, when the wind dropped, the clouds opened, and "
    "the crew, who had not slept for "
    "thirty hours, ate their first warm meal, wrote their letters home, mended two sails, and "
    "went below, all but one man, who "
    "stayed at the wheel and sang.",
    "The film was long, slow and, in the end, worth every minute of it, which is more than can be "
    "said of most.",
)
"""An object that says nothing about itself is identified by its answers to these; see also
``bench/run/external/identity.py``.
"""

ROUNDING = 1e-4
"""The largest difference between two equal answers, as a fraction of their largest number."""

COMPANY = 0.05
"""The largest change of a vector, as a fraction of its length, that other sentences in the call may
cause: half precision and int8 round differently in another batch.
"""


@dataclass(frozen=True)
class Answers:
    """The vectors of an encoder for :data:`PROBE`."""

    # (14, d) float32
    vectors: np.ndarray
    # the same call again gave the same vectors, up to rounding
    repeat: bool
    # a call with half of the sentences, in another order, gave each of them the same vector,
    # roughly; and so did a call with two short ones
    independent: bool


def ask_probe(encode: Callable[[list[str]], np.ndarray], company: float = COMPANY) -> Answers:
    """Encode :data:`PROBE` twice, then half of it, then the two shortest.

    ``encode`` takes n strings and returns (n, d) float32. ``company``: the largest change of a
    vector that other sentences in the call may cause, as a fraction of its length.
    """
    first = encode(list(PROBE))
    second = encode(list(PROBE))
    if not answers_alike(first, second):
        return Answers(first, repeat=False, independent=False)
    rows = list(range(len(PROBE) - 1, -1, -2))  # without the longest: the others are padded less
    part = encode([PROBE[row] for row in rows])
    changed = _differ_by(first[rows], part)
    # the two shortest, nearly without padding
    short = [PROBE.index("Yes"), PROBE.index("a")]
    among_themselves = encode([PROBE[row] for row in short])
    changed = max(changed, _differ_by(first[short], among_themselves))
    return Answers(first, repeat=True, independent=changed <= company)


def answers_alike(some: np.ndarray, others: np.ndarray) -> bool:
    """Tell whether two arrays of vectors, (n, d), differ by no more than rounding."""
    if some.shape != others.shape:
        return False
    largest = max(float(np.abs(some).max(initial=0)), float(np.abs(others).max(initial=0)))
    return float(np.abs(some - others).max(initial=0)) <= ROUNDING * largest


def hash_answers(vectors_ND: np.ndarray) -> str:
    """Return the sha256 of vectors to four digits of their largest number, and of that number."""
    largest = float(np.abs(vectors_ND).max(initial=0)) or 1.0
    digest = hashlib.sha256(f"{largest:.3e}".encode())
    # a zero without its sign
    digest.update((np.round(vectors_ND / np.float32(largest), 4) + 0.0).tobytes())
    return digest.hexdigest()


def _differ_by(some: np.ndarray, others: np.ndarray) -> float:
    """Return the largest distance between two vectors of one sentence, relative to the longer one.

    It is infinite if the dimensions differ.
    """
    if some.shape != others.shape:
        return float("inf")
    # float64: the square of a large float32 would be infinite
    a, b = some.astype(np.float64), others.astype(np.float64)
    lengths = np.maximum(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    distances = np.linalg.norm(a - b, axis=1)
    return float((distances / np.maximum(lengths, np.finfo(np.float64).tiny)).max(initial=0))
