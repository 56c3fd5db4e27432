"""``bench compare --why ROW``: each line follows from the numbers that it names, by a pocket
calculator and a t table.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import stdev

import pytest
from commands import bench, error_line
from predicted_runs import sts_run
from scipy import stats

SEEDS = {
    "simcse": (1, 2, 3, 4, 5),
    "promcse": (1, 2, 3, 4),
    "mirror-bert": (1, 2, 3),
    "cls": (None,),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("why") / "runs"
    for place, (method, seeds) in enumerate(SEEDS.items()):
        for seed in seeds:
            sts_run(folder, method, seed, 0.5 + 0.01 * place + 0.002 * (seed or 0) * (place + 1))
    return folder


def steps_of(runs: Path, row: str) -> list[list[str]]:
    """Return what is computed, its value and the formula of each line."""
    done = bench("compare", "--runs", runs, "--why", row, "--baseline", "simcse")
    assert done.exit_code == 0, done.output
    lines = done.stdout.split("\n\n")[1].splitlines()[1:]
    return [re.split(r"\s{2,}", line.strip(), maxsplit=2) for line in lines]


def calculated(formula: str) -> float:
    """Compute a formula as it is printed, up to its first word."""
    text = re.split(r"; |: |, (?!\d)", formula)[0].replace(",", "").removesuffix(" seeds")
    if text.startswith("root of "):
        text = f"({text.removeprefix('root of ')}) ** 0.5"
    text = text.replace("²", "**2").replace("^", "**").replace(" x ", " * ")
    return float(eval(text, {"__builtins__": {}}))


@pytest.mark.parametrize("row", ["promcse", "cls"])
def test_each_line_follows_from_its_numbers(runs: Path, row: str) -> None:
    checked = 0
    for what, value, formula in steps_of(runs, row):
        if re.match(r"root of |\(?\d[\d.]*[²^]? ?[-+x/^]", formula):
            assert float(value) == pytest.approx(calculated(formula), rel=4e-3), what
            checked += 1
    assert checked >= 6


def test_differences_by_seed_and_their_sd_follow_from_the_seeds(runs: Path) -> None:
    """PromCSE has four of SimCSE's five seeds."""
    done = bench("compare", "--runs", runs, "--why", "promcse", "--baseline", "simcse")
    lines = [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines() if line.strip()]
    of = {line[0]: line[1:] for line in lines}
    assert of["seed"] == ["1 2 3 4"]
    row, base, apart = (
        list(map(float, of[name][0].split())) for name in ("PromCSE", "SimCSE", "PromCSE - SimCSE")
    )
    sd = float(of["PromCSE - SimCSE"][1])
    both = zip(row, base, strict=True)
    assert apart == pytest.approx([one - base for one, base in both], abs=2e-4)
    assert sd == pytest.approx(stdev(apart), abs=2e-4)
    assert float(of["difference"][0]) == pytest.approx(sum(apart) / 4, abs=0.01)
    variance, formula = of["variance of one seed"]
    assert float(variance) == pytest.approx(sd**2, rel=2e-3)
    assert formula == "SD², 3 degrees of freedom"


@pytest.mark.parametrize("row", ["promcse", "cls"])
def test_p_and_interval_follow_from_a_t_table(runs: Path, row: str) -> None:
    values = {what: (value, formula) for what, value, formula in steps_of(runs, row)}
    freedom = float(values["degrees of freedom"][0].replace(",", ""))
    t = float(values["t"][0])
    p = float(values["p"][0])
    assert p == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=0.05, abs=1e-4)
    (interval,) = (name for name in values if name.startswith("interval"))
    difference, half, error, level = map(
        float, re.findall(r"-?\d+\.\d+(?:e-\d+)?", values[interval][1])
    )
    assert half == pytest.approx(stats.t.ppf(level, freedom), rel=2e-3)
    low, high = map(float, values[interval][0].split(" to "))
    assert low == pytest.approx(difference - half * error, abs=0.02)
    assert high == pytest.approx(difference + half * error, abs=0.02)
    margin, quantile, error = map(float, re.findall(r"\d+\.\d+", values["equal within"][1])[:3])
    assert quantile == pytest.approx(stats.t.ppf(0.95, freedom), rel=2e-3)
    within = float(values["equal within"][0])
    assert within == pytest.approx(margin + quantile * error, abs=0.02)
    for side in (-within, within):
        beyond = stats.t.sf(abs(side - difference) / error, freedom)
        assert beyond < 0.05 + 2e-3, "both one-sided tests reject at the margin"
    threshold = float(values["threshold"][0])
    word = "inconclusive" if p >= threshold else "better" if difference > 0 else "worse"
    assert values["verdict"][0] == word


def test_the_table_of_the_verdict_is_named_and_one_without_it(tmp_path: Path) -> None:
    """Of two lengths of training, the one of most runs has too few seeds of the row."""
    for seed in (1, 2, 3, 4, 5, 6):
        for method in ("simcse", "ct", "promcse"):
            if method != "promcse" or seed < 3:
                sts_run(tmp_path, method, seed, 0.5, recipe={"budget": "9steps"})
            if method != "ct" and seed < 5:
                sts_run(tmp_path, method, seed, 0.6, recipe={"budget": "5steps"})
    done = bench("compare", "--runs", tmp_path, "--why", "promcse", "--baseline", "simcse")
    named, _, _ = done.stdout.partition("each seed")
    of_verdict, _, without = " ".join(named.split()).partition("without a verdict in ")
    assert "5 steps" in of_verdict and "9 steps" not in of_verdict
    assert "9 steps" in without and "fewer than three seeds" in without


def test_seeds_that_are_equal_leave_no_number_out(tmp_path: Path) -> None:
    for method in ("simcse", "promcse"):
        for seed in (1, 2, 3):
            sts_run(tmp_path, method, seed, 0.0)
    done = bench("compare", "--runs", tmp_path, "--why", "promcse", "--baseline", "simcse")
    assert "nan" not in done.stdout and "the seeds are equal" in done.stdout


def test_a_row_without_a_verdict_says_why_it_has_none(runs: Path) -> None:
    told = error_line(bench("compare", "--runs", runs, "--why", "simcse"))
    assert told == "error: --why: simcse has no verdict: it is the baseline"
    assert "unknown row 'sincse'" in error_line(bench("compare", "--runs", runs, "--why", "sincse"))


def test_a_baseline_that_was_not_tested_is_the_reason(tmp_path: Path) -> None:
    for method, seeds in (("simcse", 2), ("promcse", 3), ("ct", 3)):
        for seed in range(seeds):
            sts_run(tmp_path, method, seed, 0.5)
    sts_run(tmp_path, "pcl", 1, 0.5, tasks=("STS12",))
    for row, reason in (
        ("promcse", "SimCSE, the baseline, was not tested: two seeds"),
        ("pcl", "no value of Avg."),
    ):
        told = error_line(bench("compare", "--runs", tmp_path, "--why", row))
        assert told == f"error: --why: {row} has no verdict: {reason}"
