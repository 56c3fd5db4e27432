"""The copy that follows an encoder, and the queue of its vectors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bench.methods.momentum import FrozenCopy, Queue


def test_the_moving_average_is_that_of_the_reference(reference_b: dict[str, Any]) -> None:
    known = reference_b["esimcse"]["momentum_update"]
    online = nn.Linear(3, 2).double()
    nn.init.constant_(online.weight, known["old"])
    nn.init.constant_(online.bias, 7.0)
    copy = FrozenCopy(online)
    nn.init.constant_(online.weight, known["online"])
    copy.follow(online, known["gamma"])
    assert torch.unique(copy.module.weight).tolist() == pytest.approx([known["new"]], abs=1e-12)
    assert torch.unique(copy.module.bias).tolist() == [7.0]
    assert torch.unique(online.weight).tolist() == [known["online"]]


def test_a_copy_shares_nothing_gets_no_gradient_and_drops_nothing_out() -> None:
    online = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    parent = nn.ModuleDict(
        {"online": online, "copy": FrozenCopy(online), "wild": FrozenCopy(online, dropout=True)}
    ).train()
    x = torch.ones(8, 4, requires_grad=True)
    out = parent["copy"](x)
    assert not out.requires_grad and torch.equal(out, online[0](x).detach())
    assert not any(p.requires_grad for p in parent["copy"].parameters())
    assert (parent["wild"](x) == 0).any(), "dropout=True follows the parent into training mode"
    parent.eval()
    assert torch.equal(parent["wild"](x), out)
    with torch.no_grad():
        online[0].weight += 1
    assert torch.equal(parent["copy"](x), out)


@settings(max_examples=40)
@given(st.integers(0, 9), st.lists(st.integers(1, 12), max_size=6))
def test_a_queue_holds_the_newest(size: int, pushes: list[int]) -> None:
    queue, all_rows = Queue(size, 2), torch.zeros(0, 2)
    for count in pushes:
        new = torch.arange(len(all_rows), len(all_rows) + count)[:, None].expand(count, 2).float()
        queue.push(new)
        all_rows = torch.cat([all_rows, new])
        assert len(queue.vectors()) == min(size, len(all_rows))
    assert queue.rows.shape == (size, 2)
    batches = [part.tolist() for part in all_rows.split(pushes)] if pushes else []
    newest_first = [row for part in reversed(batches) for row in part]
    assert queue.vectors().tolist() == newest_first[:size]
