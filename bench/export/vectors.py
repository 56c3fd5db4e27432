"""Compare the vectors of a written folder, loaded by its own tool, with the method's vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.base.errors import RunFailed, one_line
from bench.export.st_folder import st_vectors
from bench.method import Method

TOLERANCE = 1e-5
"""The largest difference between the vectors of an export and of its method."""
SENTENCES = (
    "A man is playing a guitar .",
    "Yes",
    "",
    " two blanks  before a word ",
    'He said "wait" , and left!',
    "NASA's probe (2021)?",
    "Zwölf Boxkämpfer jagen Viktor über den Sylter Deich – naïve café 你好 🙂",
    "a [MASK] and a </s> in the text",
    "Prices rose by 3.5 % in March , the bank said , although most forecasts had been higher : "
    "'much' higher . " * 3,
    "A sentence that is longer than any of these models reads , so that it is cut . " * 60,
)


def compare_vectors(method: Method, folder: Path) -> tuple[float, int]:
    """Return the largest relative difference from the method's vectors, and the dimensions.

    Raises RunFailed if it is above 1e-5, or more than twice the difference between batched and
    single encoding by the method itself. (Whitening exceeds 1e-5 because it amplifies rounding in
    directions of low variance.)
    """
    sentences = comparable_sentences(method)
    method_vectors = method.encode(sentences)
    encoded_alone = np.concatenate([method.encode([sentence]) for sentence in sentences])
    allowed = max(TOLERANCE, 2 * relative_difference(method_vectors, encoded_alone))
    try:
        exported_vectors = st_vectors(folder, sentences)
    except Exception as error:  # the tool may raise anything
        raise RunFailed(
            f"the export cannot be loaded: {one_line(error)}", "please report it"
        ) from None
    if method_vectors.shape != exported_vectors.shape:
        raise RunFailed(
            f"the export gives vectors of shape {exported_vectors.shape}, "
            f"the method {method_vectors.shape}"
        )
    difference = relative_difference(method_vectors, exported_vectors)
    if difference > allowed:
        raise RunFailed(
            f"the export does not give the vectors of {method.name}: they differ by "
            f"{difference:.1g}, more than the allowed {allowed:.1g}; nothing was written",
            "this is a bug in bench or in the method's portable(): please report it",
        )
    return difference, int(method_vectors.shape[1])


def comparable_sentences(method: Method) -> list[str]:
    """Return the sentences that are compared: "" only if a library can read it as the method does.

    If a tokenizer adds no special token, "" has no token at all: here it is the zero vector, and in
    a library that takes the first token it is the state of the padding.
    """
    adds_some = getattr(method, "before", True) or getattr(method, "after", True)
    if adds_some or "cls" not in (method.portable().pooling or ""):
        return list(SENTENCES)
    return [sentence for sentence in SENTENCES if sentence]


def relative_difference(expected: np.ndarray, found: np.ndarray) -> float:
    """Return the largest max |a - b| / max(1, max |a|) of all rows; NaN counts as infinite."""
    scale = np.maximum(1.0, np.abs(expected).max(axis=1, keepdims=True))
    difference = float((np.abs(expected.astype(np.float64) - found) / scale).max())
    return difference if np.isfinite(difference) else float("inf")
