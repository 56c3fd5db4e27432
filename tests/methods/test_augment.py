"""Augmentations: what holds for every text and every draw."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import BertConfig, BertModel

from bench.methods.augment import (
    DropHead,
    cropped,
    inside_words,
    kept,
    mask_span,
    repeat_tokens,
    shuffled,
    split_words,
    without_words,
)

SEEDS = st.integers(0, 2**32)


@settings(max_examples=40)
@given(st.integers(0, 60), st.floats(0, 1), SEEDS)
def test_repeated_tokens_are_there_at_most_twice_and_fewer_than_the_bound(length, rate, seed):
    ids = list(range(100, 100 + length))
    repeated = repeat_tokens(ids, rate, np.random.default_rng(seed))
    runs = [(token, len(list(run))) for token, run in groupby(repeated)]
    assert [token for token, _ in runs] == ids
    assert all(count in (1, 2) for _, count in runs)
    assert len(repeated) - length <= max(0, min(10, int(rate * (length + 2))) - 1)
    assert repeat_tokens(np.array(ids), rate, np.random.default_rng(seed)) == repeated


@pytest.mark.parametrize(
    ("length", "rate", "bound"),
    [(6, 0.32, 2), (1, 0.32, 0), (100, 0.5, 10)],
)
def test_how_many_are_repeated_is_uniform_below_the_bound_and_every_token_may_be(
    length, rate, bound
):
    """The bound counts two special tokens: int(0.32 x 8) = 2 for six word pieces."""
    rng = np.random.default_rng(0)
    draws = [repeat_tokens(range(length), rate, rng) for _ in range(3000)]  # type: ignore[arg-type]
    counts = np.bincount([len(draw) - length for draw in draws], minlength=max(1, bound))
    assert len(counts) == max(1, bound)
    np.testing.assert_allclose(counts / 3000, 1 / len(counts), atol=0.035)
    if bound > 1:
        twice = np.concatenate([np.array(draw)[1:][np.diff(draw) == 0] for draw in draws])
        doubled = np.bincount(twice, minlength=length)
        assert doubled.min() > 0.6 * doubled.mean()


def test_every_span_is_drawn_and_short_texts_stay() -> None:
    text = "abcdefghijklmnopqrstuvwxyz0123"  # 30 characters, all different
    rng = np.random.default_rng(1)
    assert {mask_span(text, rng).index(" [MASK] ") for _ in range(1000)} == set(range(26))
    assert mask_span(text[:29], rng) == text[:29]
    assert mask_span("abc", rng, length=3, shortest=2) == "abc", "nothing of it would be left"
    assert mask_span("abcd", rng, length=3, shortest=2, mask="<mask>") in {" <mask> d", "a <mask> "}


@settings(max_examples=40)
@given(st.integers(1, 200), st.floats(0, 0.999), SEEDS)
def test_a_cut_off_drops_an_exact_number_of_places(size: int, rate: float, seed: int) -> None:
    keep = kept(size, rate, np.random.default_rng(seed))
    assert keep.dtype == bool and (len(keep), (~keep).sum()) == (size, int(rate * size))


@settings(max_examples=40)
@given(st.integers(0, 50), st.integers(0, 20), st.integers(0, 2), SEEDS)
def test_only_the_positions_of_tokens_are_permuted(tokens, padding, first, seed):
    positions = np.arange(first, first + tokens + padding)
    before = positions.copy()
    mixed = shuffled(positions, tokens, np.random.default_rng(seed))
    assert sorted(mixed[:tokens]) == list(before[:tokens])
    assert list(mixed[tokens:]) == list(before[tokens:])
    assert list(positions) == list(before), "the input is changed"


def encoder() -> BertModel:
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 4}
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(vocab_size=20, intermediate_size=8, **sizes, **off)
    return BertModel(config, add_pooling_layer=False)


@pytest.mark.parametrize("probability", [0.3, 0.999])
def test_dropped_heads_are_zero_and_the_others_make_up_for_them(probability: float) -> None:
    model = encoder()
    hook = DropHead(model, probability)
    states = torch.randn(500, 3, 12)
    projection = nn.Linear(12, 12)
    (dropped,) = hook(projection.train(), (states,)) or ()
    before, after = states.unflatten(-1, (4, 3)), dropped.unflatten(-1, (4, 3))
    factor = (after / before).mean((1, 3))  # (500, 4): one a row and head
    torch.testing.assert_close(after, before * factor[:, None, :, None])
    left = (factor > 0).sum(1)
    assert left.min() >= 1, "a row lost every head"
    torch.testing.assert_close(factor.sum(1), torch.full((500,), 4.0))
    if probability == 0.3:
        assert 1 - (factor > 0).float().mean() == pytest.approx(0.3, abs=0.04)
    assert hook(projection.eval(), (states,)) is None


WORDS = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=1, max_size=40)


@settings(max_examples=40)
@given(WORDS, st.floats(0.01, 0.99), SEEDS)
def test_a_crop_is_a_stretch_of_whole_words_of_the_right_length(words, share, seed):
    numbered = [[10 * i + token for token in word] for i, word in enumerate(words)]  # all different
    found = cropped(numbered, share, np.random.default_rng(seed))
    left = max(1, len(words) - round(share * len(words)))
    starts = range(len(words) - left + 1)
    assert found in [sum(numbered[i : i + left], []) for i in starts]


@settings(max_examples=40)
@given(WORDS, st.integers(0, 50), SEEDS)
def test_so_many_words_are_left_out_and_the_rest_stays_in_order(words, count, seed):
    numbered = [[10 * i + token for token in word] for i, word in enumerate(words)]
    found = without_words(numbered, count, np.random.default_rng(seed))
    left = list(dict.fromkeys(token // 10 for token in found))
    assert len(left) == max(1, len(words) - count) and left == sorted(left)
    assert found == [token for i in left for token in numbered[i]]


@pytest.mark.parametrize("backbone", ["tiny", "tiny_roberta"])
def test_words_are_those_of_the_tokenizer(request: pytest.FixtureRequest, backbone: str) -> None:
    """The words agree with the library's own ``word_ids``; RoBERTa's tokens mark blanks, so that a
    full stop belongs to its word.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(request.getfixturevalue(backbone))
    text = "unbelievable antidisestablishment plays quietly outside"
    encoded = tokenizer(text, add_special_tokens=False)
    known: dict[int, list[int]] = {}
    for token, word in zip(encoded["input_ids"], encoded.word_ids(), strict=True):
        known.setdefault(word, []).append(token)
    assert len(encoded["input_ids"]) > len(known) == 5, "some word has several pieces"
    assert split_words(encoded["input_ids"], inside_words(tokenizer)) == list(known.values())
