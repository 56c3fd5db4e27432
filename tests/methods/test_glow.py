"""Glow: its log-determinant is right, and how it starts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.methods.glow import Glow, bits_per_channel


def random_glow(channels: int, seed: int = 0, **named: int | str) -> Glow:
    """With every parameter away from its start, so that couplings and scales do something."""
    torch.manual_seed(seed)
    glow = Glow(channels, **named).double()  # type: ignore[arg-type]
    for p in glow.parameters():
        torch.nn.init.normal_(p, std=0.1)
    return glow


def rows(n: int, channels: int, seed: int = 1) -> Tensor:
    """Correlated, off centre, of unequal scales."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, channels)) @ rng.normal(size=(channels, channels))
    return torch.tensor(mixed + rng.normal(size=channels) * 3)


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "permutation"), [(8, "random"), (16, "reversed")])
def test_its_log_determinant_is_that_of_the_jacobian(channels: int, permutation: str) -> None:
    glow = random_glow(channels, seed=2, permutation=permutation)
    for x in rows(3, channels):
        jacobian = torch.autograd.functional.jacobian(lambda row: glow(row[None])[0], x)
        wanted = torch.linalg.slogdet(jacobian)[1].item()
        assert glow.log_determinant().item() == pytest.approx(wanted, abs=1e-10)


def test_the_whole_starts_as_a_standardisation_of_each_channel() -> None:
    """Every coupling starts as x itself, so that z is x, permuted, each channel of mean 0 and
    variance 1.
    """
    x = rows(64, 12)
    torch.manual_seed(3)
    glow = Glow(12).double()
    z = glow(x, start=True).detach()
    np.testing.assert_allclose(z.mean(0), 0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(z.var(0, unbiased=False), 1, rtol=0, atol=1e-4)
    standard = (x - x.mean(0)) / x.std(0, unbiased=False)
    order = [int((standard - z[:, [j]]).square().sum(0).argmin()) for j in range(12)]
    assert sorted(order) == list(range(12)) and order != list(range(12))
    np.testing.assert_allclose(z, standard[:, order], rtol=0, atol=1e-4)
    wanted = -x.std(0, unbiased=False).log().sum().item()
    assert glow.log_determinant().item() == pytest.approx(wanted, abs=1e-4)


def test_the_loss_is_the_negative_log_likelihood_in_bits_per_channel() -> None:
    glow, x = random_glow(8, seed=5), rows(4, 8)
    z, volume = glow(x), glow.log_determinant()
    each = np.prod(np.exp(-(z.detach().numpy() ** 2) / 2) / np.sqrt(2 * np.pi), axis=1)
    wanted = np.mean(-np.log2(each * np.exp(volume.item()))) / 8
    assert bits_per_channel(z, volume).item() == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize(("channels", "levels"), [(10, 3), (1, 1)])
def test_channels_that_cannot_be_halved_are_refused(channels: int, levels: int) -> None:
    with pytest.raises(ValueError, match="cannot be halved"):
        Glow(channels, levels=levels)
