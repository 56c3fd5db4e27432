"""``bench compare`` through click's runner, and once as real processes."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from factories import family, record, sts_scores
from syrupy.assertion import SnapshotAssertion

from bench.base.files import write_or_fail
from bench.cli import main
from bench.runs import RunsFolder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    store = RunsFolder(tmp_path / "runs")
    for one in family():
        store.write(one)
    return store.path


def bench(*arguments: str | Path, columns: int = 100) -> Result:
    return CliRunner(env={"COLUMNS": str(columns), "BENCH_RUNS": None}).invoke(
        main, [str(one) for one in arguments]
    )


def test_compare_prints_the_sentence_and_the_table(runs: Path, snapshot: SnapshotAssertion) -> None:
    done = bench("compare", "--runs", runs, "--baseline", "simcse", columns=80)
    assert done.exit_code == 0 and done.stderr == "" and done.stdout == snapshot
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_compare_filters(runs: Path) -> None:
    RunsFolder(runs).write(
        record("simcse", 42, backbone="other", scores=(*sts_scores(), *sts_scores(60, text="raw")))
    )

    def methods(*arguments: str) -> list[tuple[str, str, str]]:
        done = bench("compare", "--runs", runs, "--format", "csv", *arguments)
        assert done.exit_code == 0, done.stderr
        return list(
            dict.fromkeys(
                (row["method"], row["backbone"], row["text"])
                for row in csv.DictReader(io.StringIO(done.stdout))
            )
        )

    assert methods("--method", "simcse,cls", "--backbone", "builtin") == [
        ("simcse", "builtin", "tokenised"),
        ("cls", "builtin", "tokenised"),
    ]
    assert methods("--variant", "mlm") == [("dcpcse", "builtin", "tokenised")]
    assert ("dcpcse", "builtin", "tokenised") not in methods("--variant", "none")
    assert methods("--text", "raw") == [("simcse", "other", "raw")]
    assert methods("--setting", "none") == [
        ("first-last-avg", "builtin", "tokenised"),
        ("cls", "builtin", "tokenised"),
    ]
    assert methods("promcse") == [("promcse", "builtin", "tokenised")], (
        "the beginning of ids means all of them"
    )
    assert len(methods("--suite", "sts", "--together")) == 7


def test_mistakes(runs: Path, snapshot: SnapshotAssertion) -> None:
    """One line: what is wrong, where, what to do."""
    RunsFolder(runs).write(record("simcse", 42, recipe={"learning_rate": 1e-4}))
    said = {}
    for words in (
        "--method simsce",
        "--suite stt",
        "--text raw",
        "--task STS17",
        "--baseline promsce",
        "--baseline simcse",
        "--items --format csv",
        "nosuchrun",
    ):
        done = bench("compare", "--runs", runs, *words.split())
        assert done.exit_code == 2 and done.stdout == ""
        said[words] = done.stderr.replace(str(runs), "RUNS").splitlines()
    assert said == snapshot


def test_damaged_and_unfinished_runs_are_named_and_left_out(runs: Path) -> None:
    write_or_fail(runs / "broken" / "run.json", b'{"schema": "bench.run/1", "\\u001b[2J": 0}')
    failed = record("simcse", 99, status="failed", error="out of memory", scores=())
    RunsFolder(runs).write(failed)
    done = bench("compare", "--runs", runs, "--format", "json")
    assert done.exit_code == 0
    assert (
        str(runs / "broken" / "run.json") in done.stderr
        and f"not finished: {failed.run_id}" in done.stderr
    )
    assert "\x1b" not in done.stderr
    named = {
        run
        for table in json.loads(done.stdout)["tables"]
        for row in table["rows"]
        for run in row["runs"]
    }
    assert len(named) == 11 and failed.run_id not in named
    assert bench("compare", runs / "broken" / "run.json", "--runs", runs).exit_code == 2


def test_a_run_named_twice_counts_once(runs: Path) -> None:
    run_id = record("simcse", 42).run_id
    done = bench("compare", run_id, run_id, runs / run_id, "--runs", runs, "--format", "json")
    (row,) = json.loads(done.stdout)["tables"][0]["rows"]
    assert row["runs"] == [run_id]


HEAVY = ("torch", "transformers", "mteb", "sentence_transformers", "sklearn", "jsonschema")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["compare"], ["compare", "--html", "page.html"], ["runs"], ["runs", "promcse-builtin-s43"]],
)
def test_real_processes_import_nothing_heavy(
    runs: Path, tmp_path: Path, arguments: list[str]
) -> None:
    code = (
        "import sys\nfrom bench.cli import main\n"
        f"try:\n    main({arguments!r})\nfinally:\n    print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    here = str(Path(__file__).parents[2])
    environment = os.environ | {
        "BENCH_RUNS": str(runs),
        "PYTHONPATH": here,
        "PYTHONWARNINGS": "error",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stderr.splitlines() == ["[]"], done.stderr
    assert "promcse" in done.stdout


@pytest.mark.slow
def test_a_broken_pipe_is_no_traceback(runs: Path) -> None:
    code = "from bench.cli import main; main(['compare', '--format', 'csv'])"
    environment = os.environ | {
        "BENCH_RUNS": str(runs),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run(
        f'{sys.executable} -c "{code}" | head -n 1',
        shell=True,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr and done.stdout.startswith("suite,")


def test_rows_on_unequal_terms_are_told_and_refused(runs: Path, tmp_path: Path) -> None:
    """One learns ten times as fast, and was chosen on another set: a difference may be that."""
    from msgspec.structs import replace

    store = RunsFolder(tmp_path / "unequal")
    usual = {
        "learning_rate": 3e-5,
        "batch_size": 64,
        "max_seq_length": 32,
        "select_on": "STS-B dev",
    }
    for method, changes in (
        ("simcse", {}),
        ("promcse", {}),
        ("mine", {"learning_rate": 1e-4, "select_on": "sts-dev-clean"}),
    ):
        store.write(record(method, 1, recipe=usual | changes))
    slow = record("slow", 1, recipe=usual)
    assert slow.training is not None
    store.write(replace(slow, training=replace(slow.training, steps=7)))
    store.write(record("cls", None, setting="none", training=None, recipe={}))
    said = bench("compare", "--runs", store.path).stdout
    for line in (
        "learning_rate +0.0001 +mine +3e-05",
        "select_on +sts-dev-clean +mine +STS-B dev",
        "steps +7 +slow",
    ):
        assert re.search(line, said), line
    assert "batch_size" not in said and "max_seq_length" not in said
    refused = bench("compare", "--runs", store.path, "--strict")
    assert refused.exit_code == 2 and "learning_rate: 0.0001 in mine" in refused.stderr
    alike = bench("compare", "--runs", store.path, "--strict", "--method", "simcse,promcse,cls")
    assert alike.exit_code == 0 and "learning_rate" not in alike.stdout
