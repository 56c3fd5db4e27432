"""The drawing of cosines by gold level: its density, its levels, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_runs import made_run
from scipy.stats import gaussian_kde

from bench.runs import Run, RunsFolder
from bench.show.pages.cosines import BINS, FEWEST, cosines, density


@pytest.mark.parametrize(("n", "seed"), [(40, 1), (333, 2), (4000, 3)])
def test_density_is_scipys_up_to_the_histograms_width(n: int, seed: int) -> None:
    values = np.random.default_rng(seed).beta(5, 2, n)
    theirs = gaussian_kde(values)(
        -1 + (np.arange(BINS) + 0.5) * 2.5 / BINS
    )  # Scott's bandwidth is its default
    assert density(values, -1, 1.5) == pytest.approx(theirs, abs=theirs.max() * 0.02)


def test_each_level_has_its_pairs_and_their_mean(tmp_path: Path) -> None:
    record = made_run(tmp_path, "simcse", 1)
    drawn = cosines(Run(record, tmp_path / record.run_id))
    assert drawn is not None
    stored = RunsFolder(tmp_path).read_predictions(record.run_id, "STS-B", "tokenised")
    for ridge in drawn.ridges:
        low = int(ridge.label[0])
        inside = [
            c
            for c, g in zip(stored["prediction"], stored["gold"], strict=True)
            if low <= g < low + 1 or (low == 4 and g == 5)
        ]
        assert (ridge.pairs, ridge.mean) == (len(inside), pytest.approx(np.mean(inside)))
        assert ridge.middle == pytest.approx(tuple(np.percentile(inside, [25, 75])))
    assert [ridge.label for ridge in drawn.ridges] == [
        "4 to 5",
        "3 to 4",
        "2 to 3",
        "1 to 2",
        "0 to 1",
    ]
    assert sum(ridge.pairs for ridge in drawn.ridges) == len(stored["gold"])


@pytest.mark.parametrize(
    "damage", ["missing", "text", "out of range", "other shape", "few", "not a file of arrays"]
)
def test_nothing_is_drawn_of_what_are_no_cosines(damage: str, tmp_path: Path) -> None:
    record = made_run(tmp_path, "simcse", 1)
    path = RunsFolder(tmp_path).predictions_path(record.run_id, "STS-B", "tokenised")
    for other in ("SICK-R",):
        RunsFolder(tmp_path).predictions_path(record.run_id, other, "tokenised").unlink()
    gold = np.linspace(0, 5, 60)
    made = {
        "text": {"prediction": np.full(60, "a"), "gold": gold},
        "out of range": {"prediction": gold, "gold": gold},
        "other shape": {"prediction": np.zeros((60, 2)), "gold": gold},
        "few": {
            "prediction": np.zeros(2 * FEWEST - 2),
            "gold": np.arange(2 * FEWEST - 2) % 2 * 4.0,
        },
    }
    path.unlink()
    if damage in made:
        np.savez(path, **made[damage])
    elif damage == "not a file of arrays":
        path.write_bytes(b"PK")
    assert cosines(Run(record, tmp_path / record.run_id)) is None
