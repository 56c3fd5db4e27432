"""ESimCSE: loss against the reference, repeated tokens, momentum and queue, and what is stored where."""

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

from bench.method import Context
from methods.esimcse import ESimCSE
from methods.losses import info_nce


@pytest.fixture(params=["tiny", "tiny_roberta"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., ESimCSE]:
    return partial(
        built, ESimCSE, request.getfixturevalue(request.param), tmp_path, setting="unsupervised"
    )


def by_hand(
    anchors: np.ndarray, candidates: np.ndarray, temperature: float
) -> tuple[float, np.ndarray]:
    """InfoNCE where candidate i is anchor i's, by loops: the loss, and its gradient with respect to the anchors."""
    loss, gradient = 0.0, np.zeros_like(anchors)
    for i, a in enumerate(anchors):
        size = np.linalg.norm(a)
        units = [c / np.linalg.norm(c) for c in candidates]
        logits = np.array([a @ u / size for u in units]) / temperature
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        loss -= np.log(shares[i]) / len(anchors)
        for j, u in enumerate(units):
            pull = (shares[j] - (i == j)) / temperature / len(anchors)
            gradient[i] += pull * (u - logits[j] * temperature * a / size) / size
    return loss, gradient


def test_the_loss_over_batch_and_queue_is_that_of_the_reference(
    reference_b: dict[str, Any],
) -> None:
    known, inputs = reference_b["esimcse"], reference_b["inputs"]
    z1, z2, queue = (
        torch.tensor(x, dtype=torch.float64) for x in (inputs["v"], inputs["c_pos"], known["queue"])
    )
    z1.requires_grad_()
    loss = info_nce(z1, torch.cat([z2, queue]), temperature=known["tau"])
    loss.backward()
    wanted, gradient = by_hand(z1.detach().numpy(), torch.cat([z2, queue]).numpy(), known["tau"])
    assert (
        loss.item() == pytest.approx(known["loss"], abs=1e-10) == pytest.approx(wanted, abs=1e-10)
    )
    np.testing.assert_allclose(z1.grad, gradient, rtol=0, atol=1e-10)


def test_three_steps_by_hand(build: Callable[..., ESimCSE]) -> None:
    """Without dropout, in float64: the loss of each step from vectors alone, and a queue of the newest five."""
    method = build(dropout=0.0, queue_size=5, momentum=0.9).double().train()
    copy = {name: p.detach().clone() for name, p in method.encoder.named_parameters()}
    queue = np.zeros((0, method.backbone.hidden_size))
    for step in range(3):
        batch = batch_of(method, TEXTS[step : step + 3])
        with torch.no_grad():
            z1, z2 = (
                method.head(method.encoder(**view).last_hidden_state[:, 0]).numpy()
                for view in batch.columns
            )  # dropout is off: train mode changes nothing
            wanted, _ = by_hand(z1, np.concatenate([z2, queue]), 0.05)
            assert method(batch).total.item() == pytest.approx(wanted, abs=1e-10)
            online = {name: p.detach().clone() for name, p in method.encoder.named_parameters()}
            copy = {name: 0.9 * p + 0.1 * online[name] for name, p in copy.items()}
            method.encoder.load_state_dict(copy, strict=False)
            new = method.head(method.encoder(**batch.columns[0]).last_hidden_state[:, 0]).numpy()
            queue = np.concatenate([new, queue])[:5]
            np.testing.assert_allclose(method.queue.vectors(), queue, rtol=0, atol=1e-10)
            method.encoder.load_state_dict(
                {name: p * 1.02 for name, p in online.items()}, strict=False
            )  # "an optimiser step"


def test_the_queue_knows_no_dropout_and_a_pass_in_eval_mode_leaves_no_trace(
    build: Callable[..., ESimCSE],
) -> None:
    method = build(dropout=0.5)
    batch = batch_of(method)
    before = {name: tensor.clone() for name, tensor in method.state_dict().items()}
    method.eval()(batch)
    assert all(torch.equal(tensor, before[name]) for name, tensor in method.state_dict().items())
    method.train()(batch)
    with torch.no_grad():
        method.eval()  # copy and encoder are still equal: no optimiser step was made
        np.testing.assert_allclose(
            method.queue.vectors(), method.head(method.cls(batch.columns[0])), rtol=0, atol=1e-5
        )


def test_only_the_second_view_repeats_after_the_cut(build: Callable[..., ESimCSE]) -> None:
    method = build(max_seq_length=12)
    long = [" ".join(["guitar dogs book"] * 20)] * 30
    first, second = views(method, long)
    before, after = len(method.before), len(method.after)
    assert first["input_ids"].shape[1] == 12
    (whole,) = {tuple(row) for row in rows_of(first)}
    lengths = set()
    for row in rows_of(second):
        assert row[:before] == method.before and row[-after:] == method.after
        inner, left = row[before:-after], list(whole[before:-after])
        for token in inner:  # each token of the first view stands there once, or twice in a row
            if left and token == left[0]:
                left.pop(0)
        assert not left
        lengths.add(len(row))
    assert lengths == {12, 13, 14}, "int(0.32 x 12) = 3: none, one or two are repeated"


def test_a_line_is_repeated_alike_in_every_batch_and_epoch_and_otherwise_with_another_seed(
    build: Callable[..., ESimCSE],
) -> None:
    method = build()
    texts = [f"{text} guitar woman reads book in park dog runs" for text in TEXTS]
    rows = rows_of(views(method, texts)[1])
    turned = rows_of(views(method, texts[::-1], rows=range(7, -1, -1), epoch=3)[1])
    assert turned[::-1] == rows
    assert rows_of(views(method, texts, rows=range(100, 108))[1]) != rows
    method.context = Context(seed=2)
    assert rows_of(views(method, texts)[1]) != rows


def test_everything_trains_but_the_copy_which_follows(build: Callable[..., ESimCSE]) -> None:
    check_step(build(), frozen=["momentum."], follows=["momentum.", "queue."])


def test_the_checkpoint_is_the_encoder(build: Callable[..., ESimCSE], tmp_path: Path) -> None:
    check_checkpoint(build, tmp_path / "saved", absent=["momentum", "queue", "head"])


def test_a_stopped_training_goes_on_with_its_copy_and_its_queue(
    build: Callable[..., ESimCSE], tmp_path: Path
) -> None:
    check_resume(build, tmp_path, extra=["head", "momentum", "queue"])


def test_the_variants_leave_out_one_change_each(build: Callable[..., ESimCSE]) -> None:
    plain = build(variant="no-repetition")
    first, second = views(plain, TEXTS)
    assert torch.equal(first["input_ids"], second["input_ids"])
    alone = build(variant="no-queue", dropout=0.0).train()
    batch = batch_of(alone)
    assert alone(batch).total.item() == alone(batch).total.item() and not len(alone.queue.vectors())


def test_what_is_scored_is_cls_without_the_head(build: Callable[..., ESimCSE]) -> None:
    method = build()
    with torch.no_grad():
        wanted = method.encoder(**method.tokenize(TEXTS)).last_hidden_state[:, 0]
    np.testing.assert_allclose(method.encode(TEXTS), wanted, rtol=0, atol=1e-6)
