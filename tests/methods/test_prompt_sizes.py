"""Prompts for a backbone: how many numbers they have, and which are refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_prefix import H, L, P, encoder
from transformers import DistilBertConfig, DistilBertModel

from bench.method import BenchError
from methods.prefix import DeepPrefix, InputPrompt, check_prompt, prompt_for


@pytest.mark.parametrize(
    "layers, hidden, length, count",
    [
        (12, 768, 16, 294_912),
        (12, 768, 12, 221_184),
        (12, 768, 14, 258_048),
        (12, 768, 10, 184_320),
        (24, 1024, 10, 491_520),
        (24, 1024, 12, 589_824),
    ],
)
def test_how_many_numbers_a_prefix_has(layers: int, hidden: int, length: int, count: int) -> None:
    with torch.device("meta"):
        assert (
            sum(
                p.numel()
                for p in DeepPrefix(layers, hidden // 64, hidden, length, 0.1).parameters()
            )
            == count
        )


def test_how_many_the_ablations_have() -> None:
    with torch.device("meta"):
        assert (
            sum(p.numel() for p in DeepPrefix(12, 12, 768, 16, 0.1, shared=True).parameters())
            == 24_576
        )
        assert sum(p.numel() for p in InputPrompt(768, 16).parameters()) == 12_288


def backbone(model: Any, family: str, max_tokens: int = 40) -> Any:
    width = getattr(model.config, "embedding_size", model.config.hidden_size)
    return SimpleNamespace(
        name="here", family=family, encoder=model, max_tokens=max_tokens, embedding_size=width
    )


def test_a_prompt_for_a_backbone_has_its_shapes_and_its_dropout() -> None:
    model = backbone(encoder("bert", dropout=0.25), "bert")
    deep, shared, before = (
        prompt_for(model, kind, P) for kind in ("deep", "layer-shared", "input-layer")
    )
    assert [tuple(made.table.shape) for made in (deep, shared, before)] == [
        (P, 2 * L * H),
        (P, 2 * H),
        (P, H),
    ]
    assert isinstance(deep, DeepPrefix) and deep.dropout.p == 0.25
    other = prompt_for(model, "deep", P, 0.0)
    assert isinstance(other, DeepPrefix) and other.dropout.p == 0.0


@pytest.mark.parametrize(
    "kind, length, line",
    [
        ("shallow", P, "prompt=shallow is unknown"),
        ("deep", 0, "prompt_length=0"),
        ("deep", -1, "prompt_length=-1"),
        ("deep", 38, "prompt_length=38: here has 40 positions"),
        ("input-layer", 38, "prompt_length=38: here has 40 positions"),
    ],
)
def test_a_prompt_that_cannot_be_is_refused(kind: str, length: int, line: str) -> None:
    with pytest.raises(BenchError, match=line):
        prompt_for(backbone(encoder("bert"), "bert"), kind, length)


def test_a_prompt_that_leaves_no_room_is_refused_before_the_backbone_is_loaded(
    tmp_path: Path,
) -> None:
    check_prompt("deep", 38, None, tmp_path)  # nothing is known
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 40}', encoding="utf-8")
    check_prompt("deep", 37, None, tmp_path)
    with pytest.raises(BenchError, match="prompt_length=38: the backbone has 40 positions"):
        check_prompt("deep", 38, None, tmp_path)


def test_an_encoder_without_a_place_for_keys_and_values_is_refused() -> None:
    model = DistilBertModel(
        DistilBertConfig(
            vocab_size=50, dim=8, n_layers=1, n_heads=1, hidden_dim=8, max_position_embeddings=40
        )
    )
    with pytest.raises(BenchError, match="distilbert"):
        prompt_for(backbone(model, "distilbert"), "deep", P)
