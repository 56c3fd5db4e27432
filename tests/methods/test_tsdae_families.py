"""TSDAE on ModernBERT and its kin.

The decoder against layers that are run one by one, and the inputs that reach it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from every_family import EVERY
from harness import batch_of, training
from models import built, sentences

from bench.method import Batch
from bench.method.torch_method import trained_state
from bench.methods.hooked_decoder import earlier_masks
from bench.methods.tsdae import TSDAE

KIN = pytest.mark.parametrize(
    "name",
    [
        "modernbert",
        *(pytest.param(one, marks=pytest.mark.nightly) for one in ("nomic_bert", "eurobert")),
    ],
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("kin")
    made: dict[str, str] = {}

    def folder(name: str) -> str:
        if name not in made:
            made[name] = EVERY[name](place / name)
        return made[name]

    return folder


def by_hand(method: Any, ids: Any, vectors: Any) -> Any:
    """Run the layers one by one, each with its cross-attention written out."""
    encoder = method.encoder
    T = ids.shape[1]
    places = torch.arange(T)[None]
    mask = torch.full((T, T), torch.finfo(torch.float64).min, dtype=torch.float64).triu(1)
    mask = mask[None, None]
    states = encoder.get_input_embeddings()(ids)
    if hasattr(encoder, "embeddings"):
        states = encoder.embeddings(input_ids=ids)
    for layer, cross in zip(encoder.layers, method.cross, strict=True):
        added = (vectors @ cross.value.weight.T + cross.value.bias) @ cross.output.weight.T
        added = (added + cross.output.bias)[:, None]
        if hasattr(layer, "attn"):  # ModernBERT
            rotary = encoder.rotary_emb(states, places, layer.attention_type)
            looked, _ = layer.attn(layer.attn_norm(states), rotary, attention_mask=mask)
            states = states + looked + added
            states = states + layer.mlp(layer.mlp_norm(states))
            continue
        rotary = encoder.rotary_emb(states, places)
        if hasattr(layer, "input_layernorm"):  # EuroBERT
            looked, _ = layer.self_attn(layer.input_layernorm(states), rotary, mask)
            states = states + looked + added
            states = states + layer.mlp(layer.post_attention_layernorm(states))
            continue
        looked, _ = layer.self_attn(states, attention_mask=mask, position_embeddings=rotary)
        states = layer.post_attention_layernorm(states + looked)
        states = cross.norm(states + added)
        states = layer.post_mlp_layernorm(states + layer.mlp(states))
    final = getattr(encoder, "final_norm", getattr(encoder, "norm", torch.nn.Identity()))
    return final(states)


@KIN
def test_the_decoder_is_the_layers_with_a_cross_attention(
    name: str, models: Any, tmp_path: Path
) -> None:
    values: dict[str, Any] = {"setting": "unsupervised", "dropout": 0.0}
    method = built(TSDAE, models(name), tmp_path, **values).double()
    torch.manual_seed(1)
    for parameter in method.cross.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    _, whole = batch_of(method, sentences(3, seed=2, longest=9)).columns
    ids, vectors = whole["input_ids"], torch.randn(3, 32, dtype=torch.float64)
    with torch.no_grad():
        found = method.decode(ids, vectors)
        torch.testing.assert_close(found, by_hand(method, ids, vectors), rtol=0, atol=1e-6)
        changed = ids.clone()
        changed[:, 3:] = 11
        torch.testing.assert_close(method.decode(changed, vectors)[:, :3], found[:, :3])
        assert not torch.allclose(method.decode(ids, vectors * 2), found)


@KIN
def test_the_gradient_reaches_all_that_trains(name: str, models: Any, tmp_path: Path) -> None:
    method = built(TSDAE, models(name), tmp_path, setting="unsupervised", dropout=0.1)
    with training(method):
        loss = method(batch_of(method, sentences(4, seed=1))).total
        loss.backward()
    trains = [(key, p) for key, p in method.named_parameters() if p.requires_grad]
    assert torch.isfinite(loss)
    assert [key for key, p in trains if p.grad is None] == []
    assert not any(key.startswith(("cross", "lm_")) for key in trained_state(method))
    (damaged, whole) = batch_of(method, sentences(4, seed=1)).columns
    vectors = method.embed(damaged)
    method.embed = lambda features: vectors
    assert method(Batch((damaged, whole))).total == method(Batch((whole, whole))).total


def test_local_layers_see_a_part_of_the_earlier_tokens(models: Any, tmp_path: Path) -> None:
    method = built(TSDAE, models("modernbert"), tmp_path, setting="unsupervised")
    method.encoder.config.sliding_window = 2
    masks = earlier_masks(method.encoder, 5)
    assert masks["sliding_attention"][0, 0, 4].tolist() == [False, False, True, True, True]
    assert masks["full_attention"][0, 0, 2].tolist() == [True, True, True, False, False]
