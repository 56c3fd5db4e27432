"""Crops of documents: which sentences make a pack, and what is drawn of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness import batch_of, info_nce, rows_of
from models import built, sentences

from bench.methods.crop_documents import CropDocuments, packs, pair_of


def document(lengths: list[int]) -> str:
    """Sentences of so many characters, each of a letter of its own."""
    return ".".join(chr(ord("a") + i) * length for i, length in enumerate(lengths))


def test_packs_are_those_of_the_reference(reference_c):
    known = reference_c["cropping"]
    found = packs(document(known["segment_lengths"]))
    assert [list(pack) for pack in found] == known["packs_of_segment_indices"]


def test_a_pair_is_two_different_packs_each_as_often():
    text = document([120, 80, 130, 110, 300, 140])
    drawn = [pair_of(text, np.random.default_rng(seed)) for seed in range(600)]
    pieces = {"ac": 0, "cd": 0, "df": 0}
    for one, other in drawn:
        assert one != other
        for piece in (one, other):
            parts = piece.split(". ")
            assert parts[-1] == "" and len(parts) == 3
            pieces[parts[0][0] + parts[1][0]] += 1
    assert min(pieces.values()) > 350 and sum(pieces.values()) == 1200


@pytest.mark.parametrize(
    "text", ["", "short", "a. b. c.", document([120, 130]), document([300] * 4)]
)
def test_a_text_with_fewer_than_two_packs_is_a_pair_with_itself(text):
    assert pair_of(text, np.random.default_rng(0)) == (text, text)


def test_the_loss_is_info_nce_of_the_means_of_two_packs(backbone, tmp_path):
    method = built(CropDocuments, backbone, tmp_path, setting="unsupervised", dropout=0.0).double()
    texts = [
        ". ".join([" ".join(sentences(8, seed=8 * i + k))[:160] for k in range(5)])
        for i in range(3)
    ]
    batch = batch_of(method, [*texts, "a man plays"])
    assert len(packs(texts[0])) > 1
    means = []
    with torch.no_grad():
        for column in batch.columns:
            rows = [torch.tensor([row]) for row in rows_of(column)]
            means.append(torch.cat([method.encoder(row).last_hidden_state.mean(1) for row in rows]))
        found = method(batch).total.item()
    assert not torch.equal(means[0][:3], means[1][:3]) and torch.equal(means[0][3], means[1][3])
    assert found == pytest.approx(info_nce(*means), abs=1e-9)
