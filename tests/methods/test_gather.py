"""The authors' gather: the values of the whole batch, and the gradient divided by the number of
processes.

That two real processes come to this is asked in tests/training/test_spread.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.methods.gather import across_ranks
from bench.methods.losses import energy_hinge, info_nce


def with_hinge(views: list[Tensor]) -> Tensor:
    """PromCSE's loss with the weight of its paper."""
    return info_nce(*views, temperature=0.05) + 10 * energy_hinge(*views, margin=0.2)


def inputs(reference: dict[str, Any]) -> list[Tensor]:
    given, names = reference["contrastive"]["inputs"], ("z1", "z2", "z3")
    return [torch.tensor(given[n], dtype=torch.float64, requires_grad=True) for n in names]


def test_the_authors_own_run_over_two_ranks(reference, monkeypatch):
    contrastive = reference["contrastive"]
    known = contrastive["two_rank_faithful_gather"]
    hinge = contrastive["eh_alone_margin_0.2"]["loss"]
    alone, both = inputs(reference), inputs(reference)
    with_hinge(across_ranks(alone, faithful=True)).backward()
    monkeypatch.setattr("bench.methods.gather.processes", lambda: 2)
    loss = with_hinge(across_ranks(both, faithful=True))
    loss.backward()
    assert loss.item() == pytest.approx(contrastive["total_promcse_eh"]["loss"], abs=1e-10)
    assert loss.item() - 10 * hinge == pytest.approx(known["loss_on_every_rank"], abs=1e-10)
    for one, two in zip(alone, both, strict=True):
        assert one.grad is not None and two.grad is not None
        moved = one.grad.abs().numpy() > 1e-9
        ratio = two.grad.numpy()[moved] / one.grad.numpy()[moved]
        np.testing.assert_allclose(ratio, known["gradient_ratio_to_single_process"], rtol=1e-9)
