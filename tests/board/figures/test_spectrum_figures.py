"""The figure of spectra shows the stored values."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from boards_for_figures import METHODS
from drawn_figures import Drawn, close, marks

from bench.papers.names import printed_name


def test_a_spectrum_is_that_of_the_stored_values(made: Drawn, tmp_path: Path) -> None:
    """linspace(9, 1, 16) to the power 1 + noise, as the made runs store them, the largest effective
    rank first.
    """
    places = (1, 2, 4, 8, 16)
    data = made.figures["spectrum"].data
    ranks = {}
    for method, (noise, _, _) in METHODS.items():
        name = printed_name(method)
        values = np.linspace(9, 1, 16) ** (1 + noise)
        shares = values / values.sum()
        ranks[name] = -sum(p * math.log(p) for p in shares)
        expected = [(k, values[k - 1] / values[0]) for k in places]
        np.testing.assert_allclose([row[1:] for row in data if row[0] == name], expected, atol=1e-3)
    order = [name for name in dict.fromkeys(row[0] for row in data) if name in ranks]
    assert order == sorted(ranks, key=lambda name: -ranks[name])
    points_of = [(places.index(int(k)), float(share)) for _, k, share in data]
    close(marks(made.axes("spectrum")[0]), points_of)
