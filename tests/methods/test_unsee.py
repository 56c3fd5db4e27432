"""UNSEE: the authors' values of both losses, and the four vectors that they compare, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness import batch_of, double, rows_of, same
from models import built, sentences
from torch import nn

from bench.methods.momentum import FrozenCopy
from bench.methods.unsee import UNSEE, barlow, vicreg


def test_vicreg_and_its_gradient_are_those_of_the_authors_code(reference_c):
    known, inputs = reference_c["vicreg"], reference_c["inputs"]
    x, y = double(inputs["z1"]).requires_grad_(), double(inputs["t1"])
    loss = vicreg(x, y)
    loss.backward()
    same(loss, known["loss"])
    same(x.grad, known["grad_x"])
    for key, weights in (("mse", (1, 0, 0)), ("std", (0, 1, 0)), ("cov", (0, 0, 1))):
        names = ("mse_weight", "std_weight", "cov_weight")
        same(vicreg(x, y, **dict(zip(names, weights, strict=True))), known["parts"][key])


def test_barlow_and_its_gradient_are_those_of_the_authors_code(reference_c):
    known, inputs = reference_c["barlow"], reference_c["inputs"]
    x, y = double(inputs["z1"]).requires_grad_(), double(inputs["t1"])
    scale = nn.BatchNorm1d(x.shape[1]).double()
    loss = barlow(scale(x), scale(y), off_weight=known["off_weight"])
    loss.backward()
    same(loss, known["loss"])
    same(x.grad, known["grad_x"])


def test_the_target_moves_as_in_the_reference(reference_c):
    known = reference_c["momentum_target"]
    copy, online = (nn.Linear(1, 2, bias=False).double() for _ in range(2))
    for module, values in ((copy, known["old"]), (online, known["online_after_step"])):
        module.weight = nn.Parameter(double(values)[:, None])
    target = FrozenCopy(copy)
    target.follow(online, known["decay"])
    same(target.module.weight[:, 0], known["new"])


@pytest.mark.parametrize("variant", ["", "barlow"])
def test_each_view_is_predicted_to_be_the_targets_other_view(backbone, tmp_path, variant):
    """Means over the tokens of one sentence at a time; the target is another network by now."""
    values = {"setting": "unsupervised", "variant": variant, "dropout": 0.0, "momentum": 0.5}
    method = built(UNSEE, backbone, tmp_path, predictor_blocks=2, **values).double()
    with torch.no_grad():
        for p in method.encoder.parameters():
            p.add_(0.05 * torch.sin(torch.arange(p.numel(), dtype=p.dtype)).reshape(p.shape))
    start = [p.clone() for p in method.target.parameters()]
    batch = batch_of(method, sentences(6, seed=4))
    loss = method(batch)
    online = list(method.encoder.parameters())
    for old, now, there in zip(start, method.target.parameters(), online, strict=True):
        torch.testing.assert_close(now, (old + there) / 2)
    means = []
    with torch.no_grad():
        for encoder in (method.encoder, method.target.module):
            rows = [torch.tensor([row]) for row in rows_of(batch.columns[0])]
            means.append(torch.cat([encoder(row).last_hidden_state.mean(1) for row in rows]))
        x, t = means
        p = method.predictor(x)
        if variant:
            p, t = method.scale(p), method.scale(t)
            c = p.numpy().T @ t.numpy() / len(t)
            off = c - np.diag(np.diag(c))
            one = ((np.diag(c) - 1) ** 2).sum() + 0.0051 * (off**2).sum()
        else:
            one = vicreg(p, t).item()
    assert (x - means[1]).abs().max() > 1e-3
    assert loss.total.item() == pytest.approx(2 * one, abs=1e-8)
    assert loss.parts["forth"].item() == pytest.approx(one, abs=1e-8)
