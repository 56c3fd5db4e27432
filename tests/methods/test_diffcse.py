"""DiffCSE: its two losses, the edited sentences, the discriminator's input, and which parts train
and are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from harness import EIGHT as TEXTS
from harness import batch_of, focal, info_nce, rows_of
from models import built
from torch import Tensor

from bench.method import join
from bench.methods.diffcse import DiffCSE, detection_loss, read_with


def diffcse(backbone: str, tmp_path: Path, **values: Any) -> DiffCSE:
    return built(DiffCSE, backbone, tmp_path, setting="unsupervised", **values)


def test_detection_loss_and_gradient_equal_the_reference_values(reference_b):
    known = reference_b["diffcse_rtd"]
    logits = torch.tensor(known["logits"], dtype=torch.float64, requires_grad=True)
    labels = np.array(known["labels"])
    loss = detection_loss(logits, torch.tensor(labels)).mean()
    assert loss.item() == pytest.approx(known["loss_mean_over_all_positions"], abs=1e-11)
    loss.backward()
    p = np.exp(np.array(known["logits"]))
    p /= p.sum(-1, keepdims=True)
    np.testing.assert_allclose(
        logits.grad, (p - np.eye(2)[labels]) / labels.size, rtol=0, atol=1e-10
    )


def test_the_discriminator_reads_the_vector_in_the_place_of_the_first_embedding(backbone, tmp_path):
    """To the encoder, the embedding of another first token in the first place is the other
    sentence.
    """
    method = diffcse(backbone, tmp_path)
    one = method.assemble(method.token_ids(TEXTS))
    other = {**one, "input_ids": one["input_ids"].clone()}
    other["input_ids"][:, 0] = 77
    with torch.no_grad():
        vectors = method.encoder.embeddings(input_ids=other["input_ids"])[:, 0]
        wanted, plain = (method.encoder(**x).last_hidden_state for x in (other, one))
        found = read_with(method.encoder, one, vectors)
        assert torch.equal(found, wanted) and not torch.allclose(found, plain, atol=1e-2)
        assert torch.equal(method.encoder(**one).last_hidden_state, plain), "the hook is gone"


def test_the_generator_rewrites_every_position_but_the_first_and_padding(backbone, tmp_path):
    method = diffcse(backbone, tmp_path)
    features = join(batch_of(method, TEXTS).columns * 2, method.pad_id)
    ids, mask = features["input_ids"], features["attention_mask"]
    seen = []

    def write(masked: Tensor, given_mask: Tensor) -> Tensor:
        """Predict the next id for each odd id, and the same id for each even one."""
        seen.append(masked)
        assert torch.equal(given_mask, mask)
        size = len(method.backbone.tokenizer) + 1
        return torch.nn.functional.one_hot(ids + ids % 2, size).float()

    method.generator.forward = write
    edited, replaced = method.edit(features)
    wanted = torch.where((mask == 1) & (torch.arange(ids.shape[1]) > 0), ids + ids % 2, ids)
    assert torch.equal(edited, wanted) and torch.equal(replaced, (wanted != ids).long())
    assert replaced.any() and not replaced[:, 0].any() and not replaced[mask == 0].any()
    (masked,) = seen
    special = torch.isin(ids, torch.tensor(method.backbone.tokenizer.all_special_ids))
    assert torch.equal(masked[special], ids[special])
    assert (masked != ids).any() and not torch.equal(*masked.chunk(2)), "each view has its own"


@pytest.mark.parametrize("variant", ["", "focal"])
def test_the_loss_is_the_contrast_of_the_heads_vectors_and_a_little_detection(
    backbone, tmp_path, variant, monkeypatch
):
    method = diffcse(backbone, tmp_path, variant=variant)
    method.train()
    heads = []
    logits = []
    edits = []
    edit = method.edit
    monkeypatch.setattr(method, "edit", lambda views: edits.append(edit(views)) or edits[-1])
    method.head.register_forward_hook(lambda _m, _i, out: heads.append(out.detach().double()))
    method.classifier.register_forward_hook(lambda _m, _i, out: logits.append(out.detach()))
    torch.manual_seed(1)
    loss = method(batch_of(method, TEXTS))
    h = heads[0].chunk(2)
    contrastive = focal(*h, tau=0.07, m=0.3) if variant else info_nce(*h)
    assert loss.parts["contrastive"].item() == pytest.approx(contrastive, abs=1e-4)
    p, labels = torch.softmax(logits[0].double(), -1), edits[0][1]
    longest = max(len(row) for row in rows_of(batch_of(method, TEXTS).columns[0]))
    assert p.shape[:2] == (16, longest) and labels.any()
    detection = -p.gather(-1, labels[..., None]).log().mean().item()
    assert loss.parts["detection"].item() == pytest.approx(detection, abs=1e-5)
    assert loss.total.item() == pytest.approx(contrastive + 0.005 * detection, abs=1e-4)


def test_detection_reaches_the_encoder_through_the_vector_alone(backbone, tmp_path):
    method = diffcse(backbone, tmp_path, detection_weight=1.0)
    method.train()
    views = join(batch_of(method, TEXTS).columns * 2, method.pad_id)
    h = method.head(method.embed(views))
    edited, replaced = method.edit(views)
    given = {**views, "input_ids": edited}, replaced
    method.detect(*given, h)[0].mean().backward(retain_graph=True)
    reached = method.encoder.encoder.layer[0].output.dense.weight.grad.clone()
    assert reached.abs().sum() > 0
    method.zero_grad()
    method.detect(*given, h.detach())[0].mean().backward()
    assert all(p.grad is None or not p.grad.any() for p in method.encoder.parameters())
