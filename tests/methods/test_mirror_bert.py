"""Mirror-BERT: loss against the reference, the masked view, padding that counts, heads that drop out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fine_tuned import TEXTS, batch_of, check_checkpoint, check_resume, check_step, rows_of, views
from models import built

from bench.method import BenchError, Context
from methods.augment import mask_span
from methods.losses import nt_xent
from methods.mirror_bert import MirrorBert

LONG = [f"{text} while two players read about march prices" for text in TEXTS]


@pytest.fixture(params=["tiny", "tiny_roberta"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., MirrorBert]:
    return partial(
        built, MirrorBert, request.getfixturevalue(request.param), tmp_path, setting="unsupervised"
    )


def by_hand(first: np.ndarray, second: np.ndarray, temperature: float) -> float:
    """NT-Xent by loops, in the authors' words: each of the 2n views against its mirror, all others negatives."""
    views, n = [*first, *second], len(first)
    units = [v / np.linalg.norm(v) for v in views]
    loss = 0.0
    for i, a in enumerate(units):
        terms = {j: np.exp(a @ b / temperature) for j, b in enumerate(units) if j != i}
        loss -= np.log(terms[(i + n) % (2 * n)] / sum(terms.values())) / (2 * n)
    return loss


def test_the_loss_is_that_of_the_reference(
    reference: dict[str, Any], reference_b: dict[str, Any]
) -> None:
    inputs, known = reference_b["inputs"], reference_b["mirror_bert"]
    a, b = (torch.tensor(inputs[name], dtype=torch.float64) for name in ("v", "c_pos"))
    assert nt_xent(a, b, temperature=known["tau"]).item() == pytest.approx(
        known["loss_mean_over_2N"], abs=1e-10
    )
    assert by_hand(a.numpy(), b.numpy(), known["tau"]) == pytest.approx(
        known["loss_mean_over_2N"], abs=1e-10
    )
    a, b = (
        torch.tensor(reference["contrastive"]["inputs"][z], dtype=torch.float64)
        for z in ("z1", "z2")
    )
    wanted = reference["other_baselines"]["ntxent_2n_mean"]["tau_0.04"]
    assert nt_xent(a, b, temperature=0.04).item() == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("pooling", ["mean-padded", "mean", "cls", None])
def test_loss_and_vectors_follow_from_fifty_positions(
    build: Callable[..., MirrorBert], pooling: str | None
) -> None:
    method = build(dropout=0.0, pooling=pooling).double()
    assert method.trains_on == "text"
    if pooling is None:
        pooling = "mean-padded" if method.backbone.family == "bert" else "cls"
    batch, pooled = batch_of(method, LONG), []
    with torch.no_grad():
        for view in batch.columns:
            assert view["input_ids"].shape == (8, 50) and (view["attention_mask"].sum(1) < 50).all()
            states, mask = (
                method.encoder(**view).last_hidden_state.numpy(),
                view["attention_mask"].numpy()[:, :, None],
            )
            every = {
                "mean-padded": states.mean(1),
                "mean": (states * mask).sum(1) / mask.sum(1),
                "cls": states[:, 0],
            }
            pooled.append(every[pooling])
        assert method.train()(batch).total.item() == pytest.approx(
            by_hand(*pooled, 0.04), abs=1e-10
        )
    np.testing.assert_allclose(method.eval().encode(LONG), pooled[0], rtol=0, atol=1e-6)


def test_padding_counts_in_the_authors_mean_and_batch_mates_do_not(
    build: Callable[..., MirrorBert],
) -> None:
    padded, masked = build(pooling="mean-padded"), build(variant="masked-mean")
    assert masked.pooling == "mean"
    assert np.abs(padded.encode(TEXTS) - masked.encode(TEXTS)).max() > 0.01
    many = " ".join(["guitar"] * 70)
    for method in (padded, masked):
        together = method.encode([*TEXTS, many])
        alone = np.concatenate([method.encode([text]) for text in [*TEXTS, many]])
        np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(
            method.encode([many]), method.encode([many + " and more"])
        )  # cut to 50 at test, too
    few = build(max_seq_length=400)
    assert few.tokenize(["a"])["input_ids"].shape[1] == few.backbone.max_tokens


