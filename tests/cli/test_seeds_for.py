"""``bench compare --seeds-for``: a table, as data, and one line for what cannot be computed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench
from predicted_runs import family, sts_run


def test_a_table_and_data(tmp_path: Path) -> None:
    family(tmp_path, {"simcse": 0.5, "mine": 0.45, "other": 0.6})
    sts_run(tmp_path, "cls", None, 1.0)
    done = bench("compare", "--runs", tmp_path, "--seeds-for", "4")
    assert done.exit_code == 0 and "Seeds that find 4 points more than simcse" in done.stdout
    data = json.loads(bench("compare", "--runs", tmp_path, "--seeds-for", "4", "--json").stdout)
    assert (data["schema"], data["power"]) == ("bench.seeds/1", 0.8)
    (table,) = data["tables"]
    assert (table["baseline"], table["baseline_seeds"], table["size"]) == ("simcse", 3, 4.0)
    names = [row["name"] for row in table["rows"]]
    assert names[0] == "the median row" and set(names[1:]) == {"simcse", "mine", "other"}
    assert table["comparisons"] == 4
    for row in table["rows"]:
        assert row["seeds"] is None or 3 <= row["seeds"] <= 100
        assert row["name"] in done.stdout
    larger = json.loads(bench("compare", "--runs", tmp_path, "--seeds-for", "40", "--json").stdout)
    assert {row["seeds"] for row in larger["tables"][0]["rows"]} == {3}


@pytest.mark.parametrize("size", ["0", "-1", "nan", "inf", "1e9", "two", "2,0", ""])
def test_a_bad_size_is_one_line(tmp_path: Path, size: str) -> None:
    family(tmp_path, {"simcse": 0.5, "mine": 0.45}, seeds=(1,))
    done = bench("compare", "--runs", tmp_path, f"--seeds-for={size}")
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") <= 2
    assert "--seeds-for" in done.stderr


@pytest.mark.parametrize("more", [["--format", "csv"], ["--items"], ["--html", "x.html"]])
def test_options_that_it_does_not_combine_with(tmp_path: Path, more: list[str]) -> None:
    family(tmp_path, {"simcse": 0.5}, seeds=(1,))
    done = bench("compare", "--runs", tmp_path, "--seeds-for", "2", *more)
    assert done.exit_code == 2 and "cannot be combined" in done.stderr


def test_without_a_spread_it_says_what_is_missing(tmp_path: Path) -> None:
    family(tmp_path, {"simcse": 0.5, "mine": 0.45}, seeds=(1,))
    done = bench("compare", "--runs", tmp_path, "--seeds-for", "2")
    assert done.exit_code == 2 and "a row of two seeds" in done.stderr
    both = bench("compare", "--runs", tmp_path, "--json", "--format", "csv")
    assert both.exit_code == 2 and "--json cannot be combined" in both.stderr


def test_a_baseline_of_two_seeds_needs_more_itself(tmp_path: Path) -> None:
    family(tmp_path, {"simcse": 0.5}, seeds=(1, 2))
    family(tmp_path, {"mine": 0.45})
    data = json.loads(bench("compare", "--runs", tmp_path, "--seeds-for", "30", "--json").stdout)
    rows = data["tables"][0]["rows"]
    assert {row["seeds"] for row in rows} == {None} and {row["of_both"] for row in rows} == {3}
