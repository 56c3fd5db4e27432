"""The figure of a search, which is drawn without a board."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.board.figures.lines import expected_best_figure, write_figures
from bench.records.searches import RECIPE, expected_best

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


def test_a_search_has_its_figures_with_their_data(tmp_path: Path, snapshot: Any) -> None:
    (tmp_path / "study").mkdir()  # files are made there before they are moved
    write_figures(tmp_path, STUDY, TRIALS)
    names = ["expected-best.csv", "expected-best.svg"]
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == names
    every = [expected_best_figure(STUDY, TRIALS)]
    assert {one.name: f"{one.title}: {one.caption}" for one in every if one} == snapshot
    expected = list(csv.reader((tmp_path / "expected-best.csv").open()))
    for method in ("simcse", "promcse"):
        curve = [float(row[2]) for row in expected if row[0] == method]
        assert curve == pytest.approx(
            [SCORES[method][0], *expected_best(SCORES[method][1:])], abs=1e-3
        )
    assert "one" not in {row[0] for row in expected}, "one trial is no curve"
    assert expected_best_figure(STUDY, {"a": TRIALS["one"][:1], "b": []}) is None
