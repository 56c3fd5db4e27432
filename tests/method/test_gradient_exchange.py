"""Gradients of several processes: exchanged in few buffers, averaged, each back in its place."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from bench.method import ranks as module
from bench.method.ranks import Ranks


def test_means_are_those_of_each_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other of two processes has three times each gradient."""
    exchanged = []

    def add_the_others(flat: Tensor) -> None:
        exchanged.append(flat.numel())
        flat += 3 * flat.clone()

    monkeypatch.setattr(module.dist, "all_reduce", add_the_others)
    monkeypatch.setattr(Ranks, "largest", lambda self, flags: [1, 1, 1, 0])
    ranks = Ranks.__new__(Ranks)
    ranks.count = 2
    shapes = [(2, 3), (4,), (5,), (6,)]
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    parameters[0].grad = torch.arange(6.0).reshape(3, 2).T  # not contiguous
    parameters[1].grad = torch.full((4,), 0.5)
    ranks.mean_gradients(parameters)
    assert exchanged == [2 * 3 + 4 + 5]
    assert torch.equal(parameters[0].grad, 2 * torch.arange(6.0).reshape(3, 2).T)
    assert torch.equal(parameters[1].grad, torch.full((4,), 1.0))
    # another process has a gradient here, and none has one there
    assert torch.equal(parameters[2].grad, torch.zeros(5))
    assert parameters[3].grad is None
