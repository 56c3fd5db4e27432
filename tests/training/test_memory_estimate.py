"""What ``bench run --dry-run`` says of memory, against the bytes of the tensors of a training step. Nothing is computed: fake tensors."""

from __future__ import annotations

import json
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

SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
SIZES += ("vocab_size",)
SHAPES = {
    "base": dict(zip(SIZES, (768, 12, 12, 3072, 30522), strict=True)),
    "large": dict(zip(SIZES, (1024, 24, 16, 4096, 50265), strict=True)),
    "narrow inside": dict(zip(SIZES, (512, 6, 8, 512, 8192), strict=True)),
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
                cls = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
                unit = torch.nn.functional.normalize(cls[:, 0])
                loss = (unit[:rows] @ unit[rows:].T).float().mean()
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
def test_the_promise_is_within_a_tenth(tmp_path, name, rows, chunk, precision):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **SHAPES[name]}))
    plugin = discover()["simcse"]
    values = {"batch_size": str(rows), "max_seq_length": "32", "max_steps": "10"}
    about: Any = {"plugin": plugin, "variant": "", "setting": "unsupervised", "seed": 1}
    about |= {"recipe": merge(plugin.cls, None, "", values, trained=True), "tasks": ()}
    about |= {"task_data": (), "dev": None, "text": "tokenised", "fingerprint": ""}
    backbone, corpus = Reference(name, "unknown", tmp_path), open_corpus("builtin")
    run = PlannedRun(backbone=backbone, corpus=corpus, precision=precision, **about)
    guess = estimate(run, {}, "cpu", chunk)
    assert guess.memory_bytes is not None
    promised = guess.memory_bytes - PROCESS["cpu"]  # what is no tensor
    alive = most_alive(SHAPES[name], chunk or rows, 32, precision, passes=2 if chunk else 1)
    assert promised == pytest.approx(alive, rel=0.1)
