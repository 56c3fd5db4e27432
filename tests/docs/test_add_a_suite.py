"""docs/add-a-suite.md keeps its promises: its data, its manifest, its suite and its test, as a
reader would put them in place.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import bench
from pages import code_blocks

from bench.base.plugin_files import hash_plugin
from bench.records import RunsFolder
from bench.records.arrays import read_arrays
from bench.score.suites import registry

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-suite.md"


OF_PAIRS, OF_MAILS, COMMANDS = (
    [shlex.split(line) for line in block.splitlines()] for block in code_blocks(PAGE, "sh")[:3]
)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of somebody who followed the page.

    Data and suite are files in the folder in which commands are typed.
    """
    tables = ("pairs.tsv", "mails.tsv", "odd/odd.tsv")
    suite_files = ("pairs.py", "mails.py", "odd.py")
    (tmp_path / "DIR" / "odd").mkdir(parents=True)
    for name, content in zip(tables, code_blocks(PAGE, "tsv"), strict=True):
        (tmp_path / "DIR" / name).write_text(content, encoding="utf-8")
    for name, code in zip(suite_files, code_blocks(PAGE, "python"), strict=False):
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd", raising=False)
    monkeypatch.setattr(registry, "_from_files", {})
    return tmp_path / "DIR"


@pytest.mark.slow
def test_rated_pairs_are_checked_run_verified_and_compared(data_folder: Path, tiny: str) -> None:
    from scipy.stats import spearmanr

    check, run, verify, compare = [words[1:] for words in OF_PAIRS]
    done = bench(*check)
    assert done.exit_code == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    done = bench(*run, "--backbone", tiny, "--plain")
    assert done.exit_code == 0, done.stderr
    ratings = [float(line.split("\t")[2]) for line in code_blocks(PAGE, "tsv")[0].splitlines()]
    store = RunsFolder("RUNS")
    names = [file.parent.name for file in Path("RUNS").glob("*/run.json")]
    assert len(names) == 2
    for name in names:
        (score,) = store.read(name).scores
        stored = read_arrays(store.predictions_path(name, "MyPairs", score.protocol))
        assert (score.task, score.protocol, score.n) == ("MyPairs", "my-pairs/1", 5)
        assert stored["gold"].tolist() == ratings
        assert score.value == pytest.approx(100 * spearmanr(stored["prediction"], ratings)[0])
    said = " ".join(bench(*verify).stdout.split())
    assert "2 runs, 2 scores computed again: nothing differs" in said, said
    done = bench(*compare)
    assert done.exit_code == 0 and "last avg" in done.stdout and "MyPairs" in done.stdout, (
        done.stdout + done.stderr
    )


def test_mails_are_read_and_refused_as_the_page_says(data_folder: Path) -> None:
    done = bench(*OF_MAILS[0][1:])
    assert done.exit_code == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    table = data_folder / "mails.tsv"
    table.write_text(table.read_text().replace("\tdev\n", "\tvalid\n"), encoding="utf-8")
    done = bench(*OF_MAILS[0][1:])
    assert done.exit_code != 0 and "a split is train, dev or test" in done.stdout + done.stderr


@pytest.mark.slow
def test_mails_are_clustered_classified_verified_and_compared(data_folder: Path, tiny: str) -> None:
    run, verify, compare = [words[1:] for words in OF_MAILS[1:]]
    done = bench(*run, "--backbone", tiny, "--plain")
    assert done.exit_code == 0, done.stderr
    rows = [line.split("\t") for line in code_blocks(PAGE, "tsv")[1].splitlines()]
    store = RunsFolder("RUNS")
    names = [file.parent.name for file in Path("RUNS").glob("*/run.json")]
    assert len(names) == 2
    for name in names:
        topics, labels = store.read(name).scores
        assert (topics.task, topics.metric, topics.n) == (
            "Mails-topics",
            "clustering-accuracy",
            14,
        )
        stored = read_arrays(store.predictions_path(name, "Mails-topics", topics.protocol))
        # with two clusters and two classes, the best matching is one of two
        right = (stored["prediction"] == stored["gold"][:, None]).mean(axis=0)
        assert topics.value == pytest.approx(100 * np.maximum(right, 1 - right).mean())
        assert (labels.task, labels.metric, labels.n) == ("Mails-labels", "accuracy", 4)
        stored = read_arrays(store.predictions_path(name, "Mails-labels", labels.protocol))
        # np.unique sorts the names: access is 0, hardware 1
        tested = [row for row in rows if row[2] == "test"]
        assert stored["gold"].tolist() == [int(row[1] == "hardware") for row in tested]
        assert labels.value == 100 * (stored["prediction"] == stored["gold"]).mean()
        assert labels.detail["classes"] == ["access", "hardware"]
    said = " ".join(bench(*verify).stdout.split())
    assert "2 runs, 4 scores computed again: nothing differs" in said, said
    done = bench(*compare)
    assert done.exit_code == 0 and "Mails-topics" in done.stdout, done.stdout + done.stderr
    assert "Mails-labels" in bench(*compare, "--all").stdout


