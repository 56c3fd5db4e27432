"""Masking: which positions are chosen and what becomes of them; the loss against the authors'
arithmetic.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.methods.masking import (
    NOT_CHOSEN,
    mask_tokens,
    mean_surprise,
    places_of,
    special_positions,
    surprise_of_rows,
)

PAD = 0
UNKNOWN = 1
CLS = 2
SEP = 3
MASK = 4
V = 997
SPECIAL = (MASK, PAD, UNKNOWN, SEP, CLS)


def rows(n: int, T: int, seed: int = 0) -> torch.Tensor:
    """Sentences of random ordinary ids between CLS and SEP, padded, with an unknown token in
    each.
    """
    rng = np.random.default_rng(seed)
    ids = torch.from_numpy(rng.integers(5, V, size=(n, T)))
    for row, length in zip(ids, rng.integers(4, T + 1, size=n), strict=True):
        row[0] = CLS
        row[2] = UNKNOWN
        row[length - 1] = SEP
        row[length:] = PAD
    return ids


SHARES = st.sampled_from([0.0, 0.15, 1.0])


@given(st.integers(1, 9), st.integers(4, 20), st.integers(0, 10_000), SHARES)
@settings(max_examples=50)
def test_spared_tokens_are_never_chosen_and_tokens_not_chosen_never_change(n, T, seed, share):
    ids = rows(n, T, seed)
    spared = special_positions(ids, SPECIAL)
    before = ids.clone()
    torch.manual_seed(seed)
    masked, labels = mask_tokens(ids, spared, MASK, V, share)
    chosen = labels != -100
    assert torch.equal(ids, before), "the given ids were written to"
    assert not (chosen & spared).any()
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(masked[~chosen], ids[~chosen])
    assert masked.dtype == labels.dtype == ids.dtype
    assert chosen.sum() == {0.0: 0, 1.0: (~spared).sum()}.get(share, chosen.sum())


def test_shares_are_15_percent_and_of_these_80_10_10() -> None:
    """400,000 positions: each share is within five standard deviations of its expectation."""
    ids = torch.full((4000, 100), 5)
    torch.manual_seed(3)
    masked, labels = mask_tokens(ids, torch.zeros_like(ids, dtype=torch.bool), MASK, V, 0.15)
    chosen = labels != -100
    n = int(chosen.sum())
    assert n / ids.numel() == pytest.approx(0.15, abs=5 * math.sqrt(0.15 * 0.85 / ids.numel()))
    after = masked[chosen]
    # a random id is the mask or the token itself once in V draws: no more than 1e-4 of all
    other = (after != MASK) & (after != 5)
    for share, wanted in (((after == MASK), 0.8), ((after == 5), 0.1), (other, 0.1)):
        sd = math.sqrt(wanted * (1 - wanted) / n)
        assert share.double().mean().item() == pytest.approx(wanted, abs=5 * sd + 2e-4)
    drawn = after[other]
    assert drawn.min() >= 0 and drawn.max() < V
    counts = np.bincount(drawn.numpy(), minlength=V)
    assert np.count_nonzero(counts) > 0.99 * (V - 2), "random ids do not cover the vocabulary"
    assert np.var(counts) / np.mean(counts) == pytest.approx(1, abs=0.3), "they are not uniform"


def mlm_loss(logits_nTV: torch.Tensor, labels_nT: torch.Tensor) -> torch.Tensor:
    places = places_of(labels_nT)
    return mean_surprise(*surprise_of_rows(logits_nTV[places], labels_nT, places))


@pytest.mark.parametrize("texts", [1, 3])
def test_sums_and_counts_of_each_row_over_its_texts(texts: int) -> None:
    """Against a loop over the chosen positions; row i of every text belongs to sentence i."""
    rng = np.random.default_rng(texts)
    n, T = 2, 5
    labels = rng.integers(V, size=(texts * n, T))
    labels[rng.random(labels.shape) < 0.5] = NOT_CHOSEN
    labels[0] = NOT_CHOSEN  # nothing is to be guessed in this row
    logits = rng.normal(size=(texts * n, T, V))
    sums, counts = np.zeros(n), np.zeros(n)
    for i, t in zip(*np.nonzero(labels != NOT_CHOSEN), strict=True):
        sums[i % n] += np.log(np.exp(logits[i, t]).sum()) - logits[i, t, labels[i, t]]
        counts[i % n] += 1
    given = torch.tensor(labels)
    places = places_of(given)
    found = surprise_of_rows(torch.tensor(logits)[places], given, places, texts)
    for one, wanted in zip(found, (sums, counts), strict=True):
        np.testing.assert_allclose(one.numpy(), wanted, rtol=0, atol=1e-9)


def test_nothing_chosen_is_a_loss_of_zero_with_a_gradient_of_zero() -> None:
    logits = torch.randn((2, 3, 4), requires_grad=True)
    loss = mlm_loss(logits, torch.full((2, 3), NOT_CHOSEN))
    loss.backward()
    assert loss.item() == 0 and logits.grad is not None and not logits.grad.any()
