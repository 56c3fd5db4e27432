"""Smaller vectors are those of sentence-transformers and of mteb's wrapper."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from mteb.models import CompressionWrapper
from mteb.types import OutputDType
from sentence_transformers.util import quantize_embeddings

from bench.base.errors import RunFailed
from bench.method.smaller import Smaller

TEXTS = [f"text {number}" for number in range(300)]
DIMENSIONS = 37


def vectors(sentences: Sequence[str]) -> np.ndarray:
    rows = [np.random.default_rng(int(one.split()[1])).normal(size=DIMENSIONS) for one in sentences]
    return (np.array(rows) + 0.3).astype(np.float32)


def made(smaller: Smaller, sentences: Sequence[str] = TEXTS) -> np.ndarray:
    return np.asarray(smaller.make(vectors, smaller.ranges(vectors, TEXTS))(sentences))


def test_int8_has_the_steps_of_the_library_and_of_mteb() -> None:
    x_ND = vectors(TEXTS)
    wanted_ND = np.asarray(quantize_embeddings(x_ND[:9], "int8", calibration_embeddings=x_ND))
    assert (made(Smaller(precision="int8"), TEXTS[:9]) == wanted_ND).all()
    wrapper: Any = CompressionWrapper.__new__(CompressionWrapper)
    wrapper._quantization_level, wrapper.clipping_margin, wrapper.min_embeds = (
        OutputDType.INT8,
        None,
        0,
    )
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs_ND = wrapper._quantize_embeddings(torch.from_numpy(x_ND)).numpy()
    # the highest number of a dimension is one step higher there
    inside_ND = x_ND < x_ND.max(axis=0)
    assert (made(Smaller(precision="int8")) == theirs_ND)[inside_ND].mean() > 0.999


@pytest.mark.parametrize("count", [None, 8, 20])
def test_the_cosine_of_bits_falls_with_the_bits_that_differ(count: int | None) -> None:
    bits_ND = made(Smaller(count, "binary"))
    kept = count or DIMENSIONS
    packed_NB = np.asarray(quantize_embeddings(vectors(TEXTS)[:, :count], "ubinary"))
    differ = np.unpackbits(packed_NB[0] ^ packed_NB[1]).sum()
    assert set(np.unique(bits_ND).tolist()) == {-1.0, 1.0}
    assert bits_ND[0] @ bits_ND[1] / kept == pytest.approx(1 - 2 * differ / kept)


def test_the_first_numbers_are_kept() -> None:
    assert (made(Smaller(8)) == vectors(TEXTS)[:, :8]).all()
    with pytest.raises(RunFailed, match="dimensions=38: the vectors have 37"):
        made(Smaller(38))
    with pytest.raises(RunFailed, match="calibrated"):
        Smaller(precision="int8").ranges(vectors, [])
