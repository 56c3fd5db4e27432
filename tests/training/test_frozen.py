"""What autograd keeps of a frozen encoder: nothing below the prompt, and above it what its gradient passes through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import Columns, built, sentences

from bench.training.batches import batch_of
from methods.flow import Flow
from methods.promcse import PromCSE


def ready(cls: Any, tiny: str, folder: Path, **values: Any) -> tuple[Any, Any]:
    setting = "unsupervised" if cls is not Flow else "none"
    method = built(cls, tiny, folder, setting=setting, batch_size=6, **values)
    method.train()
    corpus = Columns(method.token_ids(sentences(6, longest=40)))
    return method, batch_of(method, corpus, 0, np.arange(6), 0)


def tracked(method: Any, batch: Any, part: torch.nn.Module) -> bool:
    """Does the output of a part of the encoder have a gradient while the loss is computed?"""
    found: list[bool] = []
    hook = part.register_forward_hook(
        lambda module, inputs, output: found.append(output.requires_grad)
    )
    method(batch)
    hook.remove()
    return any(found)


@pytest.mark.parametrize(
    ("prompt", "embeddings", "first_query", "second_query"),
    [
        ("deep", False, False, True),
        ("layer-shared", False, False, True),
        ("input-layer", True, True, True),
    ],
)
def test_below_the_prompt_nothing_is_kept(
    tiny, tmp_path, prompt, embeddings, first_query, second_query
):
    """A deep prompt enters at the first layer's attention: embeddings and the queries of that layer are below it. An input
    prompt is one of the embeddings, and all is above it."""
    method, batch = ready(PromCSE, tiny, tmp_path, prompt=prompt)
    layers = method.encoder.encoder.layer
    assert tracked(method, batch, method.encoder.embeddings) is embeddings
    assert tracked(method, batch, layers[0].attention.self.query) is first_query
    assert tracked(method, batch, layers[1].attention.self.query) is second_query