def test_the_second_view_has_one_masked_span_redrawn_at_each_visit(
    build: Callable[..., MirrorBert],
) -> None:
    method = build()
    short, long = "a man plays", "a man plays the guitar in the park while woman reads"
    texts = [short, long]
    first, second = views(method, texts)
    assert rows_of(first) == rows_of(method.tokenize(texts))
    assert rows_of(second)[0] == rows_of(first)[0]
    spans = {
        tuple(rows_of(method.tokenize([f"{long[:i]} [MASK] {long[i + 5 :]}"]))[0])
        for i in range(len(long) - 4)
    }
    drawn = [tuple(rows_of(views(method, texts, epoch=epoch)[1])[1]) for epoch in range(20)]
    assert set(drawn) <= spans and len(set(drawn)) > 5
    assert drawn == [
        tuple(rows_of(views(method, texts[::-1], rows=[1, 0], epoch=epoch)[1])[0])
        for epoch in range(20)
    ]
    method.context = Context(seed=2)
    assert drawn != [tuple(rows_of(views(method, texts, epoch=epoch)[1])[1]) for epoch in range(20)]
    # the literal text: BERT's own mask token, for RoBERTa a few ordinary pieces
    assert all(
        (method.backbone.mask_id in row) == (method.backbone.family == "bert") for row in drawn
    )


def test_faithful_masks_the_first_place_with_the_drawn_characters(
    build: Callable[..., MirrorBert],
) -> None:
    """The authors' two lines, of src/data_loader.py: every start but the last, then str.split."""
    text = "so it is and so it was and so it is and ever so"

    def theirs(start: int) -> str:
        left, right = text.split(text[start : start + 5], 1)
        return f"{left} [MASK] {right}"

    every = {theirs(start) for start in range(len(text) - 5)}
    anywhere = {f"{text[:start]} [MASK] {text[start + 5 :]}" for start in range(len(text) - 4)}
    drawn = {mask_span(text, np.random.default_rng(seed), faithful=True) for seed in range(1500)}
    assert (
        drawn == every
        and {mask_span(text, np.random.default_rng(seed)) for seed in range(1500)}
        == anywhere
        != every
    )
    faithful, ours = build(faithful=True), build()
    second = [
        [views(one, [text], epoch=epoch)[1]["input_ids"].tolist() for epoch in range(30)]
        for one in (faithful, ours)
    ]
    assert second[0] != second[1]
    assert all(
        ids in [faithful.tokenize([one])["input_ids"].tolist() for one in every]
        for ids in second[0]
    )


def test_heads_drop_out_in_the_variant_and_hidden_units_do_not(
    build: Callable[..., MirrorBert],
) -> None:
    method = build(variant="drophead")
    (features, _) = batch_of(method).columns
    rate = {"bert": 0.2, "roberta": 0.05}[
        method.backbone.family
    ]  # mirror_sentence_bert_drophead.sh, ..._roberta_drophead.sh
    assert method.recipe.dropout == 0 and method.drophead == rate and build().drophead == 0
    with torch.no_grad():
        still = method.embed(features)
        method.train()
        torch.manual_seed(0)
        moved = [
            ~torch.isclose(method.embed(features), still, rtol=0, atol=1e-5).all(1)
            for _ in range(40)
        ]
    # 2 layers of 2 heads: a row stays as it is where no head is dropped, or (kept whole then) both of a layer
    share = torch.stack(moved).float().mean().item()
    assert share == pytest.approx(1 - ((1 - rate) ** 2 + rate**2) ** 2, abs=0.08)
    assert torch.equal(method.eval().embed(features), still)


def test_what_cannot_be_is_refused() -> None:
    for key, value in (("pooling", "max"), ("drophead", 1.0), ("drophead", "many")):
        recipe: Any = type("Recipe", (dict,), {"__getattr__": dict.get})(
            {"pooling": None, "drophead": 0.0, key: value}
        )
        with pytest.raises(BenchError, match=key):
            MirrorBert.check(recipe, None)


def test_everything_trains_at_one_rate(build: Callable[..., MirrorBert]) -> None:
    method = build()
    check_step(method)
    assert [method.learning_rate(step, 50) for step in (0, 25, 49)] == [2e-5] * 3
    assert {group["weight_decay"] for group in method.optimizer().param_groups} == {0.01, 0.0}


def test_the_checkpoint_is_the_encoder(build: Callable[..., MirrorBert], tmp_path: Path) -> None:
    check_checkpoint(build, tmp_path / "saved")
    assert {name.split(".")[0] for name in build().trained_state()} == {"encoder"}


def test_a_stopped_training_goes_on(build: Callable[..., MirrorBert], tmp_path: Path) -> None:
    check_resume(build, tmp_path)
