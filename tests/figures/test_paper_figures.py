"""Figures of papers that `bench reproduce` draws by itself: Focal-InfoNCE's figure 1, ConPVP's figure 4."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from bench.show.figures.rescaling import ADDED, rescaled, rescaling
from bench.show.figures.scatter import scatters
from methods.losses import focal_logits


@pytest.mark.parametrize("m", ADDED)
def test_the_curve_is_what_the_loss_does_with_a_negative_pair(m: float) -> None:
    """Against the loss that trains: the logits of the columns that are not a row's own, at temperature 1."""
    cosines = torch.linspace(-1, 1, 21, dtype=torch.float64).repeat(2, 1)
    logits = focal_logits(cosines, temperature=1.0, m=m)
    for column in range(2, 21):
        assert rescaled(float(cosines[0, column]), m) == pytest.approx(
            float(logits[0, column]), abs=1e-12
        )


def test_its_data_are_the_formula_and_the_curves_cross_at_one_less_m() -> None:
    figure = rescaling()
    assert figure.header == ("cosine", "m = 0.1", "m = 0.2", "m = 0.3", "m = 0.4")
    for s, *values in figure.data:
        assert values == pytest.approx([float(s) ** 2 + m * float(s) for m in (0.1, 0.2, 0.3, 0.4)])
        for m, value in zip((0.1, 0.2, 0.3, 0.4), values, strict=True):
            if s and abs(float(s) - (1 - m)) > 1e-6:
                assert (float(value) > float(s)) == (float(s) > 1 - m)
    assert "bs-accent" in figure.svg and "bs-third" in figure.svg
    assert rescaling().svg == figure.svg


def test_a_point_for_every_pair_and_levels_that_hold_all() -> None:
    rng = np.random.default_rng(0)
    gold = np.array([0.0, 0.5, 1.0, 2.0, 2.9, 3.0, 4.0, 4.6, 5.0])
    rated = [
        (name, rng.uniform(low, 1, len(gold)), gold, "STS-B")
        for name, low in (("one", -0.3), ("two", 0.6))
    ]
    figures = scatters(rated)
    assert [figure.title for figure in figures] == ["one", "two"] and len(
        {figure.name for figure in figures}
    ) == 2
    for figure, (_, cosine, _, _) in zip(figures, rated, strict=True):
        assert [(row[0], row[1]) for row in figure.data] == [
            ("0 to 1", 2.0),
            ("1 to 2", 1.0),
            ("2 to 3", 2.0),
            ("3 to 4", 1.0),
            ("4 to 5", 3.0),
        ]
        assert figure.data[-1][2:] == tuple(
            round(float(f(cosine[-3:])), 4) for f in (np.mean, np.min, np.max)
        )
        points = len(re.findall(r"<use ", figure.svg))
        assert points == len(gold)
    ticks = [sorted(set(re.findall(r">([−-]?\d\.\d)<", figure.svg))) for figure in figures]
    assert ticks[0] == ticks[1], "both have one scale"
    assert scatters([]) == ()
