"""Labels: what is placed never overlaps, by a plain loop; widths against a real font; heights against isotonic regression."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from bench.show.figures.labels import Box, LabelPlace, lead, place_labels, spread_out, width

FRAME = Box(0.0, 0.0, 350.0, 250.0)


def apart(a: Box, b: Box) -> bool:
    return (
        a.right <= b.left + 1e-9
        or b.right <= a.left + 1e-9
        or a.high <= b.low + 1e-9
        or b.high <= a.low + 1e-9
    )


def crossing(begin: tuple[float, float], end: tuple[float, float], box: Box) -> bool:
    """Whether a line goes through a box: any of many points on it lies inside."""
    return any(
        box.left < begin[0] + t * (end[0] - begin[0]) < box.right
        and box.low < begin[1] + t * (end[1] - begin[1]) < box.high
        for t in np.linspace(0, 1, 200)
    )


@pytest.mark.parametrize("seed", range(6))
def test_nothing_overlaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8 + 6 * seed
    points = [(float(x), float(y)) for x, y in rng.uniform((10, 10), (340, 240), (n, 2))]
    texts = ["method-" + "x" * int(k) for k in rng.integers(0, 9, n)]
    specks = [(float(x), float(y)) for x, y in rng.uniform((10, 10), (340, 240), (20, 2))]
    found = place_labels(points, texts, FRAME, specks=specks, avoid=[Box(100, 0, 102, 250)])
    shown = [(i, place) for i, place in enumerate(found) if place is not None]
    assert len(shown) > n / 3
    dots = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in points] + [
        Box(x - 2, y - 2, x + 2, y + 2) for x, y in specks
    ]
    for i, place in shown:
        assert place.box.within(FRAME)
        assert place.box.right - place.box.left == pytest.approx(width(texts[i], 12.0))
        assert all(apart(place.box, dot) for dot in dots)
    for (_, a), (_, b) in itertools.combinations(shown, 2):
        assert apart(a.box, b.box)
    for (i, a), (j, b) in itertools.permutations(shown, 2):
        assert not a.lead or not crossing(*lead(points[i], a.box, 4.0), b.box), (texts[i], texts[j])


def test_where_there_is_room_all_have_labels_beside_their_points() -> None:
    points = [(50.0 + 60 * k, 30.0 + 40 * k) for k in range(5)]
    found = place_labels(points, ["alpha"] * 5, FRAME)
    assert all(place is not None and place.anchor == "start" and not place.lead for place in found)


def test_of_two_labels_that_exclude_each_other_the_first_has_the_place() -> None:
    narrow = Box(0.0, 90.0, 70.0, 112.0)
    found = place_labels([(5.0, 100.0), (5.0, 101.0)], ["first one", "other one"], narrow)
    assert found[0] is not None and found[1] is None


def test_an_empty_text_has_no_place_and_takes_none() -> None:
    assert place_labels([(5.0, 100.0), (5.0, 100.0)], ["", "name"], FRAME)[0] is None
    assert isinstance(
        place_labels([(5.0, 100.0), (5.0, 100.0)], ["", "name"], FRAME)[1], LabelPlace
    )
    assert place_labels([], [], FRAME) == []


@pytest.mark.parametrize(
    "text",
    [
        "promcse",
        "promcse+eh",
        "WWWmmm@@@",
        "illicit",
        "conpvp+manual prompt_length=16",
        "focal-infonce",
        "0.05 1e-05",
    ],
)
def test_width_is_not_less_than_in_a_wide_font(text: str) -> None:
    """DejaVu Sans is wider than the system fonts that a page names."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = (
            TextPath((0, 0), text, size=12, prop=FontProperties(family="DejaVu Sans"))
            .get_extents()
            .width
        )
    assert real * 0.97 <= width(text, 12.0) <= real * 1.6


@pytest.mark.parametrize("seed", range(8))
def test_spread_heights_are_the_nearest_ones(seed: int) -> None:
    """Without walls: least squares under the gap is isotonic regression of the heights less their places."""
    rng = np.random.default_rng(seed)
    wanted, gap = rng.uniform(0, 60, 7), 14.0
    found = np.array(spread_out(wanted.tolist(), gap, -1000, 1000))
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(7)
    expected = IsotonicRegression().fit_transform(np.arange(7), wanted[order] - steps) + steps
    assert found[order] == pytest.approx(expected, abs=1e-9)


def test_spread_heights_stay_within_their_walls() -> None:
    found = spread_out([10.0, 11.0, 12.0, 200.0], 14.0, 8.0, 100.0)
    assert min(found) >= 8.0 and max(found) <= 100.0
    assert all(b - a >= 14.0 - 1e-9 for a, b in itertools.pairwise(sorted(found)))
    crowded = spread_out([5.0] * 9, 14.0, 0.0, 56.0)
    assert sorted(crowded) == pytest.approx([7.0 * k for k in range(9)])
    assert spread_out([], 14.0, 0.0, 1.0) == []
