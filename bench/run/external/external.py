"""Make the method of a model that bench did not build, and check the vectors that it returns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.base import __version__
from bench.base.errors import BenchError, RunFailed
from bench.method.contract import Method
from bench.method.plugins import Plugin
from bench.records.record import public_name

LONGEST_NAME = 60
"""Characters of a model's name."""


def external_plugin(base: type[Method], name: str, **attributes: Any) -> Plugin:
    """Make the method of one model: a class like ``base`` with these attributes.

    Its backbone has the (shortened) name. Raises BenchError for the name of the backbone inside
    this package.
    """
    short = public_name(name).strip()[:LONGEST_NAME] or "model"
    if short == "builtin":
        raise BenchError("builtin is the name of the backbone inside this package", "another name")
    members = {**attributes, "__module__": base.__module__, "own_backbone": short}
    cls = type(base.__name__, (base,), members)
    code = hashlib.sha256(f"bench {base.name} 1".encode()).hexdigest()
    return Plugin(base.name, cls, "bench", __version__, code)


BYTES = (
    "return floats: np.unpackbits(vectors.view(np.uint8), axis=1).astype(np.float32) of bits "
    "(ubinary), vectors.astype(np.float32) of quantised numbers"
)
ENCODES = "encode takes a list of n strings and returns an array (n, d) of finite floats"


def as_vectors(
    returned: Any, texts: Sequence[str], who: str, dimension: int | None = None
) -> np.ndarray:
    """Return vectors as (n, d) float32, row i for text i.

    ``who`` names the source in errors. ``dimension``: the d of earlier vectors. Raises
    RunFailed for anything but n rows of d finite numbers; it names ``who`` and the first wrong
    text.
    """
    if isinstance(returned, list | tuple):
        returned = [_from_torch(row) for row in returned]
    try:
        array = np.asarray(_from_torch(returned))
        problem = _problem(array, texts, dimension)
    except (TypeError, ValueError):  # rows of different lengths
        problem = "vectors of different dimensions"
    if problem:
        raise RunFailed(f"{who} returned {problem}", BYTES if "packed" in problem else ENCODES)
    return np.ascontiguousarray(array, dtype=np.float32)


def _problem(array: np.ndarray, texts: Sequence[str], dimension: int | None) -> str:
    """Describe the fault of an array of vectors; "" if there is none."""
    if array.dtype.kind not in "fiu":
        return f"{array.dtype}, not numbers"
    if array.dtype in (np.uint8, np.int8):
        return f"{array.dtype}, which may be packed bits"
    if array.ndim != 2 or len(array) != len(texts) or not array.shape[1]:
        return f"shape {array.shape} for {len(texts)} sentences; expected ({len(texts)}, d)"
    if dimension not in (None, array.shape[1]):
        return f"{array.shape[1]} dimensions, {dimension} before"
    is_finite = (np.abs(array) <= np.finfo(np.float32).max).all(axis=1)
    bad = np.flatnonzero(~is_finite)
    if not len(bad):
        return ""
    first = texts[bad[0]][:60]
    return f"NaN or infinity for {len(bad)} of {len(texts)} sentences, first '{first}'"


def _from_torch(value: Any) -> Any:
    """Return a torch tensor as a numpy array, and anything else unchanged."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach().cpu()
    if tensor.is_floating_point():  # numpy has no bfloat16
        tensor = tensor.float()
    return tensor.numpy()
