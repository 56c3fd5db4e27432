"""Compare bench's own path with a finished encoder's library: some texts are encoded both ways when
the encoder is loaded.

bench's own path tokenises all texts at once and pads rows of similar length together, which is
faster. Additions of a library (chat templates, arguments of the processor, cutting texts on the
left, a router) are not imitated: the ids and vectors of these texts are compared, and if they
differ by more than rounding, the library encodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

SHORT = (
    "A man is playing the Guitar.",
    "two dogs run",
    "naïve café, Ünïcode façade — “quoted” ‘words’",
    'He said: "no." (It\'s 42 % colder!)',
    "  spaces,\ttabs\nand lines  ",
    "中文 and \U0001f600",
    "a",
    "",
)
SENTENCE = "The Film was long, slow and, in the end, worth every minute of it. "
LONG_WORDS = 100
"""Words of the longest compared text: enough for padding next to a short one, and cheap."""
MOST_TOKENS = 50_000  # of a text whose ids are compared, if nothing limits its length
ROUNDING = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.02}
"""The largest difference of two entries that counts as rounding, relative to the largest entry."""


def long_text(tokens: int | None) -> str:
    """Return a text of more than ``tokens`` tokens."""
    words = min(tokens or LONG_WORDS, MOST_TOKENS) + 10
    return SENTENCE * (words // len(SENTENCE.split()) + 1)


def texts_to_encode() -> list[str]:
    return [*SHORT, SENTENCE * (LONG_WORDS // len(SENTENCE.split()))]


def first_other_ids(
    ours: Callable[[str], list[int]], theirs: Callable[[str], list[int]], texts: Sequence[str]
) -> str | None:
    """Return the first text with different token ids, or None if there is none."""
    for text in texts:
        if ours(text) != theirs(text):
            return text
    return None


def difference_of_vectors(
    ours: np.ndarray, theirs: np.ndarray, texts: Sequence[str], dtype: str
) -> str:
    """Describe a difference between two arrays of vectors (n, d) that is more than rounding.

    "" if there is none.
    """
    if ours.shape != theirs.shape:
        return f"vectors of {ours.shape[-1]} numbers instead of {theirs.shape[-1]}"
    finite = np.isfinite(theirs)
    largest = float(np.abs(theirs[finite]).max(initial=0.0))
    same = np.isclose(ours, theirs, rtol=0.0, atol=ROUNDING[dtype] * largest, equal_nan=True).all(
        axis=1
    )
    if same.all():
        return ""
    return f"other vectors, the first for {shorten(texts[int(np.flatnonzero(~same)[0])])}"


def shorten(text: str) -> str:
    """Put a text in quotation marks and shorten it for a line of output."""
    return repr(text if len(text) <= 40 else text[:40] + "...")
