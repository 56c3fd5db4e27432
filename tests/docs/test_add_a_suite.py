"""docs/add-a-suite.md does what it says: its data, its manifest, its suite and its test, as a reader would put them in place."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from commands import bench

from bench.base.imported_code import hash_file
from bench.records import RunsFolder
from bench.records.arrays import read_arrays
from bench.score import suites

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-suite.md"


def blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S
    )


OF_PAIRS, COMMANDS = (
    [shlex.split(line) for line in block.splitlines()] for block in blocks("sh")[:2]
)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where somebody who followed the page is: data and suite are files in the folder in which commands are typed."""
    (rated, table), (pairs, code, *_) = blocks("tsv"), blocks("python")
    (tmp_path / "DIR" / "odd").mkdir(parents=True)
    (tmp_path / "DIR" / "pairs.tsv").write_text(rated, encoding="utf-8")
    (tmp_path / "pairs.py").write_text(pairs, encoding="utf-8")
    (tmp_path / "DIR" / "odd" / "odd.tsv").write_text(table, encoding="utf-8")
    (tmp_path / "odd.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "odd", raising=False)
    monkeypatch.setattr(suites, "_from_files", {})
    return tmp_path / "DIR"


@pytest.mark.slow
def test_rated_pairs_are_checked_run_verified_and_compared(data_folder: Path, tiny: str) -> None:
    from scipy.stats import spearmanr

    check, run, verify, compare = [words[1:] for words in OF_PAIRS]
    done = bench(*check)
    assert done.exit_code == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    done = bench(*run, "--backbone", tiny, "--plain")
    assert done.exit_code == 0, done.stderr
    ratings = [float(line.split("\t")[2]) for line in blocks("tsv")[0].splitlines()]
    store = RunsFolder("RUNS")
    names = [file.parent.name for file in Path("RUNS").glob("*/run.json")]
    assert len(names) == 2
    for name in names:
        (score,) = store.read(name).scores
        stored = read_arrays(store.predictions_path(name, "MyPairs", None))
        assert (score.task, score.protocol, score.n) == ("MyPairs", "my-pairs/1", 5)
        assert stored["gold"].tolist() == ratings
        assert score.value == pytest.approx(100 * spearmanr(stored["prediction"], ratings)[0])
    said = " ".join(bench(*verify).stdout.split())
    assert "2 runs, 2 scores computed again: nothing differs" in said, said
    done = bench(*compare)
    assert done.exit_code == 0 and "last-avg" in done.stdout and "MyPairs" in done.stdout, (
        done.stdout + done.stderr
    )


def test_the_pages_own_tests_pass(data_folder: Path) -> None:
    module = types.ModuleType("test_odd")
    exec(compile(blocks("python")[3], "test_odd.py", "exec"), module.__dict__)
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
        stored = read_arrays(store.predictions_path(name, "Odd", None))
        assert 100 * (stored["prediction"] == stored["gold"]).mean() == score.value
        made_by = record.provenance.execution.suites["odd"]
        assert made_by.sha256 == hash_file(Path("odd.py"))
    again = bench(*run)
    assert "nothing repeated" in again.stdout + again.stderr
    said = " ".join(bench(*verify).stdout.split())
    assert "2 runs, 2 scores computed again: nothing differs" in said, said
    without = bench(*verify[:-2])
    assert without.exit_code == 1 and "0 scores computed again" in " ".join(without.stdout.split())
    done = bench(*compare)
    assert done.exit_code == 0 and "last-avg" in done.stdout and "Odd" in done.stdout


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
