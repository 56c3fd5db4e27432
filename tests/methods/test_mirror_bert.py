"""Mirror-BERT: loss against the reference, the masked view, padding that counts, heads that drop
out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from harness import EIGHT as TEXTS
from harness import batch_of, nt_xent, rows_of, views
from models import built

from bench.method import Context
from bench.methods.augment import mask_span
from bench.methods.mirror_bert import MirrorBert

LONG = [f"{text} while two players read about march prices" for text in TEXTS]


@pytest.fixture
def build(backbone: str, tmp_path: Path) -> Callable[..., MirrorBert]:
    return partial(built, MirrorBert, backbone, tmp_path, setting="unsupervised")


@pytest.mark.parametrize("pooling", ["mean-padded", "mean", "cls", None])
def test_loss_and_vectors_follow_from_fifty_positions(build, pooling):
    method = build(dropout=0.0, pooling=pooling).double()
    assert method.trains_on == "text"
    if pooling is None:
        pooling = "mean-padded" if method.backbone.family == "bert" else "cls"
    batch, pooled = batch_of(method, LONG), []
    with torch.no_grad():
        for view in batch.columns:
            assert view["input_ids"].shape == (8, 50) and (view["attention_mask"].sum(1) < 50).all()
            states = method.encoder(**view).last_hidden_state.numpy()
            mask = view["attention_mask"].numpy()[:, :, None]
            every = {
                "mean-padded": states.mean(1),
                "mean": (states * mask).sum(1) / mask.sum(1),
                "cls": states[:, 0],
            }
            pooled.append(every[pooling])
        found = method.train()(batch).total.item()
    assert found == pytest.approx(nt_xent(*pooled, 0.04), abs=1e-10)
    np.testing.assert_allclose(method.eval().encode(LONG), pooled[0], rtol=0, atol=1e-6)


def test_the_second_view_has_one_masked_span_redrawn_at_each_visit(build):
    method = build()
    short, long = "a man plays", "a man plays the guitar in the park while woman reads"
    texts = [short, long]
    first, second = views(method, texts)
    assert rows_of(first) == rows_of(method.assemble(method.token_ids(texts)))
    assert rows_of(second)[0] == rows_of(first)[0]
    masked = [f"{long[:i]} [MASK] {long[i + 5 :]}" for i in range(len(long) - 4)]
    spans = {
        tuple(row) for text in masked for row in rows_of(method.assemble(method.token_ids([text])))
    }

    def draws() -> list[tuple[int, ...]]:
        return [tuple(rows_of(views(method, texts, epoch=e)[1])[1]) for e in range(20)]

    drawn = draws()
    assert set(drawn) <= spans and len(set(drawn)) > 5 and drawn == draws()
    method.context = Context(seed=2)
    assert drawn != draws()
    # the literal text: BERT's own mask token, for RoBERTa a few ordinary pieces
    bert, mask = method.backbone.family == "bert", method.backbone.mask_id
    assert all((mask in row) == bert for row in drawn)


def test_faithful_masks_the_first_place_with_the_drawn_characters(build):
    """The authors' two lines, of src/data_loader.py: every start but the last, then str.split."""
    text = "so it is and so it was and so it is and ever so"

    def theirs(start: int) -> str:
        left, right = text.split(text[start : start + 5], 1)
        return f"{left} [MASK] {right}"

    every = {theirs(start) for start in range(len(text) - 5)}
    anywhere = {f"{text[:start]} [MASK] {text[start + 5 :]}" for start in range(len(text) - 4)}
    faithful, plain = (
        {mask_span(text, np.random.default_rng(seed), faithful=how) for seed in range(1500)}
        for how in (True, False)
    )
    assert faithful == every and plain == anywhere != every
    one, other = build(faithful=True), build()
    second, ours = (
        [rows_of(views(m, [text], epoch=epoch)[1])[0] for epoch in range(30)] for m in (one, other)
    )
    known = [rows_of(one.assemble(one.token_ids([text])))[0] for text in every]
    assert second != ours and all(ids in known for ids in second)


def test_heads_drop_out_in_the_variant_and_hidden_units_do_not(build):
    method = build(variant="drophead")
    (features, _) = views(method, TEXTS)
    # mirror_sentence_bert_drophead.sh, ..._roberta_drophead.sh
    rate = {"bert": 0.2, "roberta": 0.05}[method.backbone.family]
    assert method.recipe.dropout == 0 and method.drophead == rate and build().drophead == 0
    with torch.no_grad():
        still = method.embed(features)
        method.train()
        torch.manual_seed(0)
        again = [method.embed(features) for _ in range(40)]
    moved = [~torch.isclose(one, still, rtol=0, atol=1e-5).all(1) for one in again]
    # 2 layers of 2 heads: a row is unchanged if in each layer no head is dropped or both are, for
    # then the layer is kept whole
    share = torch.stack(moved).float().mean().item()
    assert share == pytest.approx(1 - ((1 - rate) ** 2 + rate**2) ** 2, abs=0.08)
    assert torch.equal(method.eval().embed(features), still)
