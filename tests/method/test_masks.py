"""A mask of four dimensions: the same bits as transformers' own, and no question to the device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModel

from bench.method import masks
from bench.method.features import pad
from bench.method.masks import TAKE_WHOLE_MASKS, takes_whole_mask, whole_mask, with_whole_mask

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "embedding_size": 16,
}


def encoder_of(family: str, attention: str = "sdpa", **values: Any) -> Any:
    torch.manual_seed(0)
    config = CONFIG_MAPPING[family](**SIZES, **values)
    return AutoModel.from_config(config, attn_implementation=attention).eval()


@pytest.mark.parametrize("family", TAKE_WHOLE_MASKS)
def test_the_states_have_the_same_bits(family: str) -> None:
    encoder = encoder_of(family)
    features = pad([[5, 6, 7, 8], [9], [10, 11]], 0)
    mask = features["attention_mask"]
    assert takes_whole_mask(encoder)
    expected = encoder(**features).last_hidden_state
    found = encoder(**{**features, "attention_mask": whole_mask(mask)}).last_hidden_state
    assert torch.equal(found[mask.bool()], expected[mask.bool()])


def test_a_mask_of_pairs_says_which_tokens_are_attended() -> None:
    mask = whole_mask(torch.tensor([[1, 1, 0], [1, 0, 0]]))
    assert mask.shape == (2, 1, 3, 3)
    assert mask[0, 0].tolist() == [[True, True, False]] * 3
    assert mask[1, 0].tolist() == [[True, False, False]] * 3


@pytest.mark.parametrize(
    "encoder",
    [
        encoder_of("bert", is_decoder=True),
        encoder_of("bert", attention="eager"),
        torch.nn.Identity(),
    ],
)
def test_other_encoders_keep_their_mask(encoder: Any) -> None:
    assert not takes_whole_mask(encoder)


def test_a_mask_on_a_cpu_stays_and_one_on_a_device_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(masks, "takes_whole_mask", lambda encoder: True)
    on_cpu = {"attention_mask": torch.ones(2, 3)}
    assert with_whole_mask(on_cpu, None)["attention_mask"].shape == (2, 3)
    elsewhere = {"attention_mask": torch.ones(2, 3, device="meta")}
    assert with_whole_mask(elsewhere, None)["attention_mask"].shape == (2, 1, 3, 3)
    assert with_whole_mask({}, None) == {}
