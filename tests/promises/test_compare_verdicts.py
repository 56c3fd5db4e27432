"""Verdicts of ``bench compare``: differences, intervals and words, against the recorded scores."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import recomputed
from chosen import NULL, NULL_ROWS, NULL_TABLES, ROWS, train_chosen, words_of
from scipy import stats
from shown import WORDS, compared, name_of, rows_of, says, squeezed, verdict
from started import bench, record, run_folders

PLAIN = "chosen+plain"
OTHERS = ("chosen+good", "chosen+bad", "chosen+like")


@pytest.fixture(scope="module")
def chosen(made_once: Any, inputs: Path) -> Path:
    """Return runs of rows of chosen quality, five seeds each."""
    return made_once("chosen", lambda folder: train_chosen(folder, ROWS, inputs)) / "runs"


def compare(runs: Path, *words: str, cwd: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of the one table."""
    done = bench("compare", "--runs", runs, *words, "--format", "json", cwd=cwd)
    (table,) = done.json["tables"]
    return rows_of(table)


def scores(runs: Path, row: dict[str, Any]) -> list[float]:
    """Return the recorded scores of a row's runs."""
    return [record(runs / run)["scores"][0]["value"] for run in row["runs"]]


@pytest.fixture(scope="module")
def rows(chosen: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the rows of one table: the baseline, one better, one worse, one drawn alike."""
    words = ["--method", ",".join([PLAIN, *OTHERS]), "--baseline", PLAIN]
    return compare(chosen, *words, cwd=tmp_path_factory.mktemp("rows"))


@pytest.mark.promise(17)
def test_a_difference_is_that_of_the_means_of_the_recorded_scores(
    rows: dict[str, dict[str, Any]], chosen: Path
) -> None:
    assert rows.keys() == {PLAIN, *OTHERS}
    base = fmean(scores(chosen, rows[PLAIN]))
    for name, row in rows.items():
        assert len(row["runs"]) == 5
        assert row["mean"] == pytest.approx(fmean(scores(chosen, row)))
        if name != PLAIN:
            difference = fmean(scores(chosen, row)) - base
            assert compared(row)["difference"] == pytest.approx(difference)


@pytest.mark.promise(17)
def test_each_row_has_an_interval_and_the_word_that_follows_from_it(
    rows: dict[str, dict[str, Any]],
) -> None:
    assert not compared(rows[PLAIN])
    for name in OTHERS:
        of = compared(rows[name])
        assert of["ci_low"] < of["difference"] < of["ci_high"]
        word = "better" if of["ci_low"] > 0 else "worse" if of["ci_high"] < 0 else "inconclusive"
        assert verdict(rows[name]) == word
    words = {name: verdict(rows[name]) for name in OTHERS}
    assert words == {
        "chosen+good": "better",
        "chosen+bad": "worse",
        "chosen+like": "inconclusive",
    }


@pytest.mark.promise(17)
def test_the_terminal_says_the_word_of_each_row(
    rows: dict[str, dict[str, Any]], chosen: Path, tmp_path: Path
) -> None:
    words = ["--method", ",".join([PLAIN, *OTHERS]), "--baseline", PLAIN]
    lines = bench("compare", "--runs", chosen, *words, cwd=tmp_path).out.splitlines()
    for name in OTHERS:
        (line,) = (one for one in lines if says([one], rows[name]))
        assert [word for word in WORDS if word in line] == [verdict(rows[name])]


@pytest.mark.promise(17)
def test_each_row_has_the_margin_within_which_it_is_equal(rows: dict[str, dict[str, Any]]) -> None:
    """Two one-sided tests at 5 %: the far end of a 90 % interval of this comparison alone."""
    for name in OTHERS:
        of = compared(rows[name])
        end = stats.t.ppf(0.95, of["df"] or math.inf) * of["se"]
        assert of["equal_within"] == pytest.approx(abs(of["difference"]) + end)


@pytest.mark.promise(17)
def test_more_comparisons_take_more_certainty(
    rows: dict[str, dict[str, Any]], chosen: Path, tmp_path: Path
) -> None:
    """Three rows: a third of 5 % each, or half once one is worse; one row alone: 5 %."""
    levels = {compared(rows[name])["ci_level"] for name in OTHERS}
    assert len(levels) == 1
    assert levels.pop() == pytest.approx(1 - 0.05 / 2)
    words = ["--method", f"{PLAIN},chosen+like", "--baseline", PLAIN]
    alone = compared(compare(chosen, *words, cwd=tmp_path)["chosen+like"])
    assert alone["ci_level"] == pytest.approx(0.95)


def swaying(chosen: Path, cwd: Path) -> tuple[dict[str, dict[str, Any]], list[float], list[float]]:
    """Return two rows of which each seed is alike, and their scores."""
    words = ["--method", "chosen+sways,chosen+sways-more", "--baseline", "chosen+sways"]
    both = compare(chosen, *words, cwd=cwd)
    first, second = (scores(chosen, both[name]) for name in ("chosen+sways", "chosen+sways-more"))
    apart = [one - other for one, other in zip(second, first, strict=True)]
    assert stdev(apart) < 1.5, "the rows are not what this test needs"
    assert min(stdev(first), stdev(second)) > 8, "the rows are not what this test needs"
    return both, first, second


@pytest.mark.promise(17)
def test_rows_of_the_same_seeds_and_text_are_paired_by_seed(chosen: Path, tmp_path: Path) -> None:
    """Seeds lie ten points apart, but in both rows alike: that is no doubt about the difference."""
    both, first, second = swaying(chosen, tmp_path)
    of = compared(both["chosen+sways-more"])
    half = (of["ci_high"] - of["ci_low"]) / 2
    unpaired = math.sqrt((stdev(first) ** 2 + stdev(second) ** 2) / 5)
    assert half < unpaired / 2, "the interval is as wide as that of rows which share no seeds"


@pytest.mark.promise(17)
def test_a_row_that_is_not_trained_stands_for_scale(ten_runs: Path, tmp_path: Path) -> None:
    found = compare(ten_runs, cwd=tmp_path)
    assert compared(found["promcse"])
    assert compared(found["last-avg"])["difference"] > 0
    words = [verdict(found[name]) for name in ("cls", "last-avg")]
    assert words == [None, None], "a row that bench did not train has a verdict"


@pytest.mark.promise(17)
def test_a_trained_row_that_is_not_above_its_start_reads_not_trained(
    ten_runs: Path, tmp_path: Path
) -> None:
    """Twelve steps at SimCSE's rate move the first token's state hardly; its start is in the row
    ``cls``.
    """
    found = compare(ten_runs, "--baseline", "promcse", cwd=tmp_path)
    gained = [one - found["cls"]["mean"] for one in scores(ten_runs, found["simcse"])]
    interval = stats.t.interval(0.95, 3, fmean(gained), stdev(gained) / 2)
    assert interval[0] < 0, "SimCSE has learned: this test needs fewer steps"
    done = bench("compare", "--runs", ten_runs, "--baseline", "promcse", cwd=tmp_path)
    line = next(
        one for one in done.out.splitlines() if re.match(r"\W*simcse\W", one, re.IGNORECASE)
    )
    assert "not trained" in line, "a row that has not learned is not said to be so"


@pytest.mark.promise(17)
def test_why_prints_the_calculation_of_a_row(
    rows: dict[str, dict[str, Any]], chosen: Path, tmp_path: Path
) -> None:
    """Seeds, their SD, degrees of freedom, p and the threshold of a row."""
    row = rows["chosen+good"]
    words = ["--method", ",".join([PLAIN, *OTHERS]), "--baseline", PLAIN]
    done = bench("compare", "--runs", chosen, *words, "--why", "chosen+good", cwd=tmp_path)
    values = scores(chosen, row)
    of = compared(row)
    expected = {*values, stdev(values), of["difference"], of["ci_low"], of["ci_high"]}
    printed = {round(float(one), 2) for one in re.findall(r"[-+]?\d+\.\d+", done.out)}
    assert {round(one, 2) for one in expected} <= printed
    lines = dict(re.split(r"\s{2,}", line)[:2] for line in done.out.splitlines() if "  " in line)
    assert float(lines["degrees of freedom"]) == pytest.approx(of["df"], abs=0.01)
    assert float(lines["p"]) == pytest.approx(of["p"], abs=1e-4)
    assert float(lines["threshold"]) == pytest.approx(1 - of["ci_level"], abs=1e-4)
    assert lines["verdict"] == of["verdict"]


@pytest.mark.promise(17)
@pytest.mark.nightly
def test_the_family_is_the_question_of_a_plan(inputs: Path, tmp_path: Path) -> None:
    """One planned comparison has 5 % for itself; the third row stands for comparison."""
    plan = tmp_path / "plan.toml"
    variants = {name: ROWS[name] for name in ("plain", "good", "bad")}
    bench(*words_of(tmp_path, variants, inputs), "--dry-run", "--to", plan, cwd=tmp_path)
    question = f'\n[question]\nbaseline = "{PLAIN}"\nrows = ["chosen+good"]\nsuite = "own"\n'
    plan.write_text(plan.read_text(encoding="utf-8") + question, encoding="utf-8")
    done = bench("run", "--plan", plan, "--runs", "runs", "--plain", cwd=tmp_path, code=None)
    assert done.code == 0, "a plan takes no [question]"
    found = compare(tmp_path / "runs", "--baseline", PLAIN, cwd=tmp_path)
    assert len(found) == 3
    level = compared(found["chosen+good"])["ci_level"]
    assert level == pytest.approx(0.95), "the family is every row, not the planned one"
    assert verdict(found["chosen+good"]) == "better"
    assert verdict(found["chosen+bad"]) is None


@pytest.mark.promise(17, 20)
@pytest.mark.nightly
def test_tables_in_which_nothing_differs_say_so(
    made_once: Any, inputs: Path, tmp_path: Path
) -> None:
    """Six tables of five rows, five seeds each, all drawn alike: five must be right."""
    runs = made_once("null", lambda folder: train_chosen(folder, NULL, inputs)) / "runs"
    wrong = 0
    for table in range(NULL_TABLES):
        names = [f"chosen+t{table}r{row}" for row in range(NULL_ROWS)]
        words = ["--method", ",".join(names), "--baseline", names[0]]
        found = compare(runs, *words, cwd=tmp_path)
        assert len(found) == NULL_ROWS
        wrong += any(verdict(row) in ("better", "worse") for row in found.values())
    assert wrong <= 1


@pytest.fixture(scope="module")
def on_sts(made_once: Any, inputs: Path, shared: Path) -> Path:
    """Return a folder of runs of a random encoder on the STS sets, and a version of them."""

    def write(folder: Path) -> None:
        words = ["run", "simcse", "promcse", "first-last-avg", "--seeds", "1-3", "--suite", "sts"]
        words += ["--backbone", inputs / "tiny", "--data", shared / "data"]
        words += ["--corpus", inputs / "corpus.txt", "--budget", "12steps", "--plain"]
        words += ["--set", "max_steps=12", "--set", "batch_size=16", "--set", "select_on=last"]
        bench(*words, "--runs", folder / "runs", cwd=folder, seconds=3600)
        bench("publish", "--runs", "runs", "--out", "boards", "--note", "", cwd=folder)

    return made_once("on-sts", write)


@pytest.mark.promise(17)
@pytest.mark.nightly
def test_intervals_and_words_are_those_of_an_independent_computation(
    on_sts: Path, tmp_path: Path
) -> None:
    """From the version's predictions, with numpy and scipy alone."""
    found = compare(on_sts / "runs", "--suite", "sts", cwd=tmp_path)
    expected = recomputed.comparison(on_sts / "boards" / "v1")
    judged = {name for name, of in expected.items() if of["verdict"]}
    assert {name_of(row) for row in found.values() if verdict(row)} == judged
    for name, of in expected.items():
        said = compared(found[name])
        assert said["verdict"] == of["verdict"]
        for key in ("difference", "ci_low", "ci_high", "ci_level", "equal_within"):
            assert said[key] == pytest.approx(of[key], abs=1e-6), (name, key)


@pytest.mark.promise(19)
@pytest.mark.nightly
def test_with_paper_stands_the_printed_average_beside_ours(on_sts: Path, tmp_path: Path) -> None:
    """SimCSE, table 5, and PromCSE, table 1. The records are changed to name the papers' encoder."""
    runs = shutil.copytree(on_sts / "runs", tmp_path / "runs")
    for run in run_folders(runs):
        made = record(run) | {"backbone": "bert-base-uncased"}
        (run / "run.json").write_text(json.dumps(made), encoding="utf-8")
    found = compare(runs, "--with-paper", "--suite", "sts", cwd=tmp_path)
    printed = {
        "simcse": [68.40, 82.41, 74.38, 80.91, 78.56, 76.85, 72.23, 76.25],
        "promcse": [73.03, 85.18, 76.70, 84.19, 79.69, 80.62, 70.00, 78.49],
    }
    tasks = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg."]
    for name, values in printed.items():
        cells = found[name]["cells"]
        assert [cells[task]["printed"]["value"] for task in tasks] == values
        for task, value in zip(tasks, values, strict=True):
            apart = cells[task]["mean"] - value
            assert cells[task]["printed"]["difference"] == pytest.approx(apart, abs=0.01)


@pytest.mark.promise(20)
@pytest.mark.nightly
def test_one_table_of_a_version_says_how_many_seeds_a_gain_needs(
    chosen: Path, tmp_path: Path
) -> None:
    """The smallest gain that 80 of 100 comparisons find, by a normal and a noncentral t."""
    words = ["publish", "--runs", chosen, "--baseline", PLAIN, "--out", "boards", "--note", ""]
    bench(*words, cwd=tmp_path)
    lines = (tmp_path / "boards" / "v1" / "README.md").read_text(encoding="utf-8").splitlines()
    heads = [place for place, line in enumerate(lines) if "10seeds" in squeezed(line)]
    (head,) = [place for place in heads if lines[place].startswith("|")]
    columns = [squeezed(cell) for cell in lines[head].split("|")]
    rows = []
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(columns, line.split("|"), strict=True)))
    assert rows
    for row in rows:
        sd, items = float(row["sdoverseeds"]), float(row["sdoveritems"])
        gains = [float(row[name]) for name in ("1seed", "3seeds", "5seeds", "10seeds")]
        # with one seed spreads are taken as known, so that three need not find a smaller one
        assert gains[1:] == sorted(gains[1:], reverse=True)
        normal = stats.norm.isf(0.025) + stats.norm.isf(0.2)
        assert gains[0] == pytest.approx(normal * math.hypot(sd, items), abs=0.08)
        for seeds, gain in zip((3, 5, 10), gains[1:], strict=True):
            error = math.sqrt(sd**2 / seeds + items**2)
            freedom = error**4 * (seeds - 1) * seeds**2 / sd**4
            power = stats.nct.sf(stats.t.isf(0.025, freedom), freedom, gain / error)
            # gains are printed to a tenth, spreads to a hundredth
            assert power == pytest.approx(0.8, abs=0.05), (row, seeds)
