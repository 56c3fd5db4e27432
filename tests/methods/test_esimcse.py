"""ESimCSE: loss against the reference, repeated tokens, momentum and queue, and what is stored
where.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from harness import EIGHT as TEXTS
from harness import batch_of, info_nce, rows_of, views
from models import built

from bench.methods.esimcse import ESimCSE


@pytest.fixture
def build(backbone: str, tmp_path: Path) -> Callable[..., ESimCSE]:
    return partial(built, ESimCSE, backbone, tmp_path, setting="unsupervised")


def test_three_steps_by_hand(build: Callable[..., ESimCSE]) -> None:
    """The loss of each step from vectors alone, without dropout, in float64, and a queue of the
    newest five.
    """
    method = build(dropout=0.0, queue_size=5, momentum=0.9).double().train()
    copy = {name: p.detach().clone() for name, p in method.encoder.named_parameters()}
    queue = np.zeros((0, method.backbone.hidden_size))
    for step in range(3):
        batch = batch_of(method, TEXTS[step : step + 3])
        with torch.no_grad():
            z1, z2 = (method.head(method.cls(view)).numpy() for view in batch.columns)
            wanted = info_nce(z1, z2, queue)
            assert method(batch).total.item() == pytest.approx(wanted, abs=1e-10)
            online = {name: p.detach().clone() for name, p in method.encoder.named_parameters()}
            copy = {name: 0.9 * p + 0.1 * online[name] for name, p in copy.items()}
            method.encoder.load_state_dict(copy, strict=False)
            new = method.head(method.cls(batch.columns[0])).numpy()
            queue = np.concatenate([new, queue])[:5]
            np.testing.assert_allclose(method.queue.vectors(), queue, rtol=0, atol=1e-10)
            stepped = {name: p * 1.02 for name, p in online.items()}  # "an optimiser step"
            method.encoder.load_state_dict(stepped, strict=False)


def test_the_queue_knows_no_dropout_and_a_pass_in_eval_mode_leaves_no_trace(build):
    method = build(dropout=0.5)
    batch = batch_of(method, TEXTS)
    before = {name: tensor.clone() for name, tensor in method.state_dict().items()}
    method.eval()(batch)
    assert all(torch.equal(tensor, before[name]) for name, tensor in method.state_dict().items())
    method.train()(batch)
    with torch.no_grad():
        method.eval()  # copy and encoder are still equal: no optimiser step was made
        wanted = method.head(method.cls(batch.columns[0]))
    np.testing.assert_allclose(method.queue.vectors(), wanted, rtol=0, atol=1e-5)


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
        for token in inner:  # each token of the first view is there once, or twice in a row
            if left and token == left[0]:
                left.pop(0)
        assert not left
        lengths.add(len(row))
    assert lengths == {12, 13, 14}, "int(0.32 x 12) = 3: none, one or two are repeated"
