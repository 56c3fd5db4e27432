"""``bench compare`` through click's runner, and once as real processes."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import bench
from factories import PROTOCOL, RAW_PROTOCOL, family, record, sts_scores
from predicted_runs import sts_run

from bench.records import RunsFolder
from bench.records.record import Score


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    store = RunsFolder(tmp_path / "runs")
    for one in family():
        store.write(one)
    return store.path


def compared(runs: Path, *arguments: Any) -> dict[str, Any]:
    done = bench("compare", "--runs", runs, "--format", "json", *arguments)
    assert done.exit_code == 0, done.stderr
    return dict(json.loads(done.stdout)["tables"][0])


def test_a_sample_that_is_left_out_is_named(runs: Path) -> None:
    sample = Score(
        suite="check",
        task="captions",
        protocol="check/2",
        metric="spearman",
        value=58.0,
        n=4742,
        predictions_sha256="0" * 64,
    )
    RunsFolder(runs).write(record("simcse", 43, scores=(*sts_scores(), sample)))
    for words in ((), ("--all",)):
        assert "Not shown: check" in bench("compare", "--runs", runs, *words).stdout
    shown = bench("compare", "--runs", runs, "--suite", "check").stdout
    assert "Not shown" not in shown and "58.00" in shown


def test_values_that_rows_share_leave_a_narrow_table_first(tmp_path: Path) -> None:
    """The names of rows and the value that tells them apart stay whole."""
    shared = {"batch_size": 64, "max_seq_length": 32, "learning_rate": 3e-5}
    for temperature in (0.05, 0.07):
        recipe = {**shared, "temperature": temperature}
        RunsFolder(tmp_path).write(record("simcse", 1, recipe=recipe))
    shown = bench("compare", "--runs", tmp_path, COLUMNS="60").stdout.partition("trained with")[2]
    heading, *rows = shown.splitlines()
    assert "temperature" in heading and "max_seq_length" not in heading
    assert [row.partition(")")[0] for row in rows[:2]] == [
        "SimCSE (temperature 0.05",
        "SimCSE (temperature 0.07",
    ]


def test_filters(runs: Path) -> None:
    both = (*sts_scores(), *sts_scores(60, protocol=RAW_PROTOCOL))
    RunsFolder(runs).write(record("simcse", 42, backbone="other", scores=both))

    def rows(words: str) -> list[str]:
        done = bench("compare", "--runs", runs, "--format", "csv", *words.split())
        assert done.exit_code == 0, done.stderr
        found = csv.DictReader(io.StringIO(done.stdout))
        return list(dict.fromkeys(f"{r['method']} {r['backbone']} {r['protocol']}" for r in found))

    mlm = f"dcpcse builtin {PROTOCOL}"
    untrained = [f"{name} builtin {PROTOCOL}" for name in ("first-last-avg", "cls")]
    assert rows("--method simcse,cls --backbone builtin") == [
        f"simcse builtin {PROTOCOL}",
        untrained[1],
    ]
    assert rows("--variant mlm") == [mlm] and mlm not in rows("--variant none")
    assert rows(f"--suite {RAW_PROTOCOL}") == [f"simcse other {RAW_PROTOCOL}"]
    assert rows("--setting none") == untrained
    assert rows("promcse") == [f"promcse builtin {PROTOCOL}"], "the beginning of several ids"
    assert len(rows("--suite sts --together")) == 7
    run_id = record("simcse", 42).run_id
    (row,) = compared(runs, run_id, run_id, runs / run_id)["rows"]
    assert row["runs"] == [run_id], "named three times, it counts once"


@pytest.mark.slow
def test_a_broken_pipe_is_no_traceback(runs: Path) -> None:
    command = f"{sys.executable} -m bench compare --format csv --runs {runs} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr and done.stdout.startswith("suite,")


def test_a_task_is_the_question_and_a_page_shows_it(tmp_path: Path) -> None:
    for name, noise in {"sure": 0.1, "good": 0.4, "alike": 0.42}.items():
        for seed in (1, 2, 3, 4):
            sts_run(tmp_path, name, seed, noise, tasks=("STS12", "STS13"))
    of_one = ("--task", "STS12", "--baseline", "good", "--cost")
    page = tmp_path / "page.html"
    table = compared(tmp_path, *of_one, "--html", page)
    assert table["columns"] == ["STS12"]
    assert table["tested"] == {"rows": 3, "comparisons": 2, "ci_level": 0.975, "alpha": 0.05}
    (row,) = [row for row in table["rows"] if row["method"] == "sure"]
    assert row["against"]["verdict"] == "better" and row["may_be_best"]
    assert row["cost"]["train_seconds"] == 812.5
    assert compared(tmp_path)["tested"] is None, "two of seven tasks have no average"
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert not re.search(r"""src="|href="http|@import|url\(""", html), "nothing is loaded"
    assert "sure beats good on STS12." in html
