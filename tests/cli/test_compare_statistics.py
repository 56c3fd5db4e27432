"""``bench compare`` with predictions, through click's runner and as a process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import bench, error_line
from factories import record
from predicted_runs import family, sts_run

from bench.runs import RunsFolder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("statistics") / "runs"
    family(
        folder,
        {"sure": 0.1, "good": 0.4, "alike": 0.42},
        seeds=(1, 2, 3, 4),
        tasks=("STS12", "STS13"),
    )
    return folder


@pytest.mark.slow
def test_no_torch_and_no_network_behind_statistics(runs: Path, tmp_path: Path) -> None:
    heavy = ("torch", "transformers", "mteb", "sentence_transformers", "sklearn", "socket_of_ours")
    code = (
        "import sys\nfrom bench.cli import main\n"
        "try:\n    main(['compare', '--task', 'STS12', '--baseline', 'good', '--with-paper', '--cost'])\n"
        f"finally:\n    print([m for m in {heavy!r} if m in sys.modules], 'numpy' in sys.modules, file=sys.stderr)"
    )
    environment = os.environ | {
        "BENCH_RUNS": str(runs),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONWARNINGS": "error",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0 and done.stderr.splitlines() == ["[] True"], done.stderr
    assert "less good" in done.stdout


def test_a_task_is_the_question(runs: Path) -> None:
    arguments = ("compare", "--runs", runs, "--baseline", "good", "--format", "json", "--cost")
    done = bench(*arguments, "--task", "STS12")
    assert done.exit_code == 0, done.stderr
    (table,) = json.loads(done.stdout)["tables"]
    assert table["columns"] == ["STS12"]
    assert table["tested"] == {"rows": 3, "comparisons": 2, "ci_level": 0.975, "alpha": 0.05}
    (row,) = [row for row in table["rows"] if row["method"] == "sure"]
    assert row["against"]["verdict"] == "better" and row["may_be_best"]
    assert row["cost"]["train_seconds"] == 812.5
    (table,) = json.loads(bench(*arguments).stdout)["tables"]
    assert table["tested"] is None, "two of seven tasks have no average"
    (plain,) = json.loads(bench(*arguments, "--statistics", "no").stdout)["tables"]
    assert plain["tested"] is None and plain["rows"][0]["cells"]["STS12"]["spread"] is None


def test_html_on_standard_output_and_in_a_file(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = ("compare", "--runs", runs, "--baseline", "good", "--task", "STS12")
    done = bench(*arguments, "--format", "html", "--html", page)
    assert (
        done.exit_code == 0
        and done.stdout == page.read_text(encoding="utf-8")
        and f"page: {page}" in done.stderr
    )
    html = done.stdout
    assert (
        html.startswith("<!doctype html>")
        and "<script" not in html
        and "http://" not in html
        and "https://" not in html
    )
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html[html.index("</style>") :]))
    for words in (
        "less good: better",
        "may be the best",
        "(97.5 % CI)",
        "is the best of 3 rows on STS12",
    ):
        assert words in text or words in html, words
    assert re.search(
        r'title="150 items, 4 seeds; [^"]*95 % interval [^"]*\(items and seeds\)', html
    )


def test_refusals_print_nothing_and_exit_with_2(runs: Path, tmp_path: Path) -> None:
    one = sts_run(tmp_path, "one", 1, 0.2, tasks=("STS12",))
    two = sts_run(tmp_path, "two", 1, 0.2, tasks=("STS12",), recipe={"batch_size": 128})
    from msgspec.structs import replace

    assert two.training is not None
    longer = replace(
        two,
        training=replace(two.training, sentences=500_000),
        provenance=replace(two.provenance, packages={"torch": "9.9"}),
    )
    RunsFolder(tmp_path).write(longer)
    html = tmp_path / "page.html"
    for option, said in (
        ("--equal-budget", "two had 500,000 rows"),
        ("--strict", "torch: "),
    ):
        done = bench("compare", "--runs", tmp_path, option, "--html", html)
        assert said in error_line(done) and done.stdout == "" and not html.exists()
    assert (
        bench("compare", one.run_id, "--runs", tmp_path, "--strict", "--equal-budget").exit_code
        == 0
    )


def test_hostile_names_and_broken_runs_beside_good_ones(tmp_path: Path) -> None:
    bad = "\\input{x} <b>%$&_^~#{}\x1b[2J =1+1"
    sts_run(tmp_path, "good", 1, 0.2, tasks=("STS12",))
    hostile = sts_run(tmp_path, "good2", 1, 0.3, tasks=("STS12",))
    from msgspec.structs import replace

    packages = {**hostile.provenance.packages, "torch": bad}
    RunsFolder(tmp_path).write(
        replace(hostile, method=bad, provenance=replace(hostile.provenance, packages=packages))
    )
    RunsFolder(tmp_path).write(record("half", 1, status="interrupted"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "empty").mkdir()
    for form in ("table", "md", "latex", "csv", "json", "html"):
        done = bench("compare", "--runs", tmp_path, "--format", form, "--with-paper")
        assert done.exit_code == 0, done.stderr
        assert "\x1b" not in done.stdout and "\x1b" not in done.stderr
        assert "left out, damaged" in done.stderr and "left out, not finished" in done.stderr
        if form == "latex":
            assert r"\input" not in done.stdout
        if form == "html":
            assert "<b>%" not in done.stdout
