"""Autograd tracks nothing of a frozen encoder below the prompt."""

from __future__ import annotations

import numpy as np
import pytest
from models import Columns, built, sentences

from bench.methods.promcse import PromCSE
from bench.training.batches import batch_of


@pytest.mark.parametrize(
    ("prompt", "below"), [("deep", 2), ("layer-shared", 2), ("input-layer", 0)]
)
def test_below_the_prompt_nothing_is_kept(tiny, tmp_path, prompt, below):
    """A deep prompt enters at the first layer's attention: embeddings and the queries of that layer
    are below it. An input prompt is one of the embeddings, and all is above it.
    """
    method = built(PromCSE, tiny, tmp_path, setting="unsupervised", batch_size=6, prompt=prompt)
    corpus, tracked = Columns(method.token_ids(sentences(6, longest=40))), {}
    queries = [layer.attention.self.query for layer in method.encoder.encoder.layer]
    for i, part in enumerate((method.encoder.embeddings, *queries)):
        part.register_forward_hook(lambda _m, _i, out, i=i: tracked.update({i: out.requires_grad}))
    method.train()(batch_of(method, corpus, 0, np.arange(6), 0))
    assert tracked == {i: i >= below for i in range(3)}
