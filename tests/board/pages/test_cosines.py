"""The drawing of cosines by gold level: its density, its levels, and the input that it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_runs import made_run
from scipy.stats import gaussian_kde

from bench.board.pages.drawings import cosine_ridges, density
from bench.records import Run, RunsFolder
from bench.records.arrays import read_arrays


def test_each_level_has_its_pairs_and_their_mean(tmp_path: Path) -> None:
    record = made_run(tmp_path, "simcse", 1)
    drawn = cosine_ridges(Run(record, tmp_path / record.run_id))
    assert drawn is not None
    stored = read_arrays(
        RunsFolder(tmp_path).predictions_path(record.run_id, "STS-B", "senteval-all/1")
    )
    for ridge in drawn["ridges"]:
        low = int(ridge["label"][0])
        inside = [
            c
            for c, g in zip(stored["prediction"], stored["gold"], strict=True)
            if low <= g < low + 1 or (low == 4 and g == 5)
        ]
        assert ridge["mean"] == pytest.approx(np.mean(inside))
    levels = [ridge["label"] for ridge in drawn["ridges"]]
    assert levels == ["4 to 5", "3 to 4", "2 to 3", "1 to 2", "0 to 1"]


@pytest.mark.parametrize("damage", ["missing", "out of range", "not a file of arrays"])
def test_nothing_is_drawn_of_what_are_no_cosines(damage: str, tmp_path: Path) -> None:
    record = made_run(tmp_path, "simcse", 1)
    path = RunsFolder(tmp_path).predictions_path(record.run_id, "STS-B", "senteval-all/1")
    gold = np.linspace(0, 5, 60)
    path.unlink()
    if damage == "out of range":
        np.savez(path, prediction=gold, gold=gold)
    elif damage == "not a file of arrays":
        path.write_bytes(b"PK")
    assert cosine_ridges(Run(record, tmp_path / record.run_id)) is None


def test_the_density_is_that_of_scipy() -> None:
    places = np.linspace(-0.2, 1, 77)
    for n in (5, 40, 1379):
        values = np.random.default_rng(n).normal(0.4, 0.2, n)
        np.testing.assert_allclose(
            density(values, places), gaussian_kde(values)(places), rtol=1e-9, atol=1e-12
        )
