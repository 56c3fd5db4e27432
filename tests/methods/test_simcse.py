"""SimCSE with its variants and switches, and Focal-InfoNCE: losses from vectors, views, dropout
masks, edits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import (
    LAYERS,
    TEXTS,
    batch_of,
    cosines,
    focal,
    head_outputs,
    hinge,
    info_nce,
    surprise,
    training,
)
from models import built
from transformers import AutoModelForMaskedLM

from bench.method import Batch, join
from bench.methods.focal_infonce import FocalInfoNCE
from bench.methods.masking import mask_tokens
from bench.methods.simcse import SimCSE


def simcse(folder: str, run: Path, setting: str = "unsupervised", **values: Any) -> SimCSE:
    return built(SimCSE, folder, run, setting=setting, **values)


@pytest.mark.parametrize("cls", [SimCSE, FocalInfoNCE])
def test_two_views_have_dropout_masks_of_their_own_in_one_pass_of_the_encoder(cls, tiny, tmp_path):
    method = built(cls, tiny, tmp_path, setting="unsupervised")
    passes: list[Any] = []
    pooled: list[torch.Tensor] = []
    method.encoder.register_forward_hook(lambda _m, _i, out: passes.append(out[0].shape[0]))
    method.head.register_forward_hook(lambda _m, given, _o: pooled.append(given[0].detach()))
    with training(method):
        loss = method(batch_of(method, TEXTS[0])).total.item()
    with torch.no_grad():
        assert method(batch_of(method, TEXTS[0])).total.item() != loss
    assert passes == [12, 12]
    assert all(not torch.equal(a, b) for a, b in zip(*pooled[0].chunk(2), strict=True))
    torch.testing.assert_close(*pooled[1].chunk(2), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("tau", "m"), [(0.05, 0.3), (0.07, 0.0)])
def test_the_focal_loss_is_that_of_head_outputs(backbone, tmp_path, tau, m):
    values = {"dropout": 0.0, "temperature": tau, "hardness_m": m}
    method = built(FocalInfoNCE, backbone, tmp_path, setting="unsupervised", **values)
    batch = batch_of(method, TEXTS[0])
    (z,) = head_outputs(method, batch.columns)
    with torch.no_grad():
        assert method(batch).total.item() == pytest.approx(focal(z, z, tau, m), abs=1e-3)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_supervised_loss_uses_three_columns(tiny: str, tmp_path: Path, weight: float) -> None:
    method = simcse(tiny, tmp_path, "supervised", dropout=0.0, hard_negative_weight=weight)
    batch = batch_of(method, *TEXTS)
    z = head_outputs(method, batch.columns)
    logits = [
        [c / 0.05 for c in (*near, *far)]
        for near, far in zip(cosines(z[0], z[1]), cosines(z[0], z[2]), strict=True)
    ]
    for i, row in enumerate(logits):
        row[len(logits) + i] += weight
    with torch.no_grad():
        assert method(batch).total.item() == pytest.approx(surprise(logits), abs=1e-4)


def test_eh_adds_ten_times_the_hinge(backbone: str, tmp_path: Path) -> None:
    values = {"variant": "eh", "dropout": 0.0, "eh_margin": 0.4}
    method = simcse(backbone, tmp_path, "supervised", **values)
    batch = batch_of(method, *TEXTS)
    with torch.no_grad():
        loss = method(batch)
    z = head_outputs(method, batch.columns)
    wanted = hinge(*z, margin=0.4)
    assert wanted > 0.01 and loss.parts["hinge"].item() == pytest.approx(wanted, abs=1e-5)
    assert loss.total.item() == pytest.approx(info_nce(*z) + 10 * wanted, abs=1e-3)


@pytest.mark.parametrize("setting", ["unsupervised", "supervised"])
def test_mlm_adds_a_tenth_of_the_pretrained_models_own_loss(backbone, tmp_path, setting):
    method = simcse(backbone, tmp_path, setting, variant="mlm", dropout=0.0)
    batch = batch_of(method, *(TEXTS if setting == "supervised" else TEXTS[:1]))
    torch.manual_seed(3)
    with torch.no_grad():
        loss = method(batch)
    views = join(batch.columns if setting == "supervised" else batch.columns * 2, method.pad_id)
    ids = views["input_ids"]
    mask = views["attention_mask"]
    tokenizer = method.backbone.tokenizer
    spared = torch.tensor([[i in tokenizer.all_special_ids for i in row] for row in ids.tolist()])
    torch.manual_seed(3)
    masked, labels = mask_tokens(ids, spared, tokenizer.mask_token_id, len(tokenizer))
    assert not torch.equal(labels[:6], labels[6:12]), "both views are masked alike"
    model = AutoModelForMaskedLM.from_pretrained(backbone)
    with torch.no_grad():
        wanted = model(input_ids=masked, attention_mask=mask, labels=labels).loss.item()
    assert loss.parts["mlm"].item() == pytest.approx(wanted, abs=1e-4)
    contrast = loss.parts["info_nce"].item()
    assert loss.total.item() == pytest.approx(contrast + 0.1 * wanted, abs=1e-4)


def test_fixed_dropout_is_two_passes_under_the_same_masks(tiny: str, tmp_path: Path) -> None:
    method = simcse(tiny, tmp_path, variant="fixed-dropout")
    batch = batch_of(method, TEXTS[0])
    with training(method), torch.no_grad():
        found = []
        for seed in (4, 5):
            torch.manual_seed(seed)
            found.append(method(batch).total.item())
        torch.manual_seed(4)
        z = method.head(method.hidden(batch.columns[0])[:, 0]).numpy()
    assert found[0] == pytest.approx(info_nce(z, z), abs=1e-4)
    assert found[1] != pytest.approx(found[0], abs=1e-4), "dropout is off"


@pytest.mark.parametrize("pooler", LAYERS)
def test_a_pooler_decides_what_is_trained_and_what_is_scored(backbone, tmp_path, pooler):
    method = simcse(backbone, tmp_path, dropout=0.0, pooling=pooler, head_at_test=True)
    assert method.head is None
    features = method.assemble(method.token_ids(TEXTS[0]))
    with torch.no_grad():
        found = method(batch_of(method, TEXTS[0])).total.item()
        states = method.encoder(**features, output_hidden_states=True).hidden_states
    mean = sum(states[layer] for layer in LAYERS[pooler]) / len(LAYERS[pooler])
    masks = features["attention_mask"].bool()
    wanted = [row[mask].mean(0).numpy() for row, mask in zip(mean, masks, strict=True)]
    z = method.encode(TEXTS[0])
    np.testing.assert_allclose(z, wanted, rtol=0, atol=1e-5)
    assert found == pytest.approx(info_nce(z, z), abs=1e-3)


@pytest.mark.parametrize(("edit", "left"), [("crop", 7), ("deletion", 7), ("one-word", 9)])
def test_the_second_view_lacks_words_and_the_first_none(tiny, tmp_path, edit, left):
    """Three tenths of ten words of one piece each are dropped, or one. Drawn by row and epoch,
    whatever else is in the batch.
    """
    method = simcse(tiny, tmp_path, edit=edit, edit_share=0.3, dropout=0.0)
    tokenizer = method.backbone.tokenizer
    outside = {*method.inside, *tokenizer.all_special_ids}
    ids = [token for token in range(len(tokenizer)) if token not in outside]
    rows = [ids[i : i + 10] for i in range(6)]

    def collate(some: slice, epoch: int = 0) -> Any:
        return method.collate({"text": rows[some]}, np.arange(6)[some], epoch)

    first, second = collate(slice(6))
    specials = len(method.before) + len(method.after)
    assert first["attention_mask"].sum(1).tolist() == [10 + specials] * 6
    assert second["attention_mask"].sum(1).tolist() == [left + specials] * 6
    for row, found in zip(rows, second["input_ids"].tolist(), strict=True):
        words = [token for token in found if token in row]
        assert words == [token for token in row if token in words], "what is left stays in order"
    assert torch.equal(collate(slice(4, 5))[1]["input_ids"][0], second["input_ids"][4])
    others = [collate(slice(6), epoch)[1]["input_ids"] for epoch in (1, 2)]
    assert not all(torch.equal(other, second["input_ids"]) for other in others)
    with torch.no_grad():
        found = method(Batch((first, second), step=0)).total.item()
    assert found == pytest.approx(info_nce(*head_outputs(method, (first, second))), abs=1e-4)
