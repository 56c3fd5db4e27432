"""What somebody else's code returned, as vectors; or one line that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.base.errors import RunFailed


def as_vectors(found: Any, texts: Sequence[str], who: str, dimension: int | None = None) -> np.ndarray:
    """(n, d) float32, row i for text i. ``dimension``: what d was before.

    Raises RunFailed for anything but n rows of d finite numbers, naming ``who`` and the first text that is wrong.
    """
    if hasattr(found, "detach"):
        found = found.detach().float().cpu().numpy()
    elif isinstance(found, Sequence) and not isinstance(found, str) and any(hasattr(one, "detach") for one in found):
        found = [one.detach().float().cpu().numpy() if hasattr(one, "detach") else one for one in found]
    try:
        array = np.asarray(found)
    except (TypeError, ValueError):  # rows of different lengths
        lengths = sorted({len(row) for row in found if hasattr(row, "__len__")})
        raise RunFailed(
            f"{who} returned vectors of different dimensions: {', '.join(map(str, lengths[:4]))}", "one dimension for all sentences"
        ) from None
    if array.dtype.kind not in "fiu":
        what = {
            "U": "text",
            "S": "bytes",
            "O": f"objects ({type(found).__name__})",
            "b": "true and false",
            "c": "complex numbers",
        }
        raise RunFailed(f"{who} returned {what.get(array.dtype.kind, str(array.dtype))}, not numbers", "an array (n, d) of floats")
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        raise RunFailed(
            f"{who} returned shape {array.shape} for {len(texts)} sentences; expected ({len(texts)}, d)",
            "encode takes a list of n strings and returns n vectors",
        )
    if dimension not in (None, array.shape[1]):
        raise RunFailed(f"{who} returned {array.shape[1]} dimensions, before {dimension}", "one dimension for all sentences")
    with np.errstate(over="ignore"):  # of float64: what float32 cannot hold is told of below
        vectors = np.ascontiguousarray(array, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise RunFailed(
            f"{who} returned NaN or infinity for {len(bad)} of {len(texts)} sentences, first '{texts[bad[0]][:60]}'",
            "finite numbers for every sentence",
        )
    return vectors
