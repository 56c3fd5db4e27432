"""Poolers, the four untrained methods and the head."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from models import built, sentences

from bench.methods.pooling import POOLERS, Head
from bench.methods.untrained import Cls, EmbeddingLastAvg, FirstLastAvg, LastAvg

AS_PRINTED = {
    "cls": "cls_before_pooler",
    "avg": "avg",
    "avg_top2": "avg_top2",
    "avg_emb_last": "avg_emb_last (published 56.70)",
    "avg_first_last": "avg_first_last (after commit 206d7ae)",
}


@pytest.mark.parametrize("name", sorted(POOLERS))
def test_a_pooler_gives_the_values_that_were_computed_by_hand(reference, name: str) -> None:
    given = reference["poolers"]
    states = torch.tensor(given["hidden_states"], dtype=torch.float64)
    found = POOLERS[name](tuple(states), torch.tensor(given["attention_mask"]))
    np.testing.assert_allclose(found, given[AS_PRINTED[name]], rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("cls", "layers"),
    [(Cls, None), (LastAvg, (2,)), (FirstLastAvg, (1, 2)), (EmbeddingLastAvg, (0, 2))],
)
def test_an_untrained_method_is_a_loop_over_the_tokens_of_one_sentence(tiny, tmp_path, cls, layers):
    """The states are caught at the layers themselves, one sentence at a time and without
    padding.
    """
    method = built(cls, tiny, tmp_path)
    # nothing but special tokens; longer than the positions
    texts = [*sentences(9, seed=3), "", "x " * 300]
    found = method.encode(texts)
    assert found.dtype == np.float32
    encoder, tokenizer = method.encoder, method.backbone.tokenizer
    caught: list[torch.Tensor] = []
    for module in (encoder.embeddings, *encoder.encoder.layer):
        module.register_forward_hook(
            lambda _m, _i, out: caught.append(out[0] if isinstance(out, tuple) else out)
        )
    for row, text in enumerate(texts):
        caught.clear()
        inner = tokenizer(text, add_special_tokens=False)["input_ids"][: 256 - 2]
        ids = [tokenizer.cls_token_id, *inner, tokenizer.sep_token_id]
        with torch.no_grad():
            encoder(input_ids=torch.tensor([ids]))
        states = [layer.reshape(len(ids), -1).double().numpy() for layer in caught]
        if layers is None:
            wanted = states[-1][0]
        else:
            wanted = np.zeros(32)
            for token in range(len(ids)):
                for layer in layers:
                    wanted += states[layer][token] / len(layers) / len(ids)
        np.testing.assert_allclose(found[row], wanted, rtol=0, atol=1e-5)


def test_the_head_starts_as_simcse_starts_it_and_is_a_tanh() -> None:
    torch.manual_seed(0)
    head = Head(400)
    weight = head.dense.weight.detach()
    assert weight.shape == (400, 400)
    assert weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert weight.mean().item() == pytest.approx(0, abs=2e-4)
    assert not head.dense.bias.any()
    x = torch.randn(3, 400, dtype=torch.float64)
    wanted = np.tanh(x.numpy() @ weight.double().numpy().T)
    np.testing.assert_allclose(head.double()(x).detach(), wanted, rtol=0, atol=1e-12)
