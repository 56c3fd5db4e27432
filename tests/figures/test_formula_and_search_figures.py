"""Figures that are drawn without a board: of a search, and of a formula."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure as Sheet

from bench.compare.statistics.expected_best import expected_best
from bench.runs.searches import RECIPE
from bench.show.figures import drawing
from bench.show.figures.papers import ADDED, draw_rescaling, rescaled, rescaling
from bench.show.figures.search import (
    draw_expected_best,
    draw_values,
    of_all_methods,
    sensitivity_rows,
    values_and_methods,
    write_figures,
)
from methods.losses import focal_logits

SCORES: dict[str, list[float | None]] = {
    "simcse": [60.0, 61.0, 64.0, 62.0],
    "promcse": [50.0, 66.0, None, 58.0],
    "one": [55.0, 56.0],
}
"""The recipe's score, then those of the trials; None: it failed."""
STUDY: Any = SimpleNamespace(
    select_on="captions dev", methods={"simcse": SimpleNamespace(space={"kind": {}})}
)


def trials_of(scores: list[float | None]) -> list[Any]:
    return [
        SimpleNamespace(
            number=RECIPE if i == 0 else i,
            state="failed" if score is None else "finished",
            score=score,
            values={"kind": "pq"[i % 2]},
        )
        for i, score in enumerate(scores)
    ]


TRIALS = {method: trials_of(scores) for method, scores in SCORES.items()}


def xy(lines: list[Any], marker: str = "o") -> list[tuple[float, float]]:
    return [
        (float(x), float(y))
        for line in lines
        if line.get_marker() == marker
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def test_a_search_has_its_figures_with_their_data(tmp_path: Path, snapshot: Any) -> None:
    (tmp_path / "study").mkdir()  # where files are made before they are there
    names = write_figures(tmp_path, STUDY, TRIALS)
    assert sorted(names) == sorted(p.name for p in tmp_path.iterdir() if p.is_file())
    every = [*of_all_methods(STUDY, TRIALS), rescaling()]
    assert {one.name: f"{one.title}: {one.caption}" for one in every} == snapshot
    expected, values = (
        list(csv.reader((tmp_path / f"{n}.csv").open()))
        for n in ("expected-best", "values-and-methods")
    )
    for method in ("simcse", "promcse"):
        curve = [float(row[2]) for row in expected if row[0] == method]
        assert curve == pytest.approx(
            [SCORES[method][0], *expected_best(SCORES[method][1:])], abs=1e-3
        )
    assert "one" not in {row[0] for row in expected}, "one trial is no curve"
    assert [float(row[1]) for row in values if row[0] == "promcse"] == [66.0, 58.0]
    assert write_figures(tmp_path / "none", STUDY, {"a": TRIALS["one"][:1], "b": []}) == []
    assert values_and_methods({"simcse": [51.0, 57.0], "promcse": [50.5]}, "captions dev") is None


def test_its_axes_show_the_scores() -> None:
    curves, axes = {"a": [60.0, 62.0, 63.0], "b": [61.0, 61.5]}, Sheet().subplots()
    draw_expected_best(axes, curves, {"b": 59.0}, "dev")
    assert sorted(xy(axes.lines)) == sorted(
        (n, y) for own in curves.values() for n, y in enumerate(own, 1)
    )
    assert xy(axes.lines, "s") == [(0.0, 59.0)]
    axes = Sheet().subplots()
    draw_values(axes, [("a", [61.0, 62.0, 64.0]), ("b", [58.0, 66.0])], "dev")
    assert sorted(xy(axes.lines)) == [(58, 1), (61, 0), (62, 0), (64, 0), (66, 1)]
    best = [line for line in axes.lines if line.get_color() == drawing.ACCENT]
    assert xy(best) == [(64.0, 0.0), (66.0, 1.0)]


def test_how_much_a_value_moves_the_score() -> None:
    ((key, apart, means),) = sensitivity_rows(STUDY, "simcse", TRIALS["simcse"])
    assert (
        key == "kind"
        and apart == pytest.approx(64.0 - fmean([61.0, 62.0]))
        and means.count(":") == 2
    )


@pytest.mark.parametrize("m", ADDED)
def test_the_curve_is_what_the_loss_does_with_a_negative_pair(m: float) -> None:
    """Against the loss that trains: the logits of the columns that are not a row's own, at temperature 1."""
    cosines = torch.linspace(-1, 1, 21, dtype=torch.float64).repeat(2, 1)
    logits = focal_logits(cosines, temperature=1.0, m=m)
    for column in range(2, 21):
        expected = float(logits[0, column])
        assert rescaled(float(cosines[0, column]), m) == pytest.approx(expected, abs=1e-12)


def test_re_scaling_changes_its_colour_where_it_crosses_the_cosine() -> None:
    figure, axes = rescaling(), Sheet().subplots()
    assert figure.header == ("cosine", *(f"m = {m}" for m in ADDED)) and rescaling() == figure
    for s, *values in figure.data:
        assert values == pytest.approx([float(s) ** 2 + m * float(s) for m in ADDED])
    draw_rescaling(axes)
    for colour, above in ((drawing.ACCENT, True), (drawing.SECOND, False)):
        curves = [line for line in axes.lines if line.get_color() == colour]
        assert len(curves) == len(ADDED)
        for line in curves:
            x, y = (np.array(values)[1:-1] for values in (line.get_xdata(), line.get_ydata()))
            assert ((y > x) == above).all()