@pytest.mark.nightly
def test_a_set_more_for_transfer_is_the_two_edits_of_the_page(data_folder: Path) -> None:
    """In a copy of the package, which has nothing of the set but these."""
    package = PAGE.parents[1] / "bench"
    copy = data_folder.parent / "clone"
    shutil.copytree(package, copy / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "methods").symlink_to(package.parent / "methods")
    manifest = copy / "bench" / "data" / "sets" / "manifests" / "transfer.json"
    entries = json.loads(manifest.read_text(encoding="utf-8"))
    entries["sets"].append(json.loads(code_blocks(PAGE, "json")[0]))
    manifest.write_text(json.dumps(entries), encoding="utf-8")
    suite_file = copy / "bench" / "score" / "suites" / "transfer.py"
    ((old, new),) = re.findall("`(SETS = .*?)` becomes `(.*?)`", PAGE.read_text("utf-8"))
    assert suite_file.read_text(encoding="utf-8").count(old) == 1
    suite_file.write_text(suite_file.read_text(encoding="utf-8").replace(old, new), "utf-8")

    rows = [line.split("\t") for line in code_blocks(PAGE, "tsv")[1].splitlines()]
    (data_folder / "mails").mkdir()
    for split in ("train", "dev", "test"):
        lines = [f"{text}\t{label}\n" for text, label, of in rows if of == split]
        (data_folder / "mails" / f"{split}.tsv").write_text("".join(lines), encoding="utf-8")

    def in_the_copy(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "bench", *words],
            env=os.environ | {"PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return " ".join(done.stdout.split())

    in_the_copy(
        *("run", "cls", "--suite", "transfer:Mails"),
        *("--backbone", "builtin", "--data", "DIR", "--runs", "RUNS", "--plain"),
    )
    (file,) = Path("RUNS").glob("*/run.json")
    (score,) = RunsFolder("RUNS").read(file.parent.name).scores
    assert (score.task, score.protocol, score.n) == ("Mails", "senteval-probe/1", 4)
    stored = read_arrays(file.parent / "predictions" / "Mails.npz")
    tested = [label for _, label, of in rows if of == "test"]
    assert [score.detail["classes"][i] for i in stored["gold"]] == tested
    assert score.value == 100 * (stored["prediction"] == stored["gold"]).mean()
    assert "1 run, 1 score computed again: nothing differs" in in_the_copy(
        "verify", "--runs", "RUNS"
    )
    said = in_the_copy("suites", "transfer")
    assert "Mails 4 accuracy senteval-probe/1" in said
    assert "average mean of MR, CR, SUBJ, MPQA, SST-2, TREC and MRPC," in said


def test_the_pages_own_tests_pass(data_folder: Path) -> None:
    module = types.ModuleType("test_odd")
    exec(compile(code_blocks(PAGE, "python")[4], "test_odd.py", "exec"), module.__dict__)
    tests: list[Any] = [
        made
        for name, made in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("test_")
    ]
    assert len(tests) == 2
    for test in tests:
        test(data_folder)


@pytest.mark.slow
def test_the_pages_commands_check_run_verify_and_compare_it(data_folder: Path, tiny: str) -> None:
    check, run, verify, compare = [words[1:] for words in COMMANDS]
    done = bench(*check)
    assert done.exit_code == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    run = [*run, "--backbone", tiny, "--plain"]
    done = bench(*run)
    assert done.exit_code == 0, done.stderr
    store = RunsFolder("RUNS")
    names = [file.parent.name for file in Path("RUNS").glob("*/run.json")]
    assert len(names) == 2
    for name in names:
        record = store.read(name)
        (score,) = record.scores
        assert (score.task, score.protocol, score.n) == ("Odd", "odd-cosine/1", 4)
        stored = read_arrays(store.predictions_path(name, "Odd", score.protocol))
        assert 100 * (stored["prediction"] == stored["gold"]).mean() == score.value
        made_by = record.provenance.execution.suites["odd"]
        assert made_by.sha256 == hash_plugin(Path("odd.py"))
    again = bench(*run)
    assert "nothing repeated" in again.stdout + again.stderr
    said = " ".join(bench(*verify).stdout.split())
    assert "2 runs, 2 scores computed again: nothing differs" in said, said
    without = bench(*verify[:-2])
    assert without.exit_code == 1 and "0 scores computed again" in " ".join(without.stdout.split())
    done = bench(*compare)
    assert done.exit_code == 0 and "last avg" in done.stdout and "Odd" in done.stdout


def scores() -> list[float]:
    names = sorted(file.parent.name for file in Path("RUNS").glob("*/run.json"))
    return [score.value for name in names for score in RunsFolder("RUNS").read(name).scores]


@pytest.mark.slow
def test_code_that_was_changed_scores_again(data_folder: Path, tiny: str) -> None:
    run = [*COMMANDS[1][1:], "--backbone", tiny, "--plain"]
    assert bench(*run).exit_code == 0
    code = Path("odd.py").read_text(encoding="utf-8")
    Path("odd.py").write_text(code.replace("100 * float", "50 * float"), encoding="utf-8")
    values = scores()
    assert bench(*run).exit_code == 0
    assert any(values) and scores() == [value / 2 for value in values]
