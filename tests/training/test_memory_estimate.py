"""The memory estimate of ``bench run --dry-run``, against the bytes of the tensors of a training
step. Nothing is computed: fake tensors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from live_memory import LiveBytes
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import BertConfig, BertModel

from bench.backbones import Reference
from bench.data.corpora import open_corpus_file
from bench.run.estimates import PROCESS, estimate
from bench.run.planned import PlannedRun
from bench.run.plugins import discover
from bench.run.recipes import merge_recipe

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
    """Bytes, at most, in a step of SimCSE: two views of each row in one pass, CLS, AdamW's moments
    there. ``passes``: so many chunks of ``rows`` rows, one after the other.
    """
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


def planned(
    tmp_path: Path, shape: str, method: str, rows: int, precision: str, **values: str
) -> PlannedRun:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **SHAPES[shape]}))
    plugin = discover()[method]
    values |= {"batch_size": str(rows), "max_seq_length": "32", "max_steps": "10"}
    return PlannedRun(
        plugin=plugin,
        variant="",
        setting="unsupervised",
        seed=1,
        recipe=merge_recipe(plugin.cls, None, "", values, trained=True),
        backbone=Reference(name=shape, revision="unknown", path=tmp_path),
        corpus=open_corpus_file("builtin"),
        precision=precision,
    )


def promised(run: PlannedRun, chunk: int | None = None) -> int:
    """Bytes of tensors: without the process."""
    guess = estimate(run, {}, "cpu", chunk)
    assert guess.memory_bytes is not None
    return guess.memory_bytes - int(PROCESS["cpu"])


@pytest.mark.slow
@pytest.mark.matrix(every=5)
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
    run = planned(tmp_path, name, "simcse", rows, precision)
    alive = most_alive(SHAPES[name], chunk or rows, 32, precision, passes=2 if chunk else 1)
    assert promised(run, chunk) == pytest.approx(alive, rel=0.1)


def most_alive_of_a_prompt(shape: dict[str, Any], rows: int, precision: str, mlm: bool) -> int:
    """Return the peak of bytes in a step through a frozen encoder.

    ``mlm``: with masked copies; an LM head that trains guesses 15 % of their tokens.
    """
    with FakeTensorMode(allow_non_fake_inputs=True), LiveBytes() as live:
        model = BertModel(BertConfig(**shape), add_pooling_layer=False).train()
        model.requires_grad_(False)
        hidden = shape["hidden_size"]
        prompt = torch.zeros(2 * shape["num_hidden_layers"] * 16 * hidden, requires_grad=True)
        head = nn.Linear(hidden, hidden)
        decoder = nn.Linear(hidden, shape["vocab_size"]) if mlm else None
        trained = [prompt, *head.parameters(), *(decoder.parameters() if decoder else ())]
        moments = [torch.zeros_like(p) for p in trained for _ in range(2)]
        ids = torch.zeros(2 * rows, 32, dtype=torch.int64)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):

            def states() -> torch.Tensor:
                words = model.embeddings.word_embeddings(ids) + prompt[:hidden]
                return model(inputs_embeds=words, attention_mask=torch.ones_like(ids))[0]

            unit = torch.nn.functional.normalize(head(states()[:, 0]))
            loss = (unit[:rows] @ unit[rows:].T).float().mean()
            if decoder:
                guessed = states().flatten(0, 1)[: round(0.15 * 2 * rows * 32)]
                logits = decoder(guessed).float()
                labels = torch.zeros(len(logits), dtype=torch.int64)
                loss = loss + torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
    assert len(moments) and all(p.grad is not None for p in trained)
    assert all(p.grad is None for p in model.parameters())
    return live.peak


@pytest.mark.slow
@pytest.mark.matrix(every=4)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("mlm", [False, True])
@pytest.mark.parametrize(("name", "rows"), [("base", 64), ("large", 256)])
def test_a_frozen_encoder_has_no_gradients_and_an_lm_head_is_counted(
    tmp_path, name, rows, mlm, precision
):
    run = planned(tmp_path, name, "promcse", rows, precision, mlm=str(mlm).lower())
    alive = most_alive_of_a_prompt(SHAPES[name], rows, precision, mlm)
    assert promised(run) == pytest.approx(alive, rel=0.1)
