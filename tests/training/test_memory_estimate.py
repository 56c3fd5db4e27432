"""What ``bench run --dry-run`` says of memory, against the bytes of the tensors of a training step. Nothing is computed: fake tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from live_memory import LiveBytes
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import BertConfig, BertModel

from bench.backbones import Reference
from bench.data.corpora import open_corpus
from bench.run.estimates import PROCESS, estimate
from bench.run.plan import PlannedRun
from bench.run.plugins import discover
from bench.run.recipes import merge

SHAPES = {
    "base": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 30522,
    },
    "large": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "vocab_size": 50265,
    },
    "narrow inside": {
        "hidden_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "intermediate_size": 512,
        "vocab_size": 8192,
    },
}


def most_alive(
    shape: dict[str, Any], rows: int, length: int, precision: str, passes: int = 1
) -> int:
    """Bytes, at most, in a step of SimCSE: two views of each row in one pass, CLS, AdamW's moments there. ``passes``: so many chunks
    of ``rows`` rows, one after the other."""
    with FakeTensorMode(allow_non_fake_inputs=True), LiveBytes() as live:
        model = BertModel(BertConfig(**shape), add_pooling_layer=False).train()
        moments = [torch.zeros_like(p) for p in model.parameters() for _ in range(2)]
        for _ in range(passes):
            ids = torch.zeros(2 * rows, length, dtype=torch.int64)
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                cls = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[
                    :, 0
                ]
                loss = (
                    (
                        torch.nn.functional.normalize(cls[:rows])
                        @ torch.nn.functional.normalize(cls[rows:]).T
                    )
                    .float()
                    .mean()
                )
            loss.backward()
    assert len(moments) and all(p.grad is not None for p in model.parameters())
    return live.peak


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("name", "rows", "chunk"),
    [
        ("base", 1, None),
        ("base", 64, None),
        ("base", 512, None),
        ("large", 256, None),
        ("narrow inside", 256, None),
        ("base", 512, 16),
        ("base", 512, 128),
        ("large", 256, 64),
    ],
)
def test_the_promise_is_within_a_tenth(
    tmp_path: Path, name: str, rows: int, chunk: int | None, precision: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **SHAPES[name]}))
    plugin = discover()["simcse"]
    recipe = merge(
        plugin.cls,
        None,
        "",
        {"batch_size": str(rows), "max_seq_length": "32", "max_steps": "10"},
        trained=True,
    )
    run = PlannedRun(
        plugin=plugin,
        variant="",
        setting="unsupervised",
        backbone=Reference(name, "unknown", tmp_path),
        seed=1,
        recipe=recipe,
        corpus=open_corpus("builtin"),
        tasks=(),
        task_data=(),
        dev=None,
        text="tokenised",
        precision=precision,
        fingerprint="",
    )
    guess = estimate(run, {}, "cpu", chunk)
    assert guess.memory_bytes is not None
    promised = guess.memory_bytes - PROCESS["cpu"]  # what is no tensor
    alive = most_alive(SHAPES[name], chunk or rows, 32, precision, passes=2 if chunk else 1)
    assert promised == pytest.approx(alive, rel=0.1)
