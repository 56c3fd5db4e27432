"""A PromCSE checkpoint as its authors saved it: read with its prefix and head, it gives the vectors
of the method with these weights.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from models import built, sentences
from released import promcse_checkpoint

from bench.backbones import load, resolve
from bench.base.errors import NotAModel
from bench.methods.pretrained import Pretrained
from bench.methods.stored_prefix import StoredPrefix

P = 5
TEXTS = sentences(12, seed=2)


def test_the_vectors_are_those_of_keys_and_values_cut_as_the_authors_cut_them(backbone, tmp_path):
    """A row of the table is (2L, A, H / A): layer by layer a key, then a value, in heads;
    transformers' own cache holds them.
    """
    from transformers import AutoModel, AutoTokenizer, DynamicCache

    folder, added = promcse_checkpoint(backbone, tmp_path / "released", length=P)
    encoder = AutoModel.from_pretrained(backbone, add_pooling_layer=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(backbone)
    layers, heads = encoder.config.num_hidden_layers, encoder.config.num_attention_heads
    ours = built(StoredPrefix, folder, tmp_path, pooling="mlp").encode(TEXTS)
    for text, vector in zip(TEXTS, ours, strict=True):
        table = added["prefix_encoder.embedding.weight"].view(1, P, layers * 2, heads, -1)
        pairs = table.permute(2, 0, 3, 1, 4).split(2)
        cache = DynamicCache()
        for layer, (key, value) in enumerate(pairs):
            cache.update(key, value, layer)
        ids = tokenizer([text], return_tensors="pt")["input_ids"]
        mask = torch.ones(1, P + ids.shape[1], dtype=torch.long)
        with torch.no_grad():
            out = encoder(input_ids=ids, attention_mask=mask, past_key_values=cache)
        cls = out.last_hidden_state[:, 0]
        wanted = torch.tanh(cls @ added["mlp.dense.weight"].T + added["mlp.dense.bias"])
        np.testing.assert_allclose(vector, wanted[0].numpy(), atol=2e-6)


def test_no_other_method_leaves_the_prefix_out(tiny: str, tmp_path: Path) -> None:
    folder, _ = promcse_checkpoint(tiny, tmp_path / "released", length=P)
    with pytest.raises(
        NotAModel, match=r"released/model\.safetensors .*prefix_encoder\.embedding\.weight"
    ) as caught:
        built(Pretrained, folder, tmp_path, pooling="cls")
    assert f"--method stored-prefix --backbone {folder}" in str(caught.value.hint)
    with pytest.raises(NotAModel, match="prefix_encoder"):
        load(resolve(folder))
