"""Rows grouped by length on their way through the encoder: the same states and gradients as all of
them at once.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bench.method.features
from bench.method import TorchMethod
from bench.method.features import group_by_length, pad


def bert(dropout: float = 0.0):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 64, "max_position_embeddings": 64}
    off = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = transformers.BertConfig(**sizes, **off)
    return transformers.BertModel(config, add_pooling_layer=False)


class Probe(TorchMethod):
    name = "probe"

    def __init__(self, encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.shapes: list[tuple[int, ...]] = []
        encoder.register_forward_pre_hook(
            lambda module, args, kwargs: self.shapes.append(tuple(kwargs["input_ids"].shape)),
            with_kwargs=True,
        )


def rows(lengths: list[int]) -> list[list[int]]:
    return [[(7 * i + j) % 49 + 1 for j in range(length)] for i, length in enumerate(lengths)]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_groups_hold_every_row_once_longest_first(lengths: list[int]) -> None:
    mask = pad(rows(lengths), 0)["attention_mask"]
    groups = [group.tolist() for group in group_by_length(mask)]
    assert sorted(row for group in groups for row in group) == list(range(len(lengths)))
    longest = [max(lengths[row] for row in group) for group in groups]
    assert longest == sorted(longest, reverse=True)
    computed = sum(len(group) * most for group, most in zip(groups, longest, strict=True))
    passes = bench.method.features.PASS_TOKENS * (len(groups) - 1)  # each cut pays for its pass
    assert computed + passes <= len(lengths) * max(lengths)


def test_states_and_gradients_are_those_of_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    features = pad(rows([30, 3, 17, 29, 4, 4, 5, 16, 2, 30, 6, 3] * 2), 0)
    mask = features["attention_mask"].unsqueeze(-1)
    weight = torch.randn(24, 30, 32, generator=torch.Generator().manual_seed(1)) * mask
    seen = []
    for cost in (bench.method.features.PASS_TOKENS, 10**9):  # in groups; all at once
        monkeypatch.setattr(bench.method.features, "PASS_TOKENS", cost)
        probe = Probe(bert())
        states = probe.hidden(features)
        (states * weight).sum().backward()
        grads = [p.grad for p in probe.encoder.parameters()]
        seen.append((states.detach() * mask, grads, probe.shapes))
    (grouped, grads, shapes), (whole, whole_grads, whole_shapes) = seen
    assert whole_shapes == [(24, 30)]
    assert len(shapes) > 1 and sum(n * t for n, t in shapes) < 24 * 30
    torch.testing.assert_close(grouped, whole, atol=2e-6, rtol=0)
    for one, other in zip(grads, whole_grads, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)
