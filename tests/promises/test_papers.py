"""What papers print, their recipes and tables, and the same search for every method."""

from __future__ import annotations

import csv
import json
import re
import shutil
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from in_a_row import in_a_row
from started import bench, error_line, record, run_folders

ROOT = Path(__file__).parents[2]
UNRUN = ("align", "mural")
"""Rows that nobody can run: their training data is not public."""


def printed_tables(tables: Iterable[tuple[str, str]], cwd: Path) -> list[list[dict[str, Any]]]:
    """Return the printed values of tables, each with its source and remarks."""
    ends = in_a_row([["papers", f"{paper}:{table}", "--json"] for paper, table in tables], cwd)
    names = ("label", "setting", "task", "value", "std", "own_result", "source", "remarks")
    return [
        [{name: row[name] for name in names} for row in map(json.loads, end.out.splitlines())]
        for end in ends
    ]


@pytest.fixture(scope="module")
def reference(shared: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the values that the owner typed from the four papers, by paper and table."""
    rows = json.loads((shared / "reference" / "paper_results.json").read_text(encoding="utf-8"))
    tables = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    for row in rows:
        tables[row["paper"], row["table"]].append(row)
    return tables


@pytest.mark.promise(25)
def test_every_printed_value_of_the_four_papers_is_as_printed(
    reference: Any, tmp_path: Path
) -> None:
    names = ("label", "setting", "task", "value", "std", "own_result")
    values = 0
    printed = printed_tables(reference, tmp_path)
    for (table, wanted), found in zip(reference.items(), printed, strict=True):
        given = Counter(tuple(row[name] for name in names) for row in wanted)
        assert Counter(tuple(row[name] for name in names) for row in found) == given, table
        values += len(wanted) + sum(row["std"] is not None for row in wanted)
    assert len(reference) == 16 and values == 1186


@pytest.mark.promise(25)
def test_copied_values_name_their_source_and_false_averages_have_a_remark(
    reference: Any, tmp_path: Path
) -> None:
    """An average is false if its seven cells, whatever they were before rounding, cannot give it."""
    (found,) = printed_tables([("promcse", "1")], tmp_path)
    for row in found:
        assert row["own_result"] or row["source"], row
    cells, averages = defaultdict[Any, list[float]](list), dict[Any, float]()
    for row in reference["promcse", "1"]:
        key = (row["label"], row["setting"], row["backbone"], row["variant"])
        if row["task"] == "Avg.":
            averages[key] = row["value"]
        else:
            cells[key].append(row["value"])
    assert {len(one) for one in cells.values()} == {7}
    means = {key: sum(one) / 7 for key, one in cells.items()}
    false = {key[0]: means[key] for key, one in averages.items() if abs(means[key] - one) > 0.0101}
    assert f"{false['PromCSE-BERT-base']:.2f}" == "81.66"  # printed as 81.81
    remarks = {
        row["label"]: " ".join(one["text"] for one in row["remarks"] if one["kind"] == "average")
        for row in found
        if row["task"] == "Avg." and "average" in {one["kind"] for one in row["remarks"]}
    }
    assert remarks.keys() == false.keys()
    for label, mean in false.items():
        assert f"{mean:.2f}" in remarks[label]


@pytest.mark.promise(25)
def test_bench_papers_lists_the_papers_and_what_each_prints(tmp_path: Path) -> None:
    out = bench("papers", cwd=tmp_path).out.lower()
    for name in ("promcse", "dcpcse", "conpvp", "focal-infonce", "simcse"):
        assert name in out
    out = bench("papers", "promcse", cwd=tmp_path).out
    for part in ("promcse:1", "promcse:6", "promcse:figure2"):
        assert part in out
    assert "EH improves" in " ".join(out.split()), "the claims of the text"


@pytest.mark.promise(25)
def test_bench_papers_shows_a_table_of_hyperparameters(tmp_path: Path) -> None:
    """PromCSE's table 6, for BERT-base without supervision: 256 rows, 0.03, a prompt of 16."""
    out = bench("papers", "promcse:6", cwd=tmp_path, env={"COLUMNS": "100"}).out
    for value in ("256", "16"):
        assert re.search(rf"\b{value}\b", out)
    assert re.search(r"\b(3e-0?2|0\.03)\b", out)


@pytest.mark.promise(25)
@pytest.mark.parametrize("what", ["promcse:1", "conpvp:figure5"])
def test_a_table_or_figure_is_planned_by_one_command(what: str, tmp_path: Path) -> None:
    out = bench("run", "--paper", what, "--dry-run", cwd=tmp_path).out
    assert "bert-base-uncased" in out


@pytest.mark.promise(25)
def test_a_tables_plan_shows_the_values_of_that_table(
    reference: Any, shared: Path, tmp_path: Path
) -> None:
    """GloVe has 55.1 in PromCSE's table 2 (CxC) and 61.32 in its table 1 (STS)."""
    words = ("run", "--paper", "promcse:2", "--dry-run", "--data", shared / "data")
    out = bench(*words, cwd=tmp_path).out
    trained = [row for row in reference["promcse", "2"] if row["own_result"]]
    for value in (f"{row['value']:.1f}" for row in trained if row["method"] not in UNRUN):
        assert re.search(rf"\b{value}\b", out), value
    for other in ("61.32", "78.49", "81.81", "82.13"):
        assert other not in out
    for hyperparameter in ("batch_size", "learning_rate", "prompt_length"):
        assert hyperparameter in out, "the paper's hyperparameters stand beside ours"


@pytest.mark.nightly
@pytest.mark.promise(25)
def test_a_table_is_run_and_set_beside_its_print(shared: Path, tmp_path: Path) -> None:
    """At the built-in size: what differs from the paper's run is said, and not judged."""
    words = ["run", "--paper", "promcse:5", "--setting", "unsupervised", "--backbone", "builtin"]
    words += ["--corpus", "builtin", "--budget", "2steps", "--seeds", "1"]
    bench(*words, "--data", shared / "data", "--runs", "runs", cwd=tmp_path)
    done = bench("compare", "--paper", "promcse:5", "--runs", "runs", "--json", cwd=tmp_path)
    cells = [cell for cell in json.loads(done.out) if cell["mean"] is not None]
    assert {cell["printed"]["label"] for cell in cells} == {
        "unsup-SimCSE-BERT-base",
        "unsup-PromCSE-BERT-base",
    }
    assert {cell["verdict"] for cell in cells} == {"not tested"}
    assert all("bert-base-uncased" in cell["reason"] for cell in cells)


@pytest.mark.promise(19, 25)
def test_compare_shows_the_printed_value_beside_ours(reference: Any, tmp_path: Path) -> None:
    """A seed of flow of the newest version, as if on BERT-base, beside the paper's."""
    versions = sorted((ROOT / "leaderboards").glob("v*"), key=lambda one: int(one.name[1:]))
    (run,) = (versions[-1] / "runs").glob("flow-builtin-s1-*")
    copy = shutil.copytree(run, tmp_path / "runs" / run.name)
    text = (copy / "run.json").read_text(encoding="utf-8")
    text = text.replace('"backbone": "builtin"', '"backbone": "bert-base-uncased"')
    (copy / "run.json").write_text(text, encoding="utf-8")
    words = ("compare", "--runs", tmp_path / "runs", "--suite", "sts", "--with-paper")
    rows = list(csv.DictReader(bench(*words, "--format", "csv", cwd=tmp_path).out.splitlines()))
    found = {row["task"]: float(row["paper_value"]) for row in rows}
    printed = {
        row["task"]: row["value"]
        for row in reference["promcse", "1"]
        if (row["method"], row["backbone"]) == ("flow", "bert-base-uncased")
    }
    assert found == printed and len(printed) == 8
    ours = {score["task"]: score["value"] for score in record(copy)["scores"]}
    for row in rows[:-1]:
        difference = ours[row["task"]] - printed[row["task"]]
        assert abs(float(row["paper_difference"]) - difference) < 0.011, row["task"]
    shown = bench(*words, cwd=tmp_path).out
    assert f"{printed['Avg.']:.2f}" in shown
    assert re.search(r"\b(promcse|dcpcse):1\b", shown), "both print it"


@pytest.fixture(scope="module")
def searched(made_once: Callable[..., Path], inputs: Path) -> Path:
    """Return the folder of a search of two methods, two trials each and the unchanged recipe."""

    def write(folder: Path) -> None:
        words = ["search", "simcse,promcse", "--trials", "2", "--name", "one"]
        words += ["--backbone", inputs / "tiny", "--corpus", inputs / "corpus.txt"]
        words += ["--suite", inputs / "pairs.tsv", "--select", "captions dev"]
        words += ["--budget", "4steps", "--set", "batch_size=8", "--set", "eval_steps=4"]
        bench(*words, "--runs", folder, cwd=folder)

    return made_once("searched", write) / "one"


def trial_records(searched: Path, method: str) -> list[dict[str, Any]]:
    files = sorted((searched / "trials" / method).rglob("run.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@pytest.mark.promise(26)
def test_a_search_gives_every_method_the_same_effort(searched: Path) -> None:
    """Two trials and the recipe as it is: equal steps, rows, seeds and dev set."""
    efforts = {}
    for method in ("simcse", "promcse"):
        records = trial_records(searched, method)
        assert len(records) == 3 and {one["method"] for one in records} == {method}
        rates = {one["recipe"]["learning_rate"]["value"] for one in records}
        assert len(rates) == 3, "a trial has no values of its own"
        names = ("batch_size", "budget", "select_on")
        efforts[method] = [
            (one["training"]["steps"], one["seed"], *(one["recipe"][k]["value"] for k in names))
            for one in records
        ]
    assert efforts["simcse"] == efforts["promcse"]
    assert set(efforts["simcse"]) == {(4, efforts["simcse"][0][1], 8, "4steps", "captions dev")}


@pytest.mark.promise(26)
def test_a_search_computes_no_score_of_a_suite(searched: Path) -> None:
    records = [one for name in ("simcse", "promcse") for one in trial_records(searched, name)]
    assert [one["scores"] for one in records] == [[]] * 6
    assert not list(searched.rglob("*predictions*"))


@pytest.mark.promise(26)
def test_winners_keep_their_source_and_are_judged_at_the_length_of_the_search(
    searched: Path, inputs: Path, tmp_path: Path
) -> None:
    tuned = {}
    for method in ("simcse", "promcse"):
        recipe = tomllib.loads((searched / f"{method}.toml").read_text(encoding="utf-8"))
        assert recipe["method"] == method
        assert recipe["values"]["budget"]["value"] == "4steps"
        tuned[method] = recipe["values"]
        for name, value in recipe["values"].items():
            assert value["source"].startswith("search one"), (method, name)
    words = ["run", searched / "simcse.toml", searched / "promcse.toml", "--seeds", "1"]
    words += ["--backbone", inputs / "tiny", "--corpus", inputs / "corpus.txt"]
    bench(*words, "--suite", inputs / "pairs.tsv", "--runs", tmp_path / "runs", cwd=tmp_path)
    runs = [record(folder) for folder in run_folders(tmp_path / "runs")]
    assert sorted(one["method"] for one in runs) == ["promcse", "simcse"]
    for one in runs:
        found = {name: one["recipe"][name] for name in tuned[one["method"]]}
        assert one["training"]["steps"] == 4 and one["scores"]
        for name, value in tuned[one["method"]].items():
            assert (found[name]["value"], found[name]["source"]) == (
                value["value"],
                value["source"],
            )


@pytest.mark.nightly
@pytest.mark.promise(26, 29)
def test_the_seeds_of_a_search_are_not_those_of_its_verdict(
    searched: Path, inputs: Path, tmp_path: Path
) -> None:
    seed = trial_records(searched, "simcse")[0]["seed"]
    words = ["run", searched / "simcse.toml", "--seeds", str(seed), "--backbone", inputs / "tiny"]
    words += ["--corpus", inputs / "corpus.txt", "--suite", inputs / "pairs.tsv", "--dry-run"]
    line = error_line(bench(*words, cwd=tmp_path, code=2))
    assert str(seed) in line and "one" in line.split()


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def pair(first: str, second: str) -> frozenset[str]:
    """Two pairs are the same if their letters and digits agree, in any order."""
    return frozenset((letters(first), letters(second)))


def dev_and_test_pairs(data: Path) -> tuple[list[Any], list[Any], set[Any]]:
    """Return the dev pairs of STS-B and SICK, and the test pairs of all seven sets."""
    sets = data / "senteval" / "downstream"
    tests, devs = set(), dict[str, list[Any]]()
    for file in sorted((sets / "STS").glob("STS1*/STS.input.*.txt")):
        gold = file.with_name(file.name.replace("input", "gs"))
        lines = zip(
            file.read_text(encoding="utf-8").split("\n"),
            gold.read_text(encoding="utf-8").split("\n"),
            strict=False,
        )
        tests |= {pair(*line.split("\t")[:2]) for line, score in lines if score.strip()}
    for name in ("dev", "test"):
        file = sets / "STS" / "STSBenchmark" / f"sts-{name}.csv"
        cells = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        devs[f"sts {name}"] = [pair(row[5], row[6]) for row in cells]
    for name in ("trial", "test_annotated"):
        file = sets / "SICK" / f"SICK_{name}.txt"
        cells = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
        devs[f"sick {name}"] = [pair(row[1], row[2]) for row in cells]
    tests |= {*devs["sts test"], *devs["sick test_annotated"]}
    return devs["sts dev"], devs["sick trial"], tests


def search_on(inputs: Path, shared: Path, cwd: Path, *more: str) -> dict[str, Any]:
    """Return the recipe of the trials of a short search for the suite ``sts``."""
    words = ["search", "simcse", "--trials", "1", "--backbone", inputs / "tiny", "--suite", "sts"]
    words += ["--corpus", inputs / "corpus.txt", "--data", shared / "data", "--budget", "2steps"]
    words += ["--set", "batch_size=8", "--name", "one", "--runs", cwd / "runs", *more]
    bench(*words, cwd=cwd)
    return dict(trial_records(cwd / "runs" / "one", "simcse")[0]["recipe"])


@pytest.mark.nightly
@pytest.mark.promise(26)
def test_the_clean_dev_set_has_every_dev_pair_that_no_test_set_has(
    inputs: Path, shared: Path, tmp_path: Path
) -> None:
    sts, sick, tests = dev_and_test_pairs(shared / "data")
    clean = [one for one in (*sts, *sick) if one not in tests]
    assert len(sts) == 1500 and len(sick) == 500
    recipe = search_on(inputs, shared, tmp_path, "--select", "sts-dev-clean")
    assert recipe["select_on"]["value"] == "sts-dev-clean"
    found = tomllib.loads((tmp_path / "runs/one/simcse.toml").read_text(encoding="utf-8"))
    assert found["search"]["dev_pairs"] == len(clean)


@pytest.mark.nightly
@pytest.mark.promise(26)
def test_a_search_selects_by_default_on_pairs_that_no_suite_scores(
    inputs: Path, shared: Path, tmp_path: Path
) -> None:
    sts, _, tests = dev_and_test_pairs(shared / "data")
    chosen = search_on(inputs, shared, tmp_path)["select_on"]["value"]
    scored = sum(one in tests for one in sts)
    assert scored == 0 or chosen != "STS-B dev", f"{scored} of the dev pairs are test pairs"
