"""Whitening: its algebra against numbers made elsewhere and numpy, and the pass over a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from models import Columns, built, sentences

from bench.method import BenchError
from bench.methods.whitening import Moments, Whitening, kernel
from bench.training.loop import train_method


def moments_of(rows: np.ndarray, *cuts: int) -> Moments:
    moments = Moments(rows.shape[1])
    for block in np.split(rows, cuts):
        moments.add(block)
    return moments


def cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def fitted(tiny: str, folder: Path, texts: list[str], **values: Any) -> Whitening:
    method = built(Whitening, tiny, folder, **values)
    report = train_method(method, Columns(method.token_ids(texts)), method.context)
    assert (report.steps, report.dev_score, report.sentences) == (0, None, len(texts))
    return method


def pooled_by_hand(method: Whitening, texts: list[str], first: int = 1) -> np.ndarray:
    """(n, H) float64, one sentence at a time, so without padding: mean over tokens of (layer
    ``first`` + last layer) / 2.
    """
    rows = []
    for row in rows_of(method.assemble(method.token_ids(texts))):
        with torch.no_grad():
            out = method.encoder(input_ids=torch.tensor([row]), output_hidden_states=True)
        mean = (out.hidden_states[first] + out.hidden_states[-1]) / 2
        rows.append(mean[0].double().mean(0).numpy())
    return np.array(rows)


def test_it_gives_the_reference_values(reference: dict[str, Any]) -> None:
    known = reference["whitening"]
    rows = np.array(known["fit_rows"])
    moments = moments_of(rows, 1, 4)
    np.testing.assert_allclose(moments.mean, known["mean"], rtol=0, atol=1e-11)
    np.testing.assert_allclose(moments.covariance(), known["covariance_ddof_1"], rtol=0, atol=1e-11)
    for k in (2, 3):
        y = (rows - moments.mean) @ kernel(moments, k)
        np.testing.assert_allclose(cosines(y), known[f"k{k}_cosines"], rtol=0, atol=1e-10)
    W = kernel(moments, 3)
    signs = np.sign((W * np.array(known["kernel_W"])).sum(0))
    np.testing.assert_allclose(W * signs, known["kernel_W"], rtol=0, atol=1e-10)
    new = (np.array(known["new_point"]) - moments.mean) @ (W * signs)[:, :2]
    np.testing.assert_allclose(new, known["new_point_k2"], rtol=0, atol=1e-10)


CUTS, OFFSETS = st.lists(st.integers(0, 40), max_size=4), st.sampled_from([0.0, 1e3, 1e6])


@given(st.integers(0, 1000), st.integers(12, 40), CUTS, OFFSETS)
@settings(max_examples=40)
def test_blocks_of_any_size_give_numpy_s_mean_and_covariance(seed, n, cuts, offset):
    """With an offset much larger than the spread a sum of squares would lose its digits."""
    rows = np.random.default_rng(seed).normal(size=(n, 4)) + offset
    inside = sorted({cut for cut in cuts if 0 < cut < n})
    moments = moments_of(rows, *inside)
    assert moments.count == n
    np.testing.assert_allclose(moments.mean, rows.mean(0), rtol=1e-13, atol=1e-12)
    atol = 1e-8 if offset == 1e6 else 1e-11
    np.testing.assert_allclose(moments.covariance(), np.cov(rows.T), rtol=0, atol=atol)


@pytest.mark.parametrize(("pooling", "first"), [("avg_first_last", 1), ("avg_emb_last", 0)])
def test_encode_gives_the_whitened_mean_of_two_layers(tiny, tmp_path, pooling, first):
    corpus, texts = sentences(150, seed=4), sentences(6, seed=5)
    method = fitted(tiny, tmp_path, corpus, pooling=pooling, components=8)
    x, new = pooled_by_hand(method, corpus, first), pooled_by_hand(method, texts, first)
    u, s, _ = np.linalg.svd(np.cov(x.T))
    wanted = (new - x.mean(0)) @ (u / np.sqrt(s))[:, :8]
    np.testing.assert_allclose(cosines(method.encode(texts)), cosines(wanted), rtol=0, atol=1e-3)


def test_a_corpus_that_cannot_be_whitened_is_one_clear_line(tiny: str, tmp_path: Path) -> None:
    """A fresh layer norm's outputs sum to 0, but for rounding, which whitening would blow up to
    unit variance.
    """
    for count, values, message in (
        (20, {}, "needs more than 32 sentences, the corpus has 20"),
        (2, {"components": 2}, "needs more than 2 sentences, the corpus has 2"),
        (120, {}, "vary in 31 directions only"),
    ):
        with pytest.raises(BenchError, match=message):
            fitted(tiny, tmp_path, sentences(count, seed=6), **values)
