"""InfoCSE: the authors' arithmetic, and its parts against passes made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from harness import batch_of, double, info_nce, leaves, rows_of, same, training
from models import built, sentences

from bench.method import Loss
from bench.methods.infocse import InfoCSE
from bench.methods.losses import info_nce as contrast_of
from bench.methods.masking import mean_surprise, places_of, surprise_of_rows, with_mlm


def test_the_loss_is_that_of_the_reference(reference_c):
    known = reference_c["infocse"]
    logits, labels = double(known["mlm_logits_of_2B_rows"]), torch.tensor(known["mlm_labels"])
    places = places_of(labels)
    guesses = surprise_of_rows(logits[places], labels, places, texts=2)
    same(mean_surprise(*guesses), known["mlm_loss"])
    z1, z2 = leaves(reference_c["inputs"], "z1", "z2")
    contrast = contrast_of(z1, z2, temperature=0.05)
    same(contrast, known["contrastive"])
    same(with_mlm(Loss(contrast), guesses, known["mlm_weight"]).total, known["total"])


def every_third(ids: Any, spared: Any, mask_id: int, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Mask without chance: places 1, 4, 7, ... unless they are spared."""
    chosen = (torch.arange(ids.shape[1]) % 3 == 1) & ~spared
    return ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, -100)


def test_masked_words_are_guessed_from_cls_and_shallow_states(backbone, tmp_path, monkeypatch):
    """One sentence at a time: CLS and the first layer's states by transformers, then the new
    layers, without padding.
    """
    monkeypatch.setattr("bench.methods.masking.mask_tokens", every_third)
    values = {"setting": "unsupervised", "dropout": 0.0, "token_states_from_layer": 1}
    method = built(InfoCSE, backbone, tmp_path, mlm_weight=2.0, **values).double()
    batch = batch_of(method, sentences(5, seed=3, longest=14))
    (features,) = batch.columns
    ids = method.backbone.tokenizer
    cls, surprises = [], []
    with torch.no_grad():
        loss = method(batch)
        for row in rows_of(features):
            masked = [
                ids.mask_token_id if t % 3 == 1 and t < len(row) - 1 else token
                for t, token in enumerate(row)
            ]
            vector = method.encoder(input_ids=torch.tensor([row])).last_hidden_state[:, :1]
            read = method.encoder(input_ids=torch.tensor([masked]), output_hidden_states=True)
            states = torch.cat([vector, read.hidden_states[1][:, 1:]], dim=1)
            for layer in method.extra:
                states = layer(states)
                states = states[0] if isinstance(states, tuple) else states
            logs = torch.log_softmax(method.lm_head(states[0]), dim=-1)
            surprises += [-logs[t, row[t]].item() for t in range(1, len(row) - 1, 3)]
            cls.append(vector[0, 0])
        h = method.head(torch.stack(cls * 2))
    assert loss.parts["mlm"].item() == pytest.approx(np.mean(surprises), abs=1e-9)
    assert loss.parts["info_nce"].item() == pytest.approx(info_nce(*h.chunk(2)), abs=1e-9)
    total = loss.parts["info_nce"] + 2 * loss.parts["mlm"]
    assert loss.total.item() == pytest.approx(total.item(), abs=1e-12)


@pytest.mark.parametrize("frozen_dropout", [False, True])
def test_the_frozen_layers_have_dropout_only_where_the_recipe_says_so(
    tiny, tmp_path, frozen_dropout
):
    method = built(InfoCSE, tiny, tmp_path, setting="unsupervised", frozen_dropout=frozen_dropout)
    (features,) = batch_of(method, sentences(4, seed=1)).columns
    with training(method):
        a, b = (method.shallow(**features).last_hidden_state for _ in range(2))
        assert torch.equal(a, b) is not frozen_dropout and not a.requires_grad
