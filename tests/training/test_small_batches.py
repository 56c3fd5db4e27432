"""Batches that are too small for a loss, and slices that draw again what
they drew.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from models import toy_recipe

from bench.base.errors import BenchError
from bench.method import passes as module
from bench.method.checks import check_last_batch
from bench.method.passes import by_rows, with_same_draws


@pytest.mark.parametrize(
    ("rows", "values", "said"),
    [
        (17, {}, "17 rows in batches of 16 leave a last batch of 1"),
        (17, {"drop_last": True}, None),
        (17, {"max_steps": 1}, None),
        (1, {"drop_last": True}, "1 rows in batches of 16"),
    ],
)
def test_a_last_batch_that_is_too_small_is_refused_before_the_first_step(
    rows: int, values: dict[str, Any], said: str | None
) -> None:
    recipe = toy_recipe(**{"batch_size": 16} | values)
    if said is None:
        check_last_batch("unsee", recipe, rows, 2)
        return
    with pytest.raises(BenchError, match=said):
        check_last_batch("unsee", recipe, rows, 2)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> torch.Generator:
    """A generator in the place of Apple's, with the two functions that ``torch.mps`` has for it,
    and no ``_initialized``.
    """
    generator = torch.Generator().manual_seed(5)
    mps = SimpleNamespace(get_rng_state=generator.get_state, set_rng_state=generator.set_state)
    monkeypatch.setattr(torch, "mps", mps)
    return generator


def test_a_slice_draws_again_from_the_generator_of_mps_what_it_drew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gradient with slices uses the masks of the first pass, drawn from the device's own
    generator.
    """
    generator = stand_in(monkeypatch)
    monkeypatch.setattr(
        module,
        "with_same_draws",
        lambda function, device: with_same_draws(function, torch.device("mps")),
    )
    weight = torch.ones(3, requires_grad=True)
    masks: list[torch.Tensor] = []

    def dropped(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mask = (torch.rand(rows.shape, generator=generator) > 0.5).float()
        masks.append(mask)
        return ((rows * weight * mask).exp(),)

    rows = torch.arange(12.0).reshape(4, 3) / 10
    (found,) = by_rows(dropped, rows, chunk=2)
    drawn = torch.cat(masks[:2])
    found.sum().backward()
    assert len(masks) == 4, "each slice was computed twice"
    again = sorted(mask.tolist() for mask in masks[2:])
    assert again == sorted(mask.tolist() for mask in masks[:2])
    wanted = (rows * drawn * (rows * drawn).exp()).sum(0)
    torch.testing.assert_close(weight.grad, wanted)
