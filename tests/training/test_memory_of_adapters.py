"""A plan's estimate of the memory of adapters, against the tensors of a training step of peft."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from live_memory import LiveBytes
from torch import nn

from bench.backbones import Reference
from bench.backbones.adapters import AdapterSettings, add_adapters
from bench.data.corpora import open_corpus_file
from bench.method.cost import EncoderShape
from bench.method.encoder_values import recompute_activations
from bench.run.estimates import PROCESS, estimate
from bench.run.planned import PlannedRun
from bench.run.plugins import discover
from bench.run.recipes import merge_recipe

QWEN3: dict[str, Any] = {
    "model_type": "qwen3",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 768,
    "vocab_size": 512,
}
LENGTH = 32


def model_of(config: dict[str, Any]) -> Any:
    from transformers import Qwen3Config, Qwen3Model

    sizes = {key: value for key, value in config.items() if key != "model_type"}
    return Qwen3Model(Qwen3Config(use_cache=False, **sizes))


def planned(tmp_path: Path, rows: int, **values: str) -> PlannedRun:
    (tmp_path / "config.json").write_text(json.dumps(QWEN3))
    plugin = discover()["simcse"]
    values |= {"batch_size": str(rows), "max_seq_length": str(LENGTH), "max_steps": "10"}
    return PlannedRun(
        plugin=plugin,
        variant="",
        setting="unsupervised",
        seed=1,
        recipe=merge_recipe(plugin.cls, None, "", {"head": "false"} | values, trained=True),
        backbone=Reference(name="qwen3", revision="unknown", path=tmp_path),
        corpus=open_corpus_file("builtin"),
        precision="fp32",
    )


def most_alive(rows: int, *, lora: bool, checkpointing: bool) -> int:
    """Bytes, at most, in a step of two views, AdamW's moments among them."""
    with LiveBytes() as live:
        model = model_of(QWEN3).train()
        if lora:
            add_adapters(model, AdapterSettings(rank=8, alpha=16.0, dropout=0.05), seed=1)
        if checkpointing:
            recompute_activations(model, "qwen3")
        trained = [p for p in model.parameters() if p.requires_grad]
        moments = [torch.zeros_like(p) for p in trained for _ in range(2)]
        ids = torch.zeros(2 * rows, LENGTH, dtype=torch.int64)
        found = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state.mean(1)
        unit = nn.functional.normalize(found)
        (unit[:rows] @ unit[rows:].T).mean().backward()
    assert len(moments) == 2 * len(trained)
    return live.peak


@pytest.mark.slow(seconds=4)
@pytest.mark.parametrize(("lora", "checkpointing"), [(True, False), (True, True), (False, False)])
def test_the_promise_is_near(tmp_path: Path, lora: bool, checkpointing: bool) -> None:
    values = {"adapter": "lora", "lora_rank": "8"} if lora else {}
    if checkpointing:
        values["gradient_checkpointing"] = "true"
    guess = estimate(planned(tmp_path, 32, **values), {}, "cpu").memory_bytes
    alive = most_alive(32, lora=lora, checkpointing=checkpointing)
    assert guess is not None
    assert guess - PROCESS["cpu"] == pytest.approx(alive, rel=0.15)


def test_weights_of_decoders_and_adapters_are_counted() -> None:
    shape = EncoderShape.from_sizes(QWEN3)
    assert shape is not None and shape.gated
    model = model_of(QWEN3)
    whole = sum(p.numel() for p in model.parameters() if p.ndim > 1)
    assert shape.weights == whole
    add_adapters(model, AdapterSettings(rank=8, alpha=16.0, dropout=0.0), seed=1)
    adapters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert shape.adapter_weights(8, "all") == adapters
    some = shape.adapter_weights(8, "q_proj+v_proj")
    assert some == 4 * 8 * ((256 + 512) + (256 + 128))


def test_a_narrow_base_takes_less(tmp_path: Path) -> None:
    def bytes_of(**values: str) -> int:
        guess = estimate(planned(tmp_path, 1, adapter="lora", **values), {}, "cpu")
        assert guess.memory_bytes is not None
        return guess.memory_bytes

    shape = EncoderShape.from_sizes(QWEN3)
    assert shape is not None
    plain, half, four = (bytes_of(base_dtype=kind) for kind in ("fp32", "bf16", "4bit"))
    assert plain - half == 2 * shape.weights
    assert plain - four == pytest.approx((4 - 0.52) * shape.layer_weights, abs=8)
