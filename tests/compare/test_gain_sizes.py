"""How large a gain must be for a number of seeds.

Against a simulated t test, and against numbers that were computed elsewhere.
"""

from __future__ import annotations

import csv
import math
import statistics
from pathlib import Path

import numpy as np
import pytest
from compared_runs import row_named, runs_in
from predicted_runs import family
from scipy import stats

from bench.compare.gain_sizes import MOST_SEEDS, SpreadOfRow, row_spreads
from bench.compare.tables import make_tables
from bench.compare.words.finding import comparison_of
from bench.papers import HERE, claimed_gain, reported_sd
from bench.records import Run

BERT = "bert-base-uncased"


def spread(sd: float, base_sd: float, items: float) -> SpreadOfRow:
    return SpreadOfRow(name="", row=None, sd=sd, base_sd=base_sd, items=items)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_a_test_of_pairs_finds_the_gain_in_80_of_100_cases(seeds: int) -> None:
    gain = spread(0.8, 0.0, 0.0).smallest_gain(seeds)
    apart = np.random.default_rng(seeds).normal(gain, 0.8, (20_000, seeds))
    found = stats.ttest_1samp(apart, 0.0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.012)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_a_welch_test_finds_the_gain_in_80_of_100_cases(seeds: int) -> None:
    """No spread over items: the test of two samples, drawn 20,000 times."""
    gain = spread(0.8, 0.8, 0.0).smallest_gain(seeds)
    draw = np.random.default_rng(seeds)
    ours, base = (draw.normal(mean, 0.8, (20_000, seeds)) for mean in (gain, 0.0))
    found = stats.ttest_ind(ours, base, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.012)


def test_with_known_spreads_one_seed_is_a_normal_test() -> None:
    draw = np.random.default_rng(0)
    gain = spread(0.5, 0.4, 0.3).smallest_gain(1)
    error = math.sqrt(0.5**2 + 0.4**2 + 0.3**2)
    found = np.abs(draw.normal(gain, error, 200_000)) > 1.959964 * error
    assert found.mean() == pytest.approx(0.8, abs=0.004)


@pytest.mark.parametrize(
    ("sd", "base", "items", "sizes"),
    [
        (3.21, 0.42, 0.67, (9.3, 9.1, 5.4, 3.6)),
        (1.19, 0.42, 0.36, (3.7, 3.1, 2.1, 1.5)),
        (0.46, 0.42, 0.12, (1.8, 1.3, 0.9, 0.7)),
        (0.49, 0.42, 0.31, (2.0, 1.5, 1.2, 1.0)),
        (1.10, 1.10, 0.31, (4.4, 3.3, 2.3, 1.7)),
    ],
)
def test_sizes_are_those_of_an_independent_computation(
    sd: float, base: float, items: float, sizes: tuple[float, ...]
) -> None:
    found = [spread(sd, base, items).smallest_gain(seeds) for seeds in (1, 3, 5, 10)]
    assert found == pytest.approx(sizes, abs=0.06)


def test_seeds_for_a_gain_are_the_fewest_that_find_it() -> None:
    assert spread(1.1, 1.1, 0.31).seeds_for(1.64) == 11
    assert spread(1.1, 1.1, 0.31).seeds_for(2.24) == 6
    assert spread(1.19, 0.42, 0.36).seeds_for(2.60) == 4
    assert spread(0.46, 0.42, 0.12).seeds_for(1.64) == 3
    assert abs(spread(3.21, 0.42, 0.67).seeds_for(2.24) - 55) <= 1  # type: ignore[operator]
    one = spread(0.8, 0.5, 0.2)
    found = one.seeds_for(1.0)
    assert found is not None
    assert one.smallest_gain(found) <= 1.0 < one.smallest_gain(found - 1)
    wide = spread(0.5, 0.5, 0.7)
    assert wide.seeds_for(1.9) is None, "items alone take 1.96 points"
    assert wide.smallest_gain(MOST_SEEDS) > 1.9
    assert one.seeds_for(0.0) is None and one.seeds_for(-1) is None


def test_the_spread_of_reports() -> None:
    assert reported_sd() == pytest.approx(statistics.stdev([76.25, 75.68, 73.47, 74.84, 75.99]))


def test_the_seeds_of_a_row_far_from_the_baseline_are_those_of_rows_near_it(tmp_path: Path) -> None:
    """Items vary the more the further two rows lie apart: a gain of a point is near."""
    noises = {"simcse": 0.5, "promcse": 0.5, "ct": 0.48, "mirror-bert": 0.55, "dcpcse": 2.0}
    runs = runs_in(tmp_path, family(tmp_path, noises, seeds=(1, 2, 3, 4)))
    (table,) = make_tables(runs)
    found = {spread.row.name: spread for spread in row_spreads(table, by_id(runs)) if spread.row}
    of = {one.name: comparison_of(one) for one in table.rows}
    assert found.keys() == noises.keys() - {"simcse"}

    def apart(name: str) -> list[float]:
        one, base = (row_named(table, row).cells[-1] for row in (name, "simcse"))
        assert one is not None and base is not None
        return [a - b for a, b in zip(one.values, base.values, strict=True)]

    for name, spread in found.items():
        assert (spread.base_sd, spread.sd) == (0.0, pytest.approx(statistics.stdev(apart(name))))
    near = [found[name].items for name in ("promcse", "ct", "mirror-bert")]
    assert found["dcpcse"].items == statistics.median(near)
    far = of["dcpcse"]
    assert far is not None and far.difference < -20 and far.se is not None
    assert far.se > 1.3 * found["dcpcse"].items


def by_id(runs: list[Run]) -> dict[str, Run]:
    return {run.record.run_id: run for run in runs}


def average_in(paper: str, label: str) -> float:
    """Read the average of a row of unsupervised BERT-base from the file of published numbers."""
    with open(HERE / paper / "results.tsv", encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file, delimiter="\t"):
            if line["label"] == label and line["setting"] != "supervised":
                return float(line["scores"].split("Avg.=")[1].split()[0].split("±")[0])
    raise AssertionError(label)


def test_claimed_gains_are_differences_within_one_paper() -> None:
    def gain(method: str, variant: str = "") -> float | None:
        found = claimed_gain(method, variant, "unsupervised", BERT)
        return found[0] if found else None

    focal = average_in("focal-infonce", "SimCSE-BERT-base + Focal-InfoNCE")
    assert gain("focal-infonce") == pytest.approx(
        focal - average_in("focal-infonce", "SimCSE-BERT-base")
    )
    ours = average_in("promcse", "PromCSE-BERT-base")
    assert gain("promcse") == pytest.approx(ours - average_in("promcse", "SimCSE-BERT-base"))
    assert gain("promcse") == 2.24 and gain("conpvp") == 2.6
    assert gain("simcse") is None and gain("nobody") is None
    assert claimed_gain("promcse", "", "unsupervised", "roberta-base") is None
